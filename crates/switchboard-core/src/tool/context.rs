//! What a tool's code is given.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::context::RunContext;
use crate::model::Usage;
use crate::run::RunConfig;
use crate::team::Registry;

/// What a tool's code is given: the run's context, and which call this is.
///
/// It dereferences to the application's state.
pub struct ToolContext<C = ()> {
    run: RunContext<C>,
    agent: Arc<str>,
    tool: Arc<str>,
    call_id: Arc<str>,
    arguments: Arc<str>,
    /// The settings of the run the tool is part of.
    config: Arc<RunConfig<C>>,
    /// The team of the agent whose model called the tool.
    team: Option<Arc<Registry<C>>>,
}

/// One call of a tool.
pub(crate) struct ThisCall {
    pub(crate) agent: Arc<str>,
    pub(crate) tool: Arc<str>,
    pub(crate) call_id: Arc<str>,
    pub(crate) arguments: Arc<str>,
}

impl<C> ToolContext<C> {
    pub(crate) fn new(
        run: RunContext<C>,
        call: ThisCall,
        config: Arc<RunConfig<C>>,
        team: Option<&Arc<Registry<C>>>,
    ) -> Self {
        Self {
            run,
            agent: call.agent,
            tool: call.tool,
            call_id: call.call_id,
            arguments: call.arguments,
            config,
            team: team.cloned(),
        }
    }

    pub(crate) fn config(&self) -> &Arc<RunConfig<C>> {
        &self.config
    }

    pub(crate) fn team(&self) -> Option<&Arc<Registry<C>>> {
        self.team.as_ref()
    }

    /// Counts what models have used on the tool's behalf as part of the run; see
    /// [`RunContext::add_usage`].
    pub fn add_usage(&self, usage: Usage) {
        self.run.add_usage(usage);
    }

    /// The run's context.
    pub fn run_context(&self) -> &RunContext<C> {
        &self.run
    }

    /// The agent whose model called the tool.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The tool's name.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The call's identifier: stable over retries, so it can serve as an idempotency key.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The arguments as the model wrote them.
    pub fn arguments(&self) -> &str {
        &self.arguments
    }
}

impl<C> Deref for ToolContext<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.run
    }
}

impl<C> Clone for ToolContext<C> {
    fn clone(&self) -> Self {
        Self {
            run: self.run.clone(),
            agent: self.agent.clone(),
            tool: self.tool.clone(),
            call_id: self.call_id.clone(),
            arguments: self.arguments.clone(),
            config: self.config.clone(),
            team: self.team.clone(),
        }
    }
}

impl<C> fmt::Debug for ToolContext<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("tool", &self.tool)
            .field("call_id", &self.call_id)
            .finish_non_exhaustive()
    }
}
