//! Agents as tools of other agents.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::agent::Agent;
use crate::callback::{BoxError, IntoOutcome};
use crate::context::RunContext;
use crate::guardrail::ToolGuardrail;
use crate::run::stream::StreamEvent;
use crate::run::{RunConfig, RunResult, Runner};
use crate::tool::{Tool, ToolBuilder, ToolContext, ToolOutput, tool};

/// The arguments of an agent used as a tool.
#[derive(Deserialize, JsonSchema)]
struct Question {
    /// What the agent is to do, with everything it needs to know.
    input: String,
}

type Extract<C> = dyn Fn(&RunResult<C>) -> ToolOutput + Send + Sync;
type Listen<C> = dyn Fn(&RunContext<C>, &StreamEvent) + Send + Sync;

/// Builds a tool from an agent; see [`Agent::as_tool`].
pub struct AgentTool<C = ()> {
    agent: Agent<C>,
    builder: ToolBuilder<C>,
    max_turns: Option<u32>,
    extract: Option<Arc<Extract<C>>>,
    listen: Option<Arc<Listen<C>>>,
}

impl<C: Send + Sync + 'static> Agent<C> {
    /// Makes a tool of this agent. Unlike with a handoff, the calling agent gets the answer and keeps
    /// the conversation; this agent sees only the question.
    ///
    /// It runs with the settings of the calling run, without its session and hooks. Agents that use
    /// each other as tools in a cycle fail at [`RunConfig::max_agent_depth`], and the model is told.
    ///
    /// ```
    /// use switchboard_core::Agent;
    ///
    /// let translator: Agent = Agent::new("Translator").instructions("Translate to French.");
    /// let writer = Agent::new("Writer")
    ///     .tool(translator.as_tool("translate").description("Translates a text to French."));
    /// ```
    pub fn as_tool(&self, name: impl Into<Arc<str>>) -> AgentTool<C> {
        AgentTool {
            agent: self.clone(),
            builder: tool(name),
            max_turns: RunConfig::<C>::default().max_turns,
            extract: None,
            listen: None,
        }
    }
}

impl<C> AgentTool<C> {
    /// Sets the tool's description.
    #[must_use]
    pub fn description(self, description: impl Into<Arc<str>>) -> Self {
        self.with(|builder| builder.description(description))
    }

    /// Enables or disables the tool.
    #[must_use]
    pub fn enabled(self, enabled: bool) -> Self {
        self.with(|builder| builder.enabled(enabled))
    }

    /// Enables the tool while `condition` holds; it is evaluated every turn.
    #[must_use]
    pub fn enabled_if<F, R, M>(self, condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.with(|builder| builder.enabled_if(condition))
    }

    /// Sets the text that the calling agent gets when this one fails.
    #[must_use]
    pub fn failure_text<F>(self, text: F) -> Self
    where
        F: Fn(&ToolContext<C>, &BoxError) -> String + Send + Sync + 'static,
    {
        self.with(|builder| builder.failure_text(text))
    }

    /// Limits the time of each call.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|builder| builder.timeout(timeout))
    }

    /// Adds a guardrail on the question or on the answer.
    #[must_use]
    pub fn guardrail(self, guardrail: ToolGuardrail<C>) -> Self {
        self.with(|builder| builder.guardrail(guardrail))
    }

    /// Limits the turns of each call; `None` is no limit.
    #[must_use]
    pub fn max_turns(mut self, turns: impl Into<Option<u32>>) -> Self {
        self.max_turns = turns.into();
        self
    }

    /// Sets the function that makes the answer from the result, instead of the final output.
    #[must_use]
    pub fn answer_with<R: Into<ToolOutput>>(
        mut self,
        extract: impl Fn(&RunResult<C>) -> R + Send + Sync + 'static,
    ) -> Self {
        self.extract = Some(Arc::new(move |result| extract(result).into()));
        self
    }

    /// Calls `listen` with every event of the agent's run.
    #[must_use]
    pub fn on_event(
        mut self,
        listen: impl Fn(&RunContext<C>, &StreamEvent) + Send + Sync + 'static,
    ) -> Self {
        self.listen = Some(Arc::new(listen));
        self
    }

    fn with(mut self, change: impl FnOnce(ToolBuilder<C>) -> ToolBuilder<C>) -> Self {
        self.builder = change(self.builder);
        self
    }
}

impl<C: Send + Sync + 'static> From<AgentTool<C>> for Tool<C> {
    fn from(made: AgentTool<C>) -> Self {
        let builder = made.builder.answered_by(made.agent.clone());
        builder.run(move |ctx: ToolContext<C>, question: Question| {
            let (agent, max_turns) = (made.agent.clone(), made.max_turns);
            let (extract, listen) = (made.extract.clone(), made.listen.clone());
            async move {
                let result = ask(&agent, &ctx, question.input, max_turns, listen).await?;
                Ok::<ToolOutput, BoxError>(match extract {
                    Some(extract) => extract(&result),
                    None => result.final_text().into_owned().into(),
                })
            }
        })
    }
}

async fn ask<C: Send + Sync + 'static>(
    agent: &Agent<C>,
    ctx: &ToolContext<C>,
    input: String,
    max_turns: Option<u32>,
    listen: Option<Arc<Listen<C>>>,
) -> Result<RunResult<C>, BoxError> {
    let outer = ctx.config();
    let Some(depth) = outer.max_agent_depth.checked_sub(1) else {
        return Err("too many agents use each other as tools, one inside the other".into());
    };
    let config = RunConfig {
        max_agent_depth: depth,
        max_turns,
        session: None,
        server_history: None,
        hooks: None,
        ..(**outer).clone()
    };
    let runner = Runner::new(&agent.reached_in(ctx.team()))
        .replace_config(config)
        .context(ctx.run_context().state().clone());
    let outcome = match listen {
        None => runner.run_within(ctx.run_context(), input).await,
        Some(listen) => {
            let mut stream = runner.stream_within(ctx.run_context(), input);
            while let Some(event) = stream.next().await {
                listen(ctx.run_context(), &event);
            }
            stream.finish().await
        }
    };
    Ok(outcome?)
}

impl_debug!(AgentTool<C>, |tool| tool.agent.name());
