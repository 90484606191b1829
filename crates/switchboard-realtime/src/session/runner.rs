//! Opening realtime sessions.

use std::fmt;
use std::sync::{Arc, Mutex};

use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::{OutputGuardrail, ToolGuardrail};
use switchboard_core::handle::IntoHandle;
use switchboard_core::hooks::HooksHandle;
use switchboard_core::run::ContextSource;
use switchboard_core::session::SessionHandle;
use switchboard_core::{ErrorKind, Item, RunConfig};
use tokio::sync::mpsc;

use super::RealtimeSession;
use super::agents::Agents;
use super::driver::{Driver, Work};
use super::event_queue::{EventQueue, QueueLimits};
use super::handle::RealtimeHandle;
use super::keeper::Keeper;
use crate::agent::RealtimeAgent;
use crate::conversation::to_realtime_items;
use crate::error::RealtimeError;
use crate::event::RealtimeEvent;
use crate::history::RealtimeHistory;
use crate::items::RealtimeItem;
use crate::machine::{MachineSettings, RealtimeMachine};
use crate::model::{
    PlaybackTracker, RealtimeModelConfig, RealtimeModelHandle, RealtimeModelSettings,
};
use crate::policy::RealtimePolicy;

/// The number of requests that wait for the driver.
const REQUESTS: usize = 32;

/// Opens realtime sessions that begin with one agent.
///
/// A session needs a tokio runtime with time. `S` is `()` until the runner is given a context, and
/// `Arc<C>` afterwards; agents without a context need none.
#[must_use]
pub struct RealtimeRunner<C = (), S = ()> {
    agent: RealtimeAgent<C>,
    context: S,
    model: Option<RealtimeModelHandle>,
    settings: RealtimeModelSettings,
    connection: RealtimeModelSettings,
    config: RunConfig<C>,
    machine: MachineSettings,
    limits: QueueLimits,
    playback: Option<PlaybackTracker>,
    history: Vec<RealtimeItem>,
    session: Option<SessionHandle>,
    is_untraced: bool,
}

impl<C> RealtimeRunner<C> {
    /// Creates a runner whose sessions begin with `agent`.
    pub fn new(agent: &RealtimeAgent<C>) -> Self {
        Self {
            agent: agent.clone(),
            context: (),
            model: None,
            settings: RealtimeModelSettings::default(),
            connection: RealtimeModelSettings::default(),
            config: RunConfig::default(),
            machine: MachineSettings::default(),
            limits: QueueLimits {
                events: 1024,
                audio_bytes: 4 << 20,
            },
            playback: None,
            history: Vec::new(),
            session: None,
            is_untraced: false,
        }
    }

    /// Sets the application's context, which every callback gets.
    pub fn context(self, context: impl Into<Arc<C>>) -> RealtimeRunner<C, Arc<C>> {
        RealtimeRunner {
            agent: self.agent,
            context: context.into(),
            model: self.model,
            settings: self.settings,
            connection: self.connection,
            config: self.config,
            machine: self.machine,
            limits: self.limits,
            playback: self.playback,
            history: self.history,
            session: self.session,
            is_untraced: self.is_untraced,
        }
    }
}

impl<C, S> RealtimeRunner<C, S> {
    /// Sets the model.
    pub fn model(mut self, model: impl Into<RealtimeModelHandle>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the settings of the session, which all agents share. Instructions, tools and handoffs are
    /// the agents' own.
    pub fn model_settings(mut self, settings: RealtimeModelSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets settings that override those of the session, and the first agent's instructions. All but the
    /// instructions outlive handoffs.
    pub fn connection_settings(mut self, settings: RealtimeModelSettings) -> Self {
        self.connection = settings;
        self
    }

    /// Sets the policy, instead of [`RealtimePolicy::production`].
    pub fn policy(mut self, policy: RealtimePolicy) -> Self {
        self.machine.policy = policy;
        self
    }

    /// Runs tools one at a time, not several in the background.
    pub fn one_tool_at_a_time(mut self) -> Self {
        self.machine.async_tool_calls = false;
        self
    }

    /// Adds a guardrail on what any agent says, after the agents' own.
    pub fn output_guardrail(mut self, guardrail: OutputGuardrail<C>) -> Self {
        self.config.output_guardrails.push(guardrail);
        self
    }

    /// Adds a guardrail on every tool, after those of the tool and its agent.
    pub fn tool_guardrail(mut self, guardrail: ToolGuardrail<C>) -> Self {
        self.config.tool_guardrails.push(guardrail);
        self
    }

    /// Adds hooks of the session.
    pub fn hooks<M>(mut self, hooks: impl IntoHandle<HooksHandle<C>, M>) -> Self {
        self.config.hooks.push(hooks.into_handle());
        self
    }

    /// Sets the number of characters after which output guardrails are asked again; 100 unless set.
    pub fn debounce_text_length(mut self, length: usize) -> Self {
        self.machine.debounce_text_length = length;
        self
    }

    /// Asks tool guardrails before a person is asked for approval, whatever the policy.
    pub fn guardrails_before_approval(mut self) -> Self {
        self.machine.guardrails_before_approval = true;
        self
    }

    /// Changes the settings that sessions share with runs: hooks, guardrails, texts of tool errors, the
    /// tracer. Those that only runs have are ignored.
    pub fn configure(mut self, change: impl FnOnce(&mut RunConfig<C>)) -> Self {
        change(&mut self.config);
        self
    }

    /// Asks the provider to keep no trace of the session.
    pub fn provider_tracing_off(mut self) -> Self {
        self.is_untraced = true;
        self
    }

    /// Passes on the events of the model as they come, as [`RealtimeEvent::Raw`].
    pub fn raw_events(mut self) -> Self {
        self.machine.raw_events = true;
        self
    }

    /// Sets the record of what is played to the user, by which interruptions are cut.
    pub fn playback(mut self, playback: PlaybackTracker) -> Self {
        self.playback = Some(playback);
        self
    }

    /// Begins with a conversation. Nothing in it is run or answered again.
    pub fn history(mut self, items: impl IntoIterator<Item = RealtimeItem>) -> Self {
        self.history = items.into_iter().collect();
        self
    }

    /// Keeps the conversation in a session: it begins with what is stored there, with the agent that has
    /// it if it is a [`Conversation`](switchboard_core::conversation::Conversation), and each finished
    /// turn is written back. A text run with the same session goes on with it, and the other way round.
    ///
    /// Close the session to write the rest: dropping it writes only what is on its way.
    ///
    /// ```
    /// use switchboard_core::conversation::Conversations;
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, Runner};
    /// use switchboard_realtime::testing::ScriptedRealtimeModel;
    /// use switchboard_realtime::{RealtimeAgent, RealtimeRunner};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let stored = Conversations::in_memory().get("customer-42");
    /// let desk: Agent = Agent::new("Desk");
    /// let text = ScriptedModel::new().say("Your bill is 12 euros.");
    /// Runner::new(&desk).model(text).session(&stored).run("What is my bill?").await?;
    ///
    /// let spoken = ScriptedRealtimeModel::new();
    /// let desk = RealtimeAgent::try_from(&desk)?;
    /// let runner = RealtimeRunner::new(&desk).model(spoken.clone()).session(&stored);
    /// let session = runner.connect().await?;
    /// assert_eq!(spoken.configs()[0].history.len(), 2);
    /// session.close().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn session<M>(mut self, session: impl IntoHandle<SessionHandle, M>) -> Self {
        self.session = Some(session.into_handle());
        self
    }

