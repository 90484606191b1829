//! Teams as the service runs them, whatever the type of their context.

mod speech;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use switchboard_core::approval::{Interruption, InterruptionKind};
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Conversation, ConversationError, ConversationErrorKind, Revision,
};
use switchboard_core::model::{RequestUsage, Usage};
use switchboard_core::run::{Exclusive, ModelFilter, Price, RunStatus};
use switchboard_core::stream::{EventKind, ItemEvent, RunStream, StopHandle, StreamEvent};
use switchboard_core::team::{Finding, Graph};
use switchboard_core::{
    Agent, Error, ErrorKind, Input, ModelRequest, ModelSettings, Run, RunConfig, Runner, Team,
};

use switchboard_realtime::ConversionError;

use crate::agent_details::AgentDetails;
use crate::client_tools::ClientTools;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::keys::random_id;
use crate::provider_error::{CutOff, hide_addresses};
use crate::realtime::{Speech, SpokenRequest, SpokenSession};
use crate::recording::Recording;
use crate::team_source::TeamSource;

/// A team that a service offers, with the settings and the context of its runs.
///
/// ```
/// use switchboard_core::{Agent, Team};
/// use switchboard_server::ServedTeam;
///
/// let team: Team = Team::new()
///     .agent(Agent::new("Triage").handoff("Billing"))
///     .agent(Agent::new("Billing").handoff_description("Bills."))
///     .build()?;
/// let served = ServedTeam::new("support", team, ()).description("Helps customers.");
/// assert_eq!(served.name(), "support");
/// # Ok::<(), switchboard_core::Error>(())
/// ```
#[derive(Clone)]
pub struct ServedTeam {
    name: Arc<str>,
    description: Option<Arc<str>>,
    speech: Option<Speech>,
    /// Another one for each time that the team was read.
    version: Arc<str>,
    runs: Arc<dyn TeamRuns>,
    /// The values of the context that a conversation may set.
    context: Option<Arc<dyn TeamContext>>,
    /// The place that the team is read from.
    source: Option<Arc<dyn TeamSource>>,
    /// The version of the text that it was read from.
    text_version: Option<Arc<str>>,
    /// The prices of models that its settings have.
    prices: Vec<(Arc<str>, Price)>,
}

