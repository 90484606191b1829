//! Resolves tools.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::{HeaderName, HeaderValue};
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::Resolver;
use crate::condition::ArgumentNames;
use crate::document::{Step, steps};
use crate::file_refs::FileRef;
use crate::template::{KnownNames, Template};
use crate::tools::{
    Action, AgentQuestion, Body, DEFAULT_TIMEOUT, HeaderTemplate, HttpTool, JsonTemplate, Limits,
    RecordsTool, ResolvedTool, UrlTemplate,
};
use crate::types::{HttpSpec, MethodSpec, RecordsSpec, ToolSpec, ValueSpec};

/// The names of a tool's arguments; `None` if its schema does not list them.
pub(super) type Arguments = Option<Vec<String>>;

fn timeout(spec: &ToolSpec) -> Option<Duration> {
    let seconds = spec.timeout_seconds?;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// The arguments of a tool that asks an agent.
fn question_schema() -> Value {
    json!({ "type": "object", "properties": { "input": { "type": "string" } } })
}

impl Resolver<'_> {
    pub(super) fn tools(&mut self) -> IndexMap<String, ResolvedTool> {
        let mut tools = IndexMap::new();
        for (name, spec) in &self.spec.tools {
            if let Some(tool) = self.tool(name, spec) {
                tools.insert(name.clone(), tool);
            }
        }
        tools
    }

    fn tool(&mut self, name: &str, spec: &ToolSpec) -> Option<ResolvedTool> {
        let when = self.condition(steps!["tools", name, "when"], spec.when.as_ref());
        let path = steps!["tools", name, "parameters"];
        let parameters = self.schema(path, spec.parameters.as_ref());
        let arguments = match &parameters {
            Some(schema) => schema
                .get("properties")
                .and_then(Value::as_object)
                .map(|properties| properties.keys().cloned().collect()),
            None => Some(Vec::new()),
        };
        // Without its schema every placeholder would be reported.
        if spec.parameters.is_some() && parameters.is_none() {
            return None;
        }
        let schema = match &spec.agent {
            Some(_) => Some(question_schema()),
            None => parameters.clone().map(Value::Object),
        };
        let names = ArgumentNames::of_tool(schema.as_ref());
        let path = steps!["tools", name, "approve"];
        let approve = self.approve(path, spec.approve.as_ref(), names);
        let action = match (&spec.http, &spec.command, &spec.records, &spec.agent) {
            (Some(http), None, None, None) => Action::Http(self.http(name, http, &arguments)?),
            (None, Some(command), None, None) => {
                Action::Command(self.command(name, command, &arguments)?)
            }
            (None, None, Some(records), None) => {
                Action::Records(self.records(name, records, &arguments)?)
            }
            (None, None, None, Some(agent)) => self.agent_tool(name, spec, agent)?,
            _ => {
                let message = format!(
                    "the tool {name:?} needs exactly one of http, command, records and agent"
                );
                let help = "a tool does one thing; make another tool for the rest";
                self.report_name("bad-tool", steps!["tools", name], message, help);
                return None;
            }
        };
        Some(ResolvedTool {
            name: name.to_owned(),
            description: spec.description.clone(),
            parameters,
            when,
            approve,
            limits: Limits {
                timeout: timeout(spec).unwrap_or(DEFAULT_TIMEOUT),
                output_bytes: usize::try_from(spec.max_output_bytes).unwrap_or(usize::MAX),
            },
            action,
        })
    }

    /// Resolves a tool that asks an agent.
    fn agent_tool(&mut self, name: &str, spec: &ToolSpec, agent: &str) -> Option<Action> {
        if spec.parameters.is_some() {
            let message = "a tool that asks an agent has no parameters of its own";
            let help = "remove them: its argument is the question, `input`";
            self.report_name(
                "bad-tool",
                steps!["tools", name, "parameters"],
                message,
                help,
            );
            return None;
        }
        let path = steps!["tools", name, "agent"];
        let known = self.spec.agents.keys().map(String::as_str);
        if !self.spec.agents.contains_key(agent) {
            self.check_name("unknown-agent", path, "agent", agent, known);
            return None;
        }
        if self.asks_itself(agent) {
            let message = format!("{agent:?} would ask itself");
            let help = "an agent cannot be asked by itself, or by an agent that it asks";
            self.report("bad-tool", path, message, help);
            return None;
        }
        Some(Action::Agent(AgentQuestion {
            agent: agent.to_owned(),
            timeout: timeout(spec),
        }))
    }

    /// Returns `true` if the agent's tools ask it, directly or through other agents.
    fn asks_itself(&self, agent: &str) -> bool {
        let asked_by = |name: &str| {
            let tools = self.spec.agents.get(name).map(|agent| &agent.tools);
            let tools = tools.into_iter().flatten();
            tools.filter_map(|tool| self.spec.tools.get(tool)?.agent.as_deref())
        };
        let mut seen = HashSet::new();
        let mut queue: Vec<&str> = asked_by(agent).collect();
        while let Some(next) = queue.pop() {
            if next == agent {
                return true;
            }
            if seen.insert(next) {
                queue.extend(asked_by(next));
            }
        }
        false
    }

    pub(super) fn template(
        &mut self,
        at: &[Step<'_>],
        text: &str,
        arguments: &Arguments,
    ) -> Option<Template> {
        let names = KnownNames {
            arguments: arguments.as_deref(),
            context: self.context,
        };
        Template::parse(text, names)
            .map_err(|error| self.add_expression_error("bad-template", at, text, error))
            .ok()
    }

    fn http(&mut self, name: &str, spec: &HttpSpec, arguments: &Arguments) -> Option<HttpTool> {
        let at = steps!["tools", name, "http"];
        let url = self.url(&[at, steps!["url"]].concat(), &spec.url, arguments);
        let mut query = Vec::new();
        for (key, value) in &spec.query {
            let template = self.template(&[at, steps!["query", key]].concat(), value, arguments);
            query.extend(template.map(|template| (key.clone(), template)));
        }
        let mut headers = Vec::new();
        for (key, value) in &spec.headers {
            let path = [at, steps!["headers", key]].concat();
            headers.extend(self.header(&path, key, value, arguments));
        }
        let body = match &spec.body {
            Some(body) => Body::Json(self.json(&[at, steps!["body"]].concat(), body, arguments)?),
            None if matches!(spec.method, MethodSpec::Get | MethodSpec::Delete) => Body::Empty,
            None => Body::Arguments,
        };
        let method = match spec.method {
            MethodSpec::Get => Method::GET,
            MethodSpec::Post => Method::POST,
            MethodSpec::Put => Method::PUT,
            MethodSpec::Patch => Method::PATCH,
            MethodSpec::Delete => Method::DELETE,
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
        UrlTemplate::new(&template)
            .map_err(|error| {
                let (message, help) = error.describe();
                self.report("bad-url", at, message, help);
            })
            .ok()
    }

    fn header(
        &mut self,
        at: &[Step<'_>],
        key: &str,
        value: &ValueSpec,
        arguments: &Arguments,
    ) -> Option<(HeaderName, HeaderTemplate)> {
        // These frame or route the request.
        let is_reserved = |name: &HeaderName| {
            let name = name.as_str();
            let framing = matches!(
                name,
                "host"
                    | "content-length"
                    | "transfer-encoding"
                    | "connection"
                    | "te"
                    | "trailer"
                    | "upgrade"
                    | "expect"
                    | "keep-alive"
            );
            framing || name.starts_with("proxy-")
        };
        let name = HeaderName::from_bytes(key.as_bytes()).ok();
        let Some(name) = name.filter(|name| !is_reserved(name)) else {
            let message = format!("{key:?} is not a header that can be set");
            self.problems
                .add(self.name_problem("bad-header", at, message));
            return None;
        };
        let template = match value {
            ValueSpec::Text(text) => {
                if HeaderValue::from_str(text).is_err() {
                    let problem = self.problem("bad-header", at, "this cannot be sent as a header");
                    let problem = problem.help("leave out line breaks and control characters");
                    self.problems.add(problem);
                    return None;
                }
                let template = self.template(at, text, arguments)?;
                // A value could add further credentials to these.
                let holds_credentials = ["authorization", "cookie"].contains(&name.as_str());
                if holds_credentials && template.has_argument() {
                    let message = format!("an argument of the model cannot be part of {key:?}");
                    let help = "use { env = \"NAME\" } or {context.name}";
                    self.report("bad-header", at, message, help);
                    return None;
                }
                HeaderTemplate::Text(template)
            }
            ValueSpec::Env(variable) => HeaderTemplate::Env(variable.clone()),
        };
        Some((name, template))
    }

    fn json(
        &mut self,
        at: &[Step<'_>],
        json: &Value,
        arguments: &Arguments,
    ) -> Option<JsonTemplate> {
        Some(match json {
            Value::String(text) => JsonTemplate::Text(self.template(at, text, arguments)?),
            Value::Array(items) => {
                let items = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.json(&[at, steps![index]].concat(), item, arguments));
                JsonTemplate::List(items.collect::<Option<_>>()?)
            }
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, value)| {
                    let value = self.json(&[at, steps![key]].concat(), value, arguments)?;
                    Some((key.clone(), value))
                });
                JsonTemplate::Table(fields.collect::<Option<_>>()?)
            }
            other => JsonTemplate::Literal(other.clone()),
        })
    }

    fn records(
        &mut self,
        name: &str,
        spec: &RecordsSpec,
        arguments: &Arguments,
    ) -> Option<RecordsTool> {
        let at = steps!["tools", name, "records"];
        if let Some(arguments) = arguments {
            let known = arguments.iter().map(String::as_str);
            let (path, kind) = ([at, steps!["by"]].concat(), "argument of the tool");
            self.check_name("unknown-argument", &path, kind, &spec.by, known);
        }
        let content = self.files.read_table(FileRef {
            name: &spec.file,
            is_outside_allowed: spec.outside,
        });
        let records = self.file_content(&[at, steps!["file"]].concat(), content)?;
        Some(RecordsTool {
            records: Arc::new(records),
            by: spec.by.clone(),
        })
    }
}
