//! Building a tool.

use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Inner, OnFailure, Settings, Tool, ToolContext, ToolError, ToolInfo, ToolOrigin, ToolOutput,
};
use crate::agent::Agent;
use crate::approval::ApprovalRule;
use crate::callback::{IntoOutcome, Outcome, catch_panic_sync};
use crate::condition::Enabled;
use crate::context::RunContext;
use crate::guardrail::ToolGuardrail;
use crate::journal::Repeat;
use crate::model::{ToolInput, ToolSpec};
use crate::schema::{self, InvalidPayload, Payload};

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
            input: ToolInput::Json,
        },
        title: None,
        text_format: None,
        on_failure: OnFailure::TellDefault,
        guardrails: Vec::new(),
        timeout: None,
        timeout_ends_run: false,
        coerces: true,
        is_sync: false,
        arguments: None,
        enabled: Enabled::Always,
        approval: ApprovalRule::Never,
        agent: None,
        repeat: Repeat::Allowed,
        hosted: None,
    })
}

/// Builds a tool; see [`tool`].
#[must_use]
pub struct ToolBuilder<C = ()>(pub(super) Settings<C>);

impl<C> ToolBuilder<C> {
    /// Sets the description, by which the model decides when to call the tool.
    pub fn description(self, description: impl Into<Arc<str>>) -> Self {
        self.with(|settings| settings.spec.description = description.into())
    }

    /// Sets a title for user interfaces, which no model gets. The run item of a call has it; see
    /// [`ToolInfo`].
    pub fn title(self, title: impl Into<Arc<str>>) -> Self {
        self.with(|settings| settings.title = Some(title.into()))
    }

    /// Enables or disables the tool.
    pub fn enabled(self, enabled: bool) -> Self {
        self.with(|settings| settings.enabled = enabled.into())
    }

    /// Enables the tool while `condition` holds; it is evaluated every turn.
    pub fn enabled_if<F, R, M>(self, condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.with(|settings| settings.enabled = Enabled::when(condition))
    }

    /// Makes each call wait for a person's decision; see [`approval`](crate::approval).
    pub fn needs_approval(self) -> Self {
        self.with(|settings| settings.approval = ApprovalRule::Always)
    }