impl ServedTeam {
    /// Serves a team under a name, which is the name of its model in the protocols of OpenAI. Conversations
    /// begin with its first agent.
    pub fn new<C: Send + Sync + 'static>(
        name: impl Into<Arc<str>>,
        team: impl Into<Arc<Team<C>>>,
        context: impl Into<Arc<C>>,
    ) -> Self {
        Self::with_config(name, team, context, RunConfig::default())
    }

    /// Serves a team with the settings of its runs. The session, and the name of the team where there is none,
    /// are set by the service. The prices of its budgets are those of keys' limits on cost and of recordings too.
    pub fn with_config<C: Send + Sync + 'static>(
        name: impl Into<Arc<str>>,
        team: impl Into<Arc<Team<C>>>,
        context: impl Into<Arc<C>>,
        config: impl Into<Arc<RunConfig<C>>>,
    ) -> Self {
        let team = team.into();
        let start = team.agents().first().map_or("", Agent::name).into();
        let config: Arc<RunConfig<C>> = config.into();
        let prices = config.budgets.iter().flat_map(|budgets| &budgets.prices);
        let prices = prices.map(|(model, price)| (model.clone(), *price));
        let prices = prices.collect();
        Self {
            name: name.into(),
            description: None,
            speech: None,
            version: random_id("v").unwrap_or_default(),
            runs: Arc::new(TypedTeam {
                start,
                team,
                context: context.into(),
                config,
            }),
            context: None,
            source: None,
            text_version: None,
            prices,
        }
    }

    /// Sets the values of the context that a conversation may set when it begins.
    #[must_use]
    pub fn context(mut self, context: impl TeamContext) -> Self {
        self.context = Some(Arc::new(context));
        self
    }

    /// Sets the place that the team is read from, so that it can be shown, changed and read again.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn TeamSource>) -> Self {
        self.source = Some(source);
        self
    }

    /// The place that the team is read from.
    pub(crate) fn team_source(&self) -> Option<&Arc<dyn TeamSource>> {
        self.source.as_ref()
    }

    /// Sets the version of the text that the team was read from.
    pub(crate) fn read_from(mut self, version: &str) -> Self {
        self.text_version = Some(version.into());
        self
    }

    /// The version of the text that the team was read from.
    pub(crate) fn text_version(&self) -> Option<&str> {
        self.text_version.as_deref()
    }

    /// The prices of models that the settings of its runs have.
    pub(crate) fn prices(&self) -> &[(Arc<str>, Price)] {
        &self.prices
    }

    /// The names of the tools that are handoffs, of all agents.
    #[cfg(feature = "team-files")]
    pub(crate) fn handoff_tools(&self) -> Vec<String> {
        let agents = self.agents().into_iter();
        let details = agents.filter_map(|agent| self.agent_details(&agent.name));
        let handoffs = details.flat_map(|agent| agent.handoffs);
        handoffs.map(|handoff| handoff.tool).collect()
    }

    /// A text that differs for each time that the team was read.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The values of the context that a conversation may set, with their defaults.
    pub(crate) fn context_values(&self) -> Vec<(String, Value)> {
        let context = self.context.as_ref();
        context.map(|context| context.values()).unwrap_or_default()
    }

    /// Returns `true` if a conversation may set values of the context.
    pub(crate) fn has_context(&self) -> bool {
        self.context.is_some()
    }

    /// The team with other values of its context, by their paths.
    pub(crate) fn with_context(
        mut self,
        values: &Map<String, Value>,
    ) -> Result<Self, ServiceError> {
        if values.is_empty() {
            return Ok(self);
        }
        let Some(context) = &self.context else {
            return Err(ServiceError::new(
                ServiceErrorKind::Conflict,
                "the team has no context that can be set",
            ));
        };
        let changed = context.with(values);
        let conflict = |message| ServiceError::new(ServiceErrorKind::Conflict, message);
        let changed = changed.map_err(conflict)?;
        self.runs = changed.runs;
        Ok(self)
    }

    /// Everything that is known of an agent.
    pub(crate) fn agent_details(&self, name: &str) -> Option<AgentDetails> {
        self.runs.agent_details(name)
    }

    /// Sets the text that describes the team to clients.
    #[must_use]
    pub fn description(mut self, text: impl Into<Arc<str>>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Sets the agent that conversations begin with. An agent that the team does not have is ignored.
    #[must_use]
    pub fn start(mut self, agent: &str) -> Self {
        if let Some(runs) = self.runs.starting_with(agent) {
            self.runs = runs;
        }
        self
    }

    /// The name of the team.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text that describes the team to clients.
    pub fn description_text(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// The agents, as clients are told of them; the one that conversations begin with is marked.
    pub fn agents(&self) -> Vec<AgentInfo> {
        self.runs.agents()
    }

    /// Returns `true` if the team has an agent of this name.
    pub fn has_agent(&self, name: &str) -> bool {
        self.runs.has_agent(name)
    }

    /// Returns `true` if an agent of the team has a tool of this name.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.runs.has_tool(name)
    }

    /// Returns `true` if a call waits that the client of a protocol carries out: the agent that made it has no such tool
    /// itself.
    pub(crate) fn is_client_call(&self, waiting: &Interruption) -> bool {
        waiting.kind == InterruptionKind::Tool
            && waiting.inside.is_empty()
            && !self.runs.agent_has_tool(&waiting.agent, &waiting.tool)
    }

    /// The team as a graph.
    pub fn graph(&self) -> Graph {
        self.runs.graph()
    }

    /// The mistakes of the team.
    pub fn check(&self) -> Vec<Finding> {
        self.runs.check()
    }

    /// Prepares a run. Nothing happens before its future is polled.
    pub(crate) fn prepare(
        &self,
        request: RunRequest,
        sink: EventSink,
    ) -> Result<PreparedRun, ServiceError> {
        self.runs.prepare(&self.name, request, sink)
    }
}

impl fmt::Debug for ServedTeam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServedTeam({:?})", self.name)
    }
}

/// An agent as clients are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentInfo {
    /// The name.
    pub name: String,
    /// The text by which other agents decide to hand off to it.
    pub description: Option<String>,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// The agents that its handoffs lead to.
    pub handoffs: Vec<String>,
    /// Set if conversations begin with it.
    pub is_start: bool,
    /// Set if a person answers for it.
    pub is_person: bool,
    /// The name of its model.
    pub model: Option<String>,
}