    /// Sets the limits of the events that wait for the reader: their number, and the bytes of their audio.
    pub fn event_limits(mut self, events: usize, audio_bytes: usize) -> Self {
        self.limits = QueueLimits {
            events,
            audio_bytes,
        };
        self
    }

    /// Connects, and opens a session.
    ///
    /// # Errors
    /// If the agent's instructions, tools or handoffs cannot be made, or the model cannot be connected.
    pub async fn connect(self) -> Result<RealtimeSession<C>, RealtimeError>
    where
        C: Send + Sync + 'static,
        S: ContextSource<C>,
    {
        let Some(model) = self.model else {
            let message = "the session has no model; set one with RealtimeRunner::model";
            return Err(RealtimeError::new(ErrorKind::Configuration, message));
        };
        let mut config = self.config;
        let output_guardrails = std::mem::take(&mut config.output_guardrails);
        let base = self.settings.overridden_by(&self.connection);
        let policy = self.machine.policy.clone();
        let agents = Arc::new(Agents::new(
            &self.agent,
            Arc::new(config),
            self.context.context(),
            base,
            self.is_untraced,
            output_guardrails,
            policy.call_hooks,
        ));
        let mut history = self.history;
        let mut first = agents.key(&self.agent);
        if let Some(session) = &self.session {
            let (stored, agent) = load(session).await?;
            history.splice(0..0, stored);
            let known = agent.and_then(|name| agents.by_name(&name));
            first = known.map_or(first, |known| known.key);
        }
        let mut current = agents.resolve(&first).await?;
        current.settings = current.settings.overridden_by(&self.connection);
        let mut opening = RealtimeModelConfig::new(current.settings.clone());
        opening.history = history.clone();
        opening.playback = self.playback;
        opening.raw_events = self.machine.raw_events;
        opening.policy = policy.model_policy();
        let connection = model.connect(opening).await?;
        let (sender, model) = connection.split();
        let history: RealtimeHistory = history.into_iter().collect();
        let machine = RealtimeMachine::new(current, self.machine).with_history(history.clone());
        let machine = Arc::new(Mutex::new(machine));
        let events = EventQueue::new(self.limits);
        events.push(RealtimeEvent::HistoryUpdated(history));
        let (requests, receiver) = mpsc::channel(REQUESTS);
        let handle = RealtimeHandle::new(requests, machine.clone(), agents.clone());
        let keeper = self
            .session
            .map(|session| Keeper::begin(session, events.clone()));
        let driver = Driver {
            machine,
            agents,
            sender,
            model,
            requests: receiver,
            events: events.clone(),
            delivers_before_error: policy.events_before_error,
            keeper,
            work: Work::default(),
        };
        let driver = tokio::spawn(driver.drive()).abort_handle();
        Ok(RealtimeSession {
            events,
            handle,
            driver,
        })
    }
}

/// Loads a stored conversation, and the name of the agent that has it.
async fn load(
    session: &SessionHandle,
) -> Result<(Vec<RealtimeItem>, Option<Arc<str>>), RealtimeError> {
    let failed = |error: BoxError| {
        let message = format!("the stored conversation could not be loaded: {error}");
        RealtimeError::new(ErrorKind::Session, message)
    };
    let items = session.load(session.limit()).await.map_err(failed)?;
    let items: Vec<Item> = items.iter().cloned().collect();
    let agent = match session.conversation() {
        Some(conversation) => conversation.agent().await.map_err(failed)?,
        None => None,
    };
    Ok((to_realtime_items(&items), agent))
}

impl<C, S> fmt::Debug for RealtimeRunner<C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealtimeRunner")
            .field("agent", &self.agent)
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}