    /// Makes a call wait for a person's decision if `condition` holds for it. The condition gets the
    /// arguments as JSON (the text, for a free-form tool); if they cannot be read, or the condition
    /// fails, the call waits.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use switchboard_core::{Tool, tool};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Refund { amount: f64 }
    ///
    /// let refund: Tool = tool("refund")
    ///     .needs_approval_if(|_ctx, arguments| arguments["amount"].as_f64() > Some(100.0))
    ///     .run(|_ctx, refund: Refund| format!("refunded {}", refund.amount));
    /// ```
    pub fn needs_approval_if<F, R, M>(self, condition: F) -> Self
    where
        F: Fn(ToolContext<C>, Value) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.with(|settings| settings.approval = ApprovalRule::when(condition))
    }

    /// Calls the tool at most once in a run with a [`journal`](crate::journal), for a side effect that must not happen
    /// twice and that no [idempotency key](ToolContext::idempotency_key) protects. If the process ends while the
    /// tool runs, it is not called again, and the model is told that the outcome is unknown. By default such a
    /// call begins again, with the same idempotency key.
    ///
    /// ```
    /// use switchboard_core::{Tool, tool};
    ///
    /// let send: Tool = tool("send_letter").at_most_once().run(|_ctx, (): ()| "sent");
    /// ```
    pub fn at_most_once(self) -> Self {
        self.with(|settings| settings.repeat = Repeat::AtMostOnce)
    }

    /// Calls the tool again where its run was interrupted while it ran, with the same idempotency key. This is the
    /// default.
    pub fn repeatable(self) -> Self {
        self.with(|settings| settings.repeat = Repeat::Allowed)
    }

    /// Sets the text that the model gets when the tool fails. By default it learns what is wrong with
    /// its arguments, and otherwise only that the tool failed: the error may hold private data. A
    /// tool can also return a [`ToolFailure`](super::ToolFailure), which has a text for the model.
    ///
    /// `text` returns a `String`, a `Result` of one, or a future of either.
    pub fn failure_text<F, R, M>(self, text: F) -> Self
    where
        F: Fn(ToolContext<C>, ToolError) -> R + Send + Sync + 'static,
        R: IntoOutcome<String, M>,
    {
        let text = Arc::new(move |ctx, error| text(ctx, error).into_outcome());
        self.with(|settings| settings.on_failure = OnFailure::TellText(text))
    }

    /// Ends the run when the tool fails, instead of telling the model. The error of the run is of the
    /// kind [`ErrorKind::Tool`](crate::ErrorKind::Tool), or
    /// [`ErrorKind::ModelBehavior`](crate::ErrorKind::ModelBehavior) if the arguments are invalid.
    /// Tools that ran beside it are stored with the session.
    pub fn fail_run(self) -> Self {
        self.with(|settings| settings.on_failure = OnFailure::EndRun)
    }

    /// Sets a timeout, after which the tool is cancelled where it awaits, and the model is told.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|settings| settings.timeout = Some(timeout))
    }

    /// Ends the run when the tool exceeds its timeout, instead of telling the model.
    pub fn fail_run_on_timeout(self) -> Self {
        self.with(|settings| settings.timeout_ends_run = true)
    }

    /// Adds a guardrail on the tool's calls or outputs.
    pub fn guardrail(self, guardrail: ToolGuardrail<C>) -> Self {
        self.with(|settings| settings.guardrails.push(guardrail))
    }

    /// Sets whether the model must keep to the schema of the arguments, which is the default. A type
    /// with a map in it, for example, has no strict schema.
    pub fn strict(self, strict: bool) -> Self {
        self.with(|settings| settings.spec.strict = strict)
    }

    /// Sets whether a number or a boolean may be sent as the text that spells it, which is the
    /// default: `"5"` is read as `5` where the schema asks for a number.
    pub fn coerce_arguments(self, coerces: bool) -> Self {
        self.with(|settings| settings.coerces = coerces)
    }

    /// Sets the agent behind the tool.
    pub(crate) fn answered_by(self, agent: Agent<C>) -> Self {
        self.with(|settings| settings.agent = Some(agent))
    }

    /// Finishes the tool with its code. The type of the arguments is the schema that the model gets; a
    /// tool without arguments takes `()`. The arguments are validated against the schema before the
    /// code runs, and the model is told what is invalid.
    ///
    /// The code returns a value that converts into a [`ToolOutput`], a `Result` of one, or a future
    /// of either. After an error the model gets the failure text and continues.
    ///
    /// The code runs on the thread of the run: a tool that blocks it is finished with
    /// [`run_blocking`](Self::run_blocking).
    pub fn run<T, F, R, M>(self, code: F) -> Tool<C>
    where
        T: JsonSchema + DeserializeOwned,
        F: Fn(ToolContext<C>, T) -> R + Send + Sync + 'static,
        R: IntoOutcome<ToolOutput, M>,
    {
        self.with(|settings| settings.is_sync = !R::IS_ASYNC)
            .run_typed(move |ctx, arguments| code(ctx, arguments).into_outcome())
    }

    /// Finishes the tool with code that blocks its thread: it computes for long, or waits without
    /// `await`. Each call runs on a thread of its own, beside other tools and without blocking the
    /// run. The code cannot be cancelled: after a timeout it goes on, and its result is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use switchboard_core::{Tool, tool};
    ///
    /// let report: Tool = tool("report").run_blocking(|_ctx, (): ()| {
    ///     std::thread::sleep(Duration::from_millis(5));
    ///     "3 pages"
    /// });
    /// ```
    pub fn run_blocking<T, F, R, M>(self, code: F) -> Tool<C>
    where
        C: Send + Sync + 'static,
        T: JsonSchema + DeserializeOwned + Send + 'static,
        F: Fn(ToolContext<C>, T) -> R + Send + Sync + 'static,
        R: IntoOutcome<ToolOutput, M>,
    {
        let code = Arc::new(code);
        self.run_typed(move |ctx, arguments| {
            let code = code.clone();
            run_on_thread(move || code(ctx, arguments).into_outcome())
        })
    }

    fn run_typed<T>(
        self,
        code: impl Fn(ToolContext<C>, T) -> Outcome<ToolOutput> + Send + Sync + 'static,
    ) -> Tool<C>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let described = schema::of::<T>();
        // `()` stands for no arguments.
        let takes_none = described["type"] == "null";
        let described = if takes_none { json!({}) } else { described };
        self.run_described(described, move |ctx, arguments| {
            let arguments = if takes_none { Value::Null } else { arguments };
            match T::deserialize(arguments) {
                Ok(arguments) => code(ctx, arguments),
                Err(_) => Outcome::Ready(Err(InvalidPayload::of_type().into())),
            }
        })
    }

    /// Finishes the tool with the schema of its arguments, which the model gets in its strict form.
    pub(crate) fn run_described(
        self,
        described: Value,
        code: impl Fn(ToolContext<C>, Value) -> Outcome<ToolOutput> + Send + Sync + 'static,
    ) -> Tool<C> {
        let expected = Payload::arguments(described.clone(), self.0.coerces);
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
        let problem = problem.or_else(|| schema_problem(&expected));
        let arguments = expected.clone();
        let invoke = move |ctx: ToolContext<C>| match parse(&expected, ctx.arguments()) {
            Ok(arguments) => code(ctx, arguments),
            Err(error) => Outcome::Ready(Err(error.into())),
        };
        self.with(|settings| settings.arguments = Some(arguments))
            .finish(&parameters, strict, problem, invoke)
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
        self.strict(false)
            .run_described(parameters, move |ctx, arguments| {
                code(ctx, arguments).into_outcome()
            })
    }

    /// Sets the format that the input of a free-form tool must have, as the provider describes it, for
    /// example a grammar. It applies to a tool that [`run_text`](Self::run_text) finishes.
    pub fn text_format(self, format: impl Into<Value>) -> Self {
        let format = Arc::new(format.into());
        self.with(|settings| settings.text_format = Some(format))
    }

    /// Finishes the tool as a free-form one: the model calls it with text instead of JSON, such as
    /// code or a query. Only some models accept such tools (those over the Responses API do, those
    /// over Chat Completions do not); with another the run ends with an error of the kind
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) before the model is asked.
    ///
    /// ```
    /// use serde_json::json;
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, Item, Runner, Tool, tool};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let query: Tool = tool("query")
    ///     .description("Runs a query.")
    ///     .text_format(json!({"type": "grammar", "syntax": "regex", "definition": "SELECT .*"}))
    ///     .run_text(|_ctx, text: String| format!("no rows for {text}"));
    /// let agent = Agent::new("Analyst").tool(query);
    /// let model = ScriptedModel::new()
    ///     .reply([Item::custom_tool_call("call_1", "query", "SELECT 1")])
    ///     .say("There are none.");
    /// let result = Runner::new(&agent).model(model).run("How many?").await?;
    /// let output = result.new_items()[1].item().output().unwrap();
    /// assert_eq!(output, "no rows for SELECT 1");
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn run_text<F, R, M>(mut self, code: F) -> Tool<C>
    where
        F: Fn(ToolContext<C>, String) -> R + Send + Sync + 'static,
        R: IntoOutcome<ToolOutput, M>,
    {
        let format = self.0.text_format.take();
        self.0.spec.input = ToolInput::Text { format };
        let invoke = move |ctx: ToolContext<C>| {
            let text = ctx.arguments().to_owned();
            code(ctx, text).into_outcome()
        };
        self.finish(&Value::Null, false, None, invoke)
    }

    pub(super) fn finish(
        mut self,
        parameters: &Value,
        strict: bool,
        problem: Option<String>,
        invoke: impl Fn(ToolContext<C>) -> Outcome<ToolOutput> + Send + Sync + 'static,
    ) -> Tool<C> {
        self.0.spec.parameters = schema::raw(parameters);
        self.0.spec.strict = strict;
        let origin = match &self.0.agent {
            Some(agent) => ToolOrigin::Agent {
                name: agent.name_arc().clone(),
            },
            None if self.0.hosted.is_some() => ToolOrigin::Provider,
            None => ToolOrigin::Function,
        };
        let info = ToolInfo::new(origin, self.0.title.clone(), &self.0.spec.description);
        Tool(Arc::new(Inner {
            info: Arc::new(info),
            settings: self.0,
            invoke: Box::new(invoke),
            problem,
        }))
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Settings<C>)) -> Self {
        change(&mut self.0);
        self
    }
}