/// The values of a team's context that a conversation may set.
pub trait TeamContext: Send + Sync + 'static {
    /// The values with their paths and defaults.
    fn values(&self) -> Vec<(String, Value)>;

    /// The team with other values.
    ///
    /// # Errors
    /// A message about a path that does not exist, or a value of another type.
    fn with(&self, values: &Map<String, Value>) -> Result<ServedTeam, String>;
}

/// The function that gets the events of a run.
pub(crate) type EventSink = Box<dyn Fn(StreamEvent, Option<CutOff>) + Send + Sync>;

/// A run to be carried out.
pub(crate) struct RunRequest {
    /// The beginning of the run.
    pub(crate) start: RunStart,
    /// The agent that a new conversation begins with, instead of the team's first one.
    pub(crate) agent: Option<Arc<str>>,
    /// The conversation, unless nothing is kept.
    pub(crate) conversation: Option<Conversation>,
    /// Tools that the client runs.
    pub(crate) client_tools: ClientTools,
    /// Settings of model calls that the client asks for.
    pub(crate) settings: ModelSettings,
    /// Instructions of the client, which follow those of each agent.
    pub(crate) instructions: Option<Arc<str>>,
    /// Set if the model is to answer alone, without tools and handoffs.
    pub(crate) without_tools: bool,
    /// The longest time to wait for other runs of the conversation.
    pub(crate) exclusive: std::time::Duration,
    /// The recording that the run is written to.
    pub(crate) recording: Option<Arc<Recording>>,
}

/// The beginning of a run.
pub(crate) enum RunStart {
    /// A message, or several items.
    Input(Input),
    /// A run that waited, with decisions or an answer.
    Resume(Box<Run>),
}

/// A run that has not begun yet.
pub(crate) struct PreparedRun {
    pub(crate) stop: StopHandle,
    pub(crate) future: BoxFuture<'static, RunEnd>,
}

/// The end of a run.
pub(crate) struct RunEnd {
    pub(crate) status: EndStatus,
    /// Set if the run has failed since another one has its conversation, or has changed it.
    pub(crate) lost_conversation: bool,
    /// The place of its wait in its conversation, if it waits.
    pub(crate) wait: Option<Revision>,
    pub(crate) usage: Usage,
    pub(crate) request_usage: Vec<RequestUsage>,
}

impl RunEnd {
    /// The end of a run whose task has panicked.
    pub(crate) fn panicked() -> Self {
        Self {
            status: EndStatus::Failed(ErrorKind::UserCode),
            lost_conversation: false,
            wait: None,
            usage: Usage::default(),
            request_usage: Vec::new(),
        }
    }
}

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndStatus {
    Completed,
    Interrupted,
    Stopped,
    Failed(ErrorKind),
}

/// A team of any context.
trait TeamRuns: Send + Sync {
    fn agents(&self) -> Vec<AgentInfo>;
    fn has_agent(&self, name: &str) -> bool;
    fn has_tool(&self, name: &str) -> bool;
    fn agent_has_tool(&self, agent: &str, name: &str) -> bool;
    fn agent_details(&self, name: &str) -> Option<AgentDetails>;
    fn graph(&self) -> Graph;
    fn check(&self) -> Vec<Finding>;
    fn starting_with(&self, agent: &str) -> Option<Arc<dyn TeamRuns>>;
    fn check_realtime(&self) -> Result<(), ConversionError>;
    fn open_spoken(
        &self,
        team_name: &Arc<str>,
        speech: &Speech,
        request: SpokenRequest,
    ) -> BoxFuture<'static, Result<SpokenSession, ServiceError>>;
    fn prepare(
        &self,
        team_name: &Arc<str>,
        request: RunRequest,
        sink: EventSink,
    ) -> Result<PreparedRun, ServiceError>;
}

struct TypedTeam<C> {
    start: Arc<str>,
    team: Arc<Team<C>>,
    context: Arc<C>,
    config: Arc<RunConfig<C>>,
}

