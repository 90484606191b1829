//! Building a tool.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Failure, Inner, Tool, ToolContext, ToolOutput};
use crate::agent::Agent;
use crate::callback::{BoxError, IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::enabled::Enabled;
use crate::guardrail::ToolGuardrail;
use crate::model::ToolSpec;
use crate::schema::{self, Payload};

/// Starts building a tool; [`ToolBuilder::run`] finishes it.
///
/// A tool that uses the application's context names its type, which a closure cannot infer:
/// `tool::<App>("lookup")`.
pub fn tool<C>(name: impl Into<Arc<str>>) -> ToolBuilder<C> {
    ToolBuilder {
        name: name.into(),
        description: "".into(),
        enabled: Enabled::Always,
        failure: None,
        guardrails: Vec::new(),
        timeout: None,
        strict: true,
        agent: None,
    }
}

/// Builds a tool; see [`tool`].
pub struct ToolBuilder<C = ()> {
    name: Arc<str>,
    description: Arc<str>,
    enabled: Enabled<C>,
    failure: Option<Arc<Failure<C>>>,
    guardrails: Vec<ToolGuardrail<C>>,
    timeout: Option<Duration>,
    strict: bool,
    agent: Option<Agent<C>>,
}

impl<C> ToolBuilder<C> {
    /// Sets the description, by which the model decides when to call the tool.
    #[must_use]
    pub fn description(mut self, description: impl Into<Arc<str>>) -> Self {
        self.description = description.into();
        self
    }

    /// Enables or disables the tool.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = if enabled {
            Enabled::Always
        } else {
            Enabled::Never
        };
        self
    }

    /// Enables the tool while `condition` holds; it is evaluated every turn.
    #[must_use]
    pub fn enabled_if<F, R, M>(mut self, condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.enabled = Enabled::when(condition);
        self
    }

    /// Sets the text that the model gets when the tool fails. By default it only learns that it
    /// failed: the error may hold private data.
    #[must_use]
    pub fn failure_text<F>(mut self, text: F) -> Self
    where
        F: Fn(&ToolContext<C>, &BoxError) -> String + Send + Sync + 'static,
    {
        self.failure = Some(Arc::new(text));
        self
    }

    /// Sets a timeout, after which the tool is cancelled where it awaits, and the model is told.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds a guardrail on the tool's calls or outputs.
    #[must_use]
    pub fn guardrail(mut self, guardrail: ToolGuardrail<C>) -> Self {
        self.guardrails.push(guardrail);
        self
    }

    /// Sets whether the model must keep to the schema of the arguments, which is the default. A type
    /// with a map in it, for example, has no strict schema.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Sets the agent behind the tool.
    pub(crate) fn answered_by(mut self, agent: Agent<C>) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Finishes the tool with its code. The type of the arguments is the schema that the model gets; a
    /// tool without arguments takes `()`.
    ///
    /// The code returns a value that converts into a [`ToolOutput`], a `Result` of one, or a future
    /// of either. After an error the model gets the failure text and continues.
    pub fn run<T, F, R, M>(self, code: F) -> Tool<C>
    where
        T: JsonSchema + DeserializeOwned,
        F: Fn(ToolContext<C>, T) -> R + Send + Sync + 'static,
        R: IntoOutcome<ToolOutput, M>,
    {
        let mut described = schema::of::<T>();
        // `()` stands for no arguments, whatever the model sends.
        let takes_none = described["type"] == "null";
        if takes_none {
            described = json!({});
        }
        let strict = self.strict;
        let (parameters, problem) = if strict {
            match schema::strict(described) {
                Ok(schema) => (schema, None),
                Err(error) => {
                    let problem = format!(
                        "its arguments cannot have a strict schema ({error}); change their type, or \
                         allow it with `.strict(false)`"
                    );
                    (Value::Null, Some(problem))
                }
            }
        } else {
            (described, None)
        };
        let invoke = move |ctx: ToolContext<C>| {
            let arguments = match ctx.arguments().trim() {
                _ if takes_none => "null",
                "" => "{}",
                arguments => arguments,
            };
            match serde_json::from_str::<T>(arguments) {
                Ok(arguments) => code(ctx, arguments).into_outcome(),
                Err(error) => Outcome::Ready(Err(error.into())),
            }
        };
        self.finish(schema::raw(&parameters), strict, problem, invoke)
    }

    /// Finishes the tool with a JSON schema and code that reads [`ToolContext::arguments`] itself. The
    /// schema is passed on unchanged.
    pub fn run_raw<F, R, M>(self, parameters: &Value, code: F) -> Tool<C>
    where
        F: Fn(ToolContext<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<ToolOutput, M>,
    {
        let invoke = move |ctx| code(ctx).into_outcome();
        self.finish(schema::raw(parameters), false, None, invoke)
    }

    /// Finishes the tool with a JSON schema that is known only at run time. The arguments are
    /// validated against it before `code` runs, and the model is told what is invalid.
    ///
    /// ```
    /// use serde_json::{Value, json};
    /// use switchboard_core::{Tool, tool};
    ///
    /// let schema = json!({
    ///     "type": "object",
    ///     "properties": { "city": { "type": "string" } },
    ///     "required": ["city"],
    /// });
    /// let weather: Tool = tool("weather")
    ///     .description("Tells the weather.")
    ///     .run_checked(schema, |_ctx, arguments: Value| format!("Sunny in {}.", arguments["city"]));
    /// ```
    pub fn run_checked<F, R, M>(self, parameters: Value, code: F) -> Tool<C>
    where
        F: Fn(ToolContext<C>, Value) -> R + Send + Sync + 'static,
        R: IntoOutcome<ToolOutput, M>,
    {
        let raw = schema::raw(&parameters);
        let arguments = Payload::described_by(parameters);
        let problem = arguments.check_schema().err();
        let problem = problem.map(|error| format!("the schema of its arguments is wrong: {error}"));
        let invoke = move |ctx: ToolContext<C>| {
            let sent = match ctx.arguments().trim() {
                "" => "{}",
                sent => sent,
            };
            match arguments.check(sent) {
                Ok(arguments) => code(ctx, arguments).into_outcome(),
                Err(error) => Outcome::Ready(Err(error.into())),
            }
        };
        self.finish(raw, false, problem, invoke)
    }

    fn finish(
        self,
        parameters: Arc<RawValue>,
        strict: bool,
        problem: Option<String>,
        invoke: impl Fn(ToolContext<C>) -> Outcome<ToolOutput> + Send + Sync + 'static,
    ) -> Tool<C> {
        Tool(Arc::new(Inner {
            spec: ToolSpec {
                name: self.name,
                description: self.description,
                parameters,
                strict,
            },
            invoke: Box::new(invoke),
            failure: self.failure,
            guardrails: self.guardrails,
            timeout: self.timeout,
            enabled: self.enabled,
            agent: self.agent,
            problem,
        }))
    }
}

impl<C> fmt::Debug for ToolBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolBuilder({})", self.name)
    }
}
