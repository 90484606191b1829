//! Building a tool.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Inner, Settings, Tool, ToolContext, ToolOutput};
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
    ToolBuilder(Settings {
        spec: ToolSpec {
            name: name.into(),
            description: "".into(),
            parameters: schema::raw(&Value::Null),
            strict: true,
        },
        failure: None,
        guardrails: Vec::new(),
        timeout: None,
        enabled: Enabled::Always,
        agent: None,
    })
}

/// Builds a tool; see [`tool`].
pub struct ToolBuilder<C = ()>(Settings<C>);

impl<C> ToolBuilder<C> {
    /// Sets the description, by which the model decides when to call the tool.
    #[must_use]
    pub fn description(self, description: impl Into<Arc<str>>) -> Self {
        self.with(|settings| settings.spec.description = description.into())
    }

    /// Enables or disables the tool.
    #[must_use]
    pub fn enabled(self, enabled: bool) -> Self {
        self.with(|settings| settings.enabled = enabled.into())
    }

    /// Enables the tool while `condition` holds; it is evaluated every turn.
    #[must_use]
    pub fn enabled_if<F, R, M>(self, condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.with(|settings| settings.enabled = Enabled::when(condition))
    }

    /// Sets the text that the model gets when the tool fails. By default it only learns that it
    /// failed: the error may hold private data.
    #[must_use]
    pub fn failure_text<F>(self, text: F) -> Self
    where
        F: Fn(&ToolContext<C>, &BoxError) -> String + Send + Sync + 'static,
    {
        self.with(|settings| settings.failure = Some(Box::new(text)))
    }

    /// Sets a timeout, after which the tool is cancelled where it awaits, and the model is told.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|settings| settings.timeout = Some(timeout))
    }

    /// Adds a guardrail on the tool's calls or outputs.
    #[must_use]
    pub fn guardrail(self, guardrail: ToolGuardrail<C>) -> Self {
        self.with(|settings| settings.guardrails.push(guardrail))
    }

    /// Sets whether the model must keep to the schema of the arguments, which is the default. A type
    /// with a map in it, for example, has no strict schema.
    #[must_use]
    pub fn strict(self, strict: bool) -> Self {
        self.with(|settings| settings.spec.strict = strict)
    }

    /// Sets the agent behind the tool.
    pub(crate) fn answered_by(self, agent: Agent<C>) -> Self {
        self.with(|settings| settings.agent = Some(agent))
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
        let strict = self.0.spec.strict;
        let parameters = if strict {
            schema::strict(described)
        } else {
            Ok(described)
        };
        let (parameters, problem) = match parameters {
            Ok(parameters) => (parameters, None),
            Err(error) => {
                let problem = format!(
                    "its arguments cannot have a strict schema ({error}); change their type, or \
                     allow it with `.strict(false)`"
                );
                (Value::Null, Some(problem))
            }
        };
        let invoke = move |ctx: ToolContext<C>| {
            let arguments = if takes_none {
                "null"
            } else {
                arguments_or_empty(&ctx)
            };
            match serde_json::from_str::<T>(arguments) {
                Ok(arguments) => code(ctx, arguments).into_outcome(),
                Err(error) => Outcome::Ready(Err(error.into())),
            }
        };
        self.finish(&parameters, strict, problem, invoke)
    }

    /// Finishes the tool with a JSON schema and code that reads [`ToolContext::arguments`] itself. The
    /// schema is passed on unchanged.
    pub fn run_raw<F, R, M>(self, parameters: &Value, code: F) -> Tool<C>
    where
        F: Fn(ToolContext<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<ToolOutput, M>,
    {
        let invoke = move |ctx| code(ctx).into_outcome();
        self.finish(parameters, false, None, invoke)
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
        let arguments = Payload::described_by(parameters.clone());
        let problem = arguments.check_schema().err();
        let problem = problem.map(|error| format!("the schema of its arguments is wrong: {error}"));
        let invoke = move |ctx: ToolContext<C>| match arguments.check(arguments_or_empty(&ctx)) {
            Ok(arguments) => code(ctx, arguments).into_outcome(),
            Err(error) => Outcome::Ready(Err(error.into())),
        };
        self.finish(&parameters, false, problem, invoke)
    }

    fn finish(
        mut self,
        parameters: &Value,
        strict: bool,
        problem: Option<String>,
        invoke: impl Fn(ToolContext<C>) -> Outcome<ToolOutput> + Send + Sync + 'static,
    ) -> Tool<C> {
        self.0.spec.parameters = schema::raw(parameters);
        self.0.spec.strict = strict;
        Tool(Arc::new(Inner {
            settings: self.0,
            invoke: Box::new(invoke),
            problem,
        }))
    }

    fn with(mut self, change: impl FnOnce(&mut Settings<C>)) -> Self {
        change(&mut self.0);
        self
    }
}

/// The arguments of a call, `{}` if the model sent none.
fn arguments_or_empty<C>(ctx: &ToolContext<C>) -> &str {
    match ctx.arguments().trim() {
        "" => "{}",
        arguments => arguments,
    }
}

impl_debug!(ToolBuilder<C>, |builder| builder.0.spec.name);