impl<C: Send + Sync + 'static> TypedTeam<C> {
    /// The name of the model that answers for an agent.
    fn model_of(&self, agent: &Agent<C>) -> Option<String> {
        let of_run = self.config.model.as_ref().map(|model| model.name());
        let of_run = of_run.filter(|_| !agent.is_person());
        of_run.or_else(|| agent.model_name()).map(ToOwned::to_owned)
    }

    /// A runner for the request.
    fn runner(&self, team_name: &Arc<str>, request: &RunRequest) -> Option<Runner<C, Arc<C>>> {
        let name = request.agent.as_deref().unwrap_or(&self.start);
        let with_tools;
        let team = if request.client_tools.is_empty() {
            &*self.team
        } else {
            with_tools = self.team.with_tools(&request.client_tools.tools());
            &with_tools
        };
        let mut config = (*self.config).clone();
        let settings = config.model_settings.take().unwrap_or_default();
        config.model_settings = Some(Arc::new(settings.overridden_by(&request.settings)));
        config.team_name.get_or_insert_with(|| team_name.clone());
        if let Some(recording) = &request.recording {
            config.tracing = config.tracing.and(recording.tracer());
        }
        if config.exclusive.is_none() {
            config.exclusive = Some(Exclusive::new(request.exclusive));
        }
        if request.instructions.is_some() || request.without_tools {
            config.model_filter = Some(request_filter(&config, request));
        }
        let runner = Runner::new(team.get(name)?);
        let runner = runner.context(self.context.clone()).replace_config(config);
        Some(match &request.conversation {
            Some(conversation) => runner.session(conversation),
            None => runner,
        })
    }
}

/// Adds the client's instructions to each request, or takes tools and handoffs out of it, after the team's own
/// filter.
fn request_filter<C: Send + Sync + 'static>(
    config: &RunConfig<C>,
    request: &RunRequest,
) -> ModelFilter<C> {
    let own = config.model_filter.clone();
    let instructions = request.instructions.clone();
    let without_tools = request.without_tools;
    ModelFilter::new(move |ctx, agent, mut request: ModelRequest| {
        let (own, instructions) = (own.clone(), instructions.clone());
        async move {
            if let Some(own) = own {
                request = own.apply(ctx, agent, request).await?;
            }
            if let Some(added) = instructions {
                request.instructions = Some(match &request.instructions {
                    Some(own) => format!("{own}\n\n{added}").into(),
                    None => added,
                });
            }
            if without_tools {
                request.tools = Arc::default();
                request.hosted_tools = Arc::default();
                request.handoffs = Arc::default();
            }
            Ok::<_, BoxError>(request)
        }
    })
}

impl<C: Send + Sync + 'static> TeamRuns for TypedTeam<C> {
    fn agents(&self) -> Vec<AgentInfo> {
        let agents = self.team.agents().iter();
        let info = |agent: &Agent<C>| AgentInfo {
            name: agent.name().to_owned(),
            description: agent.description().map(ToOwned::to_owned),
            tools: agent
                .tools()
                .iter()
                .map(|tool| tool.name().to_owned())
                .collect(),
            handoffs: (agent.handoffs().iter())
                .map(|handoff| handoff.agent_name().to_owned())
                .collect(),
            is_start: *agent.name() == *self.start,
            is_person: agent.is_person(),
            model: self.model_of(agent),
        };
        agents.map(info).collect()
    }

    fn agent_details(&self, name: &str) -> Option<AgentDetails> {
        let agent = self.team.get(name)?;
        let names = self.config.tool_names.names_of(agent.handoffs());
        let is_start = *agent.name() == *self.start;
        Some(AgentDetails::of(
            agent,
            &names,
            is_start,
            self.model_of(agent),
        ))
    }

    fn has_agent(&self, name: &str) -> bool {
        self.team.get(name).is_some()
    }

    fn has_tool(&self, name: &str) -> bool {
        let mut tools = self.team.agents().iter().flat_map(Agent::tools);
        tools.any(|tool| tool.name() == name)
    }

    fn agent_has_tool(&self, agent: &str, name: &str) -> bool {
        let agent = self.team.get(agent);
        agent.is_some_and(|agent| agent.tools().iter().any(|tool| tool.name() == name))
    }

    fn graph(&self) -> Graph {
        self.team.graph_with(self.config.tool_names)
    }

    fn check(&self) -> Vec<Finding> {
        self.team.check_with(self.config.tool_names)
    }

    fn starting_with(&self, agent: &str) -> Option<Arc<dyn TeamRuns>> {
        let start = self.team.get(agent)?.name().into();
        Some(Arc::new(Self {
            start,
            team: self.team.clone(),
            context: self.context.clone(),
            config: self.config.clone(),
        }))
    }

    fn check_realtime(&self) -> Result<(), ConversionError> {
        self.realtime_agent(&self.start).map(drop)
    }

    fn open_spoken(
        &self,
        team_name: &Arc<str>,
        speech: &Speech,
        request: SpokenRequest,
    ) -> BoxFuture<'static, Result<SpokenSession, ServiceError>> {
        self.open_speech(team_name, speech, request)
    }

    fn prepare(
        &self,
        team_name: &Arc<str>,
        request: RunRequest,
        sink: EventSink,
    ) -> Result<PreparedRun, ServiceError> {
        let runner = self.runner(team_name, &request);
        let runner = runner.ok_or_else(|| ServiceError::not_found("the team has no such agent"))?;
        let stream = match request.start {
            RunStart::Input(input) => runner.stream(input),
            RunStart::Resume(run) => runner.resume_stream(*run).map_err(|error| {
                let message = format!("the run cannot go on with this team: {error}");
                ServiceError::new(ServiceErrorKind::Conflict, message)
            })?,
        };
        Ok(PreparedRun {
            stop: stream.stop_handle(),
            future: Box::pin(drive(runner, stream, sink)),
        })
    }
}

