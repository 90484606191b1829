//! Teams as the service runs them, whatever the type of their context.

mod speech;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use switchboard_core::approval::{Interruption, InterruptionKind};
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::Conversation;
use switchboard_core::model::{RequestUsage, Usage};
use switchboard_core::run::{Exclusive, ModelFilter, RunStatus};
use switchboard_core::stream::{EventKind, ItemEvent, RunStream, StopHandle, StreamEvent};
use switchboard_core::team::{Finding, Graph};
use switchboard_core::{
    Agent, ErrorKind, Input, ModelRequest, ModelSettings, Run, RunConfig, Runner, Team,
};

use switchboard_realtime::ConversionError;

use crate::client_tools::ClientTools;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::realtime::{Speech, SpokenRequest, SpokenSession};

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
    runs: Arc<dyn TeamRuns>,
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
    /// are set by the service.
    pub fn with_config<C: Send + Sync + 'static>(
        name: impl Into<Arc<str>>,
        team: impl Into<Arc<Team<C>>>,
        context: impl Into<Arc<C>>,
        config: impl Into<Arc<RunConfig<C>>>,
    ) -> Self {
        let team = team.into();
        let start = team.agents().first().map_or("", Agent::name).into();
        Self {
            name: name.into(),
            description: None,
            speech: None,
            runs: Arc::new(TypedTeam {
                start,
                team,
                context: context.into(),
                config: config.into(),
            }),
        }
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

    /// Returns `true` if a call waits that the client of a protocol carries out.
    pub(crate) fn is_client_call(&self, waiting: &Interruption) -> bool {
        waiting.kind == InterruptionKind::Tool
            && waiting.inside.is_empty()
            && !self.runs.has_tool(&waiting.tool)
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
}

/// The function that gets the events of a run.
pub(crate) type EventSink = Box<dyn Fn(StreamEvent) + Send + Sync>;

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
    pub(crate) usage: Usage,
    pub(crate) request_usage: Vec<RequestUsage>,
}

impl RunEnd {
    /// The end of a run whose task has panicked.
    pub(crate) fn panicked() -> Self {
        Self {
            status: EndStatus::Failed(ErrorKind::UserCode),
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
        };
        agents.map(info).collect()
    }

    fn has_agent(&self, name: &str) -> bool {
        self.team.get(name).is_some()
    }

    fn has_tool(&self, name: &str) -> bool {
        let mut tools = self.team.agents().iter().flat_map(Agent::tools);
        tools.any(|tool| tool.name() == name)
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

/// Carries a run out, and passes its events on. The last one is passed on once everything is stored.
async fn drive<C: Send + Sync + 'static>(
    runner: Runner<C, Arc<C>>,
    mut stream: RunStream<C>,
    sink: EventSink,
) -> RunEnd {
    let mut incomplete_message = String::new();
    let mut last = None;
    let mut agent: Arc<str> = runner.agent().name().into();
    while let Some(event) = stream.next().await {
        agent = event.agent.clone();
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
        sink(event);
    }
    let result = match stream.finish().await {
        Ok(result) => result,
        Err(error) => {
            if let Some(last) = last {
                sink(last);
            }
            let run = error.run();
            return RunEnd {
                status: EndStatus::Failed(error.kind()),
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
        sink(StreamEvent::new(kind, agent, result.run().turns()));
        return RunEnd {
            status: EndStatus::Failed(ErrorKind::Session),
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
        sink(last);
    }
    RunEnd {
        status,
        usage,
        request_usage,
    }
}