impl_debug!(ToolBuilder<C>, |builder| builder.0.spec.name);

/// Parses the arguments of a call; none, or null, stand for an empty object.
fn parse(expected: &Payload, arguments: &str) -> Result<Value, InvalidPayload> {
    match arguments.trim() {
        "" | "null" => expected.check("{}"),
        arguments => expected.check(arguments),
    }
}

fn schema_problem(arguments: &Payload) -> Option<String> {
    let problem = arguments.check_schema().err()?;
    Some(format!("the schema of its arguments is wrong: {problem}"))
}

/// Runs code on a thread of its own.
fn run_on_thread(
    code: impl FnOnce() -> Outcome<ToolOutput> + Send + 'static,
) -> Outcome<ToolOutput> {
    Outcome::Pending(Box::pin(async move {
        let (sender, receiver) = oneshot::channel();
        let span = tracing::Span::current();
        let work = move || {
            let outcome = span.in_scope(|| catch_panic_sync(code));
            // The receiver is gone if the call was cancelled.
            let _ = sender.send(outcome);
        };
        std::thread::Builder::new()
            .name("switchboard-tool".to_owned())
            .spawn(work)?;
        match receiver.await?? {
            Outcome::Ready(result) => result,
            Outcome::Pending(future) => future.await,
        }
    }))
}