/// Returns `true` for the error of a run whose conversation another run has, or has changed.
fn is_of_another_run(error: &Error) -> bool {
    let cause = error.cause();
    let cause = cause.and_then(|cause| cause.downcast_ref::<ConversationError>());
    cause.is_some_and(|cause| {
        matches!(
            cause.kind(),
            ConversationErrorKind::Leased
                | ConversationErrorKind::Conflict
                | ConversationErrorKind::WaitIsOver
        )
    })
}

/// Carries a run out, and passes its events on. The last one is passed on once everything is stored.
async fn drive<C: Send + Sync + 'static>(
    runner: Runner<C, Arc<C>>,
    mut stream: RunStream<C>,
    sink: EventSink,
) -> RunEnd {
    let mut incomplete_message = String::new();
    let mut last = None;
    let mut agent: Arc<str> = runner.agent().name().into();
    while let Some(mut event) = stream.next().await {
        agent = event.agent.clone();
        hide_addresses(&mut event);
        match &event.kind {
            // The events of the provider would double the stream.
            EventKind::Raw { .. } => continue,
            EventKind::RunFinished { .. }
            | EventKind::RunInterrupted { .. }
            | EventKind::RunStopped { .. }
            | EventKind::RunFailed { .. } => {
                last = Some(event);
                continue;
            }
            EventKind::TextDelta { text, .. } => incomplete_message.push_str(text),
            EventKind::Item {
                name: ItemEvent::MessageOutputCreated,
                ..
            } => incomplete_message.clear(),
            _ => {}
        }
        sink(event, None);
    }
    let result = match stream.finish().await {
        Ok(result) => result,
        Err(error) => {
            let cut_off = CutOff::of_error(&error);
            let run = error.run();
            if let (Some(_), Some(run)) = (cut_off, run) {
                // As of a run that was stopped, since the client has seen it.
                let stored = runner.store_stopped(run, &incomplete_message).await;
                if let Err(error) = stored {
                    tracing::warn!(%error, "an incomplete answer could not be stored");
                }
            }
            if error.kind() == ErrorKind::Model {
                tracing::warn!(%error, "a model has failed");
            }
            if let Some(last) = last {
                sink(last, cut_off);
            }
            return RunEnd {
                status: EndStatus::Failed(error.kind()),
                lost_conversation: is_of_another_run(&error),
                wait: None,
                usage: run.map(|run| *run.usage()).unwrap_or_default(),
                request_usage: run
                    .map(|run| run.request_usage().to_vec())
                    .unwrap_or_default(),
            };
        }
    };
    let (usage, request_usage) = (*result.usage(), result.request_usage().to_vec());
    // The run itself stores whole turns only.
    if let Err(error) = runner
        .store_stopped(result.run(), &incomplete_message)
        .await
    {
        let kind = EventKind::run_failed(ErrorKind::Session, error.to_string(), result.run());
        sink(StreamEvent::new(kind, agent, result.run().turns()), None);
        return RunEnd {
            status: EndStatus::Failed(ErrorKind::Session),
            lost_conversation: is_of_another_run(&error),
            wait: None,
            usage,
            request_usage,
        };
    }
    let status = match result.status() {
        RunStatus::Completed => EndStatus::Completed,
        RunStatus::Interrupted => EndStatus::Interrupted,
        _ => EndStatus::Stopped,
    };
    if let Some(last) = last {
        sink(last, None);
    }
    RunEnd {
        status,
        lost_conversation: false,
        wait: result.run().waits_at(),
        usage,
        request_usage,
    }
}
