//! What tools mean.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::Planner;
use crate::document::{Step, way};
use crate::template::{Names, Template};
use crate::tools::{
    Body, Does, Filled, HeaderPlan, HttpTool, Limits, RecordsTool, ToolPlan, UrlTemplate,
};
use crate::types::{HttpShape, MethodShape, RecordsShape, ToolShape, ValueShape};

/// The names of a tool's arguments; `None` where its schema does not list them.
pub(super) type Arguments = Option<Vec<String>>;

impl Planner<'_> {
    pub(super) fn tools(&mut self) -> IndexMap<String, ToolPlan> {
        let shape = self.shape;
        let mut tools = IndexMap::new();
        for (name, tool) in &shape.tools {
            if let Some(plan) = self.tool(name, tool) {
                tools.insert(name.clone(), plan);
            }
        }
        tools
    }

    fn tool(&mut self, name: &str, shape: &ToolShape) -> Option<ToolPlan> {
        let when = self.condition(way!["tools", name, "when"], shape.when.as_ref());
        let parameters = self.schema(way!["tools", name, "parameters"], shape.parameters.as_ref());
        let arguments = match &parameters {
            Some(schema) => schema
                .get("properties")
                .and_then(Value::as_object)
                .map(|properties| properties.keys().cloned().collect()),
            None => Some(Vec::new()),
        };
        // Without its schema every place would be a mistake.
        if shape.parameters.is_some() && parameters.is_none() {
            return None;
        }
        let does = match (&shape.http, &shape.command, &shape.records) {
            (Some(http), None, None) => Does::Http(self.http(name, http, &arguments)?),
            (None, Some(command), None) => Does::Command(self.command(name, command, &arguments)?),
            (None, None, Some(records)) => Does::Records(self.records(name, records, &arguments)?),
            (None, None, None) => {
                let message = format!("the tool {name:?} does nothing");
                let problem = self.problem_of_name("bad-tool", way!["tools", name], message);
                let help = "give it one of http, command and records";
                self.problems.add(problem.help(help));
                return None;
            }
            _ => {
                let message = format!("the tool {name:?} does several things");
                let problem = self.problem_of_name("bad-tool", way!["tools", name], message);
                let help =
                    "give it one of http, command and records, and make another tool for the rest";
                self.problems.add(problem.help(help));
                return None;
            }
        };
        Some(ToolPlan {
            name: name.to_owned(),
            description: shape.description.clone(),
            parameters,
            when,
            limits: Limits {
                time: Duration::try_from_secs_f64(shape.timeout_seconds).unwrap_or_default(),
                output: usize::try_from(shape.max_output_bytes).unwrap_or(usize::MAX),
            },
            does,
        })
    }

    pub(super) fn template(
        &mut self,
        at: &[Step<'_>],
        text: &str,
        arguments: &Arguments,
    ) -> Option<Template> {
        let names = Names {
            arguments: arguments.as_deref(),
            context: self.context,
        };
        match Template::parse(text, names) {
            Ok(template) => Some(template),
            Err(mistake) => {
                self.mistake("bad-template", at, text, mistake);
                None
            }
        }
    }

    fn http(&mut self, name: &str, shape: &HttpShape, arguments: &Arguments) -> Option<HttpTool> {
        let at = way!["tools", name, "http"];
        let url = self.url(&[at, way!["url"]].concat(), &shape.url, arguments);
        let mut query = Vec::new();
        for (key, value) in &shape.query {
            let template = self.template(&[at, way!["query", key]].concat(), value, arguments);
            query.extend(template.map(|template| (key.clone(), template)));
        }
        let mut headers = Vec::new();
        for (key, value) in &shape.headers {
            let way = [at, way!["headers", key]].concat();
            headers.extend(self.header(&way, key, value, arguments));
        }
        let body = match &shape.body {
            Some(body) => Body::Json(self.filled(&[at, way!["body"]].concat(), body, arguments)?),
            None if matches!(shape.method, MethodShape::Get | MethodShape::Delete) => Body::Nothing,
            None => Body::Arguments,
        };
        let method = match shape.method {
            MethodShape::Get => Method::GET,
            MethodShape::Post => Method::POST,
            MethodShape::Put => Method::PUT,
            MethodShape::Patch => Method::PATCH,
            MethodShape::Delete => Method::DELETE,
        };
        Some(HttpTool {
            method,
            url: url?,
            query,
            headers,
            body,
        })
    }

    fn url(&mut self, at: &[Step<'_>], text: &str, arguments: &Arguments) -> Option<UrlTemplate> {
        let template = self.template(at, text, arguments)?;
        match UrlTemplate::new(&template) {
            Ok(url) => Some(url),
            Err(wrong) => {
                let problem = self.problem("bad-url", at, wrong.message());
                self.problems.add(problem.help(wrong.help()));
                None
            }
        }
    }

    fn header(
        &mut self,
        at: &[Step<'_>],
        key: &str,
        value: &ValueShape,
        arguments: &Arguments,
    ) -> Option<(HeaderName, HeaderPlan)> {
        // These say where a request ends and whom it is for.
        const OURS: [&str; 9] = [
            "host",
            "content-length",
            "transfer-encoding",
            "connection",
            "te",
            "trailer",
            "upgrade",
            "expect",
            "keep-alive",
        ];
        let name = HeaderName::from_bytes(key.as_bytes()).ok();
        let name = name
            .filter(|name| !OURS.contains(&name.as_str()) && !name.as_str().starts_with("proxy-"));
        let Some(name) = name else {
            let message = format!("{key:?} is not a header that can be set");
            let problem = self.problem_of_name("bad-header", at, message);
            self.problems.add(problem);
            return None;
        };
        let plan = match value {
            ValueShape::Text(text) => {
                if HeaderValue::from_str(text).is_err() {
                    let problem = self.problem("bad-header", at, "this cannot be sent as a header");
                    let problem = problem.help("leave out line breaks and control characters");
                    self.problems.add(problem);
                    return None;
                }
                let template = self.template(at, text, arguments)?;
                // These have parts, which a value could add to.
                let has_parts = ["authorization", "cookie"].contains(&name.as_str());
                if has_parts && template.has_argument() {
                    let message = format!("nothing of a model can be filled into {key:?}");
                    let problem = self.problem("bad-header", at, message);
                    let help = "use { env = \"NAME\" } or {context.name}";
                    self.problems.add(problem.help(help));
                    return None;
                }
                HeaderPlan::Text(template)
            }
            ValueShape::Env(variable) => HeaderPlan::Env(variable.clone()),
        };
        Some((name, plan))
    }

    fn filled(&mut self, at: &[Step<'_>], json: &Value, arguments: &Arguments) -> Option<Filled> {
        Some(match json {
            Value::String(text) => Filled::Text(self.template(at, text, arguments)?),
            Value::Array(items) => {
                let mut filled = Vec::new();
                for (number, item) in items.iter().enumerate() {
                    filled.push(self.filled(&[at, way![number]].concat(), item, arguments)?);
                }
                Filled::List(filled)
            }
            Value::Object(fields) => {
                let mut filled = Vec::new();
                for (key, value) in fields {
                    let value = self.filled(&[at, way![key]].concat(), value, arguments)?;
                    filled.push((key.clone(), value));
                }
                Filled::Table(filled)
            }
            other => Filled::As(other.clone()),
        })
    }

    fn records(
        &mut self,
        name: &str,
        shape: &RecordsShape,
        arguments: &Arguments,
    ) -> Option<RecordsTool> {
        let at = way!["tools", name, "records"];
        if let Some(arguments) = arguments {
            let known = arguments.iter().map(String::as_str);
            let way = [at, way!["by"]].concat();
            self.check_name(
                "unknown-argument",
                &way,
                "argument of the tool",
                &shape.by,
                known,
            );
        }
        let read = self.files.table(&shape.file);
        let records: Map<String, Value> = self.named(&[at, way!["file"]].concat(), read)?;
        Some(RecordsTool {
            records: Arc::new(records),
            by: shape.by.clone(),
        })
    }
}
