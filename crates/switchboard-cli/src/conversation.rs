//! A conversation with a team: several runs with one session, each with the agent of the last.

mod durable;
mod last_request;

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchboard_core::run::RunStatus;
use switchboard_core::stream::{EventKind, ItemEvent, RunStream, StreamEvent};
use switchboard_core::{Error, ErrorKind, ModelRequest, Run, RunResult, Runner};
use switchboard_teamfile::Context;

use crate::approvals::WaitingRun;
use crate::conversation_store::ConversationStore;
use crate::event_line::{EventLine, is_raw, rounded};
use crate::event_sink::EventSink;
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;
use crate::run_error;
use crate::signals::{Signal, Signals};
use crate::trace_file::TraceFile;
use durable::Durable;
use last_request::LastRequest;

/// The time between calls of [`EventSink::tick`].
const TICK: Duration = Duration::from_millis(100);

/// A conversation with a team.
pub(crate) struct Conversation {
    team: LoadedTeam,
    /// The path of the team file. Sessions of one folder are those of many teams, most without names.
    source: Option<Arc<str>>,
    store: ConversationStore,
    /// The name of the agent that has the conversation.
    agent: String,
    /// Set if a conversation of another team is taken over.
    takes_over: bool,
    given_agent: Option<GivenAgent>,
    /// The run that waits for decisions.
    waiting: Option<Run>,
    trace: Option<TraceFile>,
    /// The runner of durable runs, where they are durable.
    durable: Option<Durable>,
    /// The request that a model was sent last.
    last_request: LastRequest,
    began: Instant,
}

/// A stored conversation that another agent gets with its next turn.
struct GivenAgent {
    /// The agent that has the stored conversation.
    stored: String,
    /// The agent that gets it.
    given: String,
    /// The number of items that are stored. Once there are more, the conversation was given.
    items: usize,
}

/// The outcome of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunOutcome {
    /// The run has its final output.
    Finished,
    /// Calls of the run wait for decisions.
    Waiting,
    /// The user stopped the run.
    Stopped(Signal),
    /// The run took longer than `--timeout`.
    TimedOut,
    /// The run failed; the failure was written to the sink.
    Failed(Exit),
}

impl Conversation {
    /// Continues the stored conversation with `agent`, or else with the agent that had it, or else
    /// with the team's first agent.
    pub(crate) async fn new(
        team: LoadedTeam,
        store: ConversationStore,
        agent: Option<&str>,
        trace: Option<TraceFile>,
    ) -> Result<Self, Failure> {
        let mut given_agent = None;
        let agent = match agent {
            Some(name) => {
                let agent = team.agent(name)?.name().to_owned();
                match store.agent().await? {
                    // Stored with the next turn: the conversation may be refused.
                    Some(stored) => {
                        given_agent = Some(GivenAgent {
                            stored,
                            given: agent.clone(),
                            items: store.items().await?.len(),
                        });
                    }
                    None => store.set_agent(&agent).await?,
                }
                agent
            }
            None => {
                let stored = store.agent().await?;
                stored.unwrap_or_else(|| team.open.start().name().to_owned())
            }
        };
        let path = std::fs::canonicalize(&team.name).ok();
        Ok(Self {
            source: path.map(|path| path.display().to_string().into()),
            agent,
            takes_over: false,
            given_agent,
            waiting: None,
            team,
            store,
            trace,
            durable: None,
            last_request: LastRequest::default(),
            began: Instant::now(),
        })
    }

    /// Goes on with a conversation of another team as well.
    pub(crate) fn take_over(mut self, takes_over: bool) -> Self {
        self.takes_over = takes_over;
        self
    }

    /// Gives the stored conversation to the agent of the command line now, and not with its next turn.
    pub(crate) async fn give_now(&mut self) -> Result<(), Failure> {
        match self.given_agent.take() {
            Some(given) => self.store.set_agent(&given.given).await,
            None => Ok(()),
        }
    }

    /// Checks that the team can go on with the stored conversation.
    pub(crate) async fn check(&self) -> Result<(), Failure> {
        self.check_with_help(run_error::help).await
    }

    /// Checks that the team can go on with the run that waits in the stored conversation.
    pub(crate) async fn check_waiting(&self) -> Result<(), Failure> {
        self.check_with_help(|_error| Some(run_error::CHANGED_TEAM_HELP.into()))
            .await
    }

    async fn check_with_help(
        &self,
        help: impl FnOnce(&Error) -> Option<Cow<'static, str>>,
    ) -> Result<(), Failure> {
        let checked = self.runner().check_conversation().await;
        checked.map_err(|error| Failure::Message {
            exit: run_error::exit(&error),
            help: help(&error).map(Cow::into_owned),
            message: error.to_string(),
        })
    }

    /// The name of the agent that has the conversation.
    pub(crate) fn agent(&self) -> &str {
        &self.agent
    }

    /// The team.
    pub(crate) fn team(&self) -> &LoadedTeam {
        &self.team
    }

    /// The storage of the conversation.
    pub(crate) fn store(&self) -> &ConversationStore {
        &self.store
    }

    /// Closes the storage.
    pub(crate) async fn close(self) {
        if let Some(durable) = &self.durable {
            durable.drain().await;
        }
        self.store.close().await;
    }

    /// Deletes the conversation and begins again with the team's first agent.
    pub(crate) async fn reset(&mut self) -> Result<(), Failure> {
        self.store.clear().await?;
        self.given_agent = None;
        self.waiting = None;
        self.agent = self.team.open.start().name().to_owned();
        Ok(())
    }

    /// Replaces the team, as with another model or another context.
    pub(crate) fn set_team(&mut self, team: LoadedTeam) {
        self.team = team;
    }

    /// The request that a model was sent last.
    pub(crate) fn last_request(&self) -> Option<ModelRequest> {
        self.last_request.get()
    }

    /// Gives the conversation to the agent of a name that the user typed.
    pub(crate) async fn give_to(&mut self, name: &str) -> Result<(), Failure> {
        let agent = self.team.agent(name)?.name().to_owned();
        self.store.set_agent(&agent).await?;
        self.given_agent = None;
        self.agent = agent;
        Ok(())
    }

    /// Takes back the last message, with everything that followed. Returns the message if it was
    /// text; `None` if there is nothing to take back.
    pub(crate) async fn undo(&mut self) -> Result<Option<String>, Failure> {
        let record = self.store.record().await?;
        let items = record.iter().filter_map(|entry| entry.content.item());
        let mut messages = items.filter(|item| item.role().as_deref() == Some("user"));
        let message = messages.next_back().and_then(|item| item.text());
        let message = message.unwrap_or_default().into_owned();
        if !self.store.undo().await? {
            return Ok(None);
        }
        self.waiting = None;
        let start = self.team.open.start().name().to_owned();
        self.refresh_agent(&start).await;
        Ok(Some(message))
    }

    /// Takes back what is left of a message that was not stored: marks of what was refused at `position` and after it.
    pub(crate) async fn undo_unstored(&mut self, position: u64) -> Result<(), Failure> {
        self.store.take_back_marks(position).await?;
        let agent = self.agent.clone();
        self.refresh_agent(&agent).await;
        Ok(())
    }

    /// Goes on with a copy of the conversation under another name.
    pub(crate) async fn fork(&mut self, name: &str) -> Result<(), Failure> {
        self.store.fork(name).await
    }

    /// Sends a message to the team, and writes the events of the run.
    pub(crate) async fn send(
        &mut self,
        message: &str,
        sink: &mut dyn EventSink,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        self.waiting = None;
        if self.durable.is_some() {
            return self.send_durable(message, sink, signals).await;
        }
        let stream = self.runner().stream(message);
        self.drive(stream, sink, signals).await
    }

    /// The run that waits for decisions.
    pub(crate) fn waiting(&self) -> Option<&Run> {
        self.waiting.as_ref()
    }

    /// Reads the run that waits in the session. Returns `false` if none does.
    pub(crate) async fn load_waiting(&mut self) -> Result<bool, Failure> {
        self.waiting = self.store.waiting_run().await?;
        Ok(self.waiting.is_some())
    }

    /// Writes the events of the run that waits, which end with the calls that wait.
    pub(crate) async fn show_waiting(
        &mut self,
        sink: &mut dyn EventSink,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        match self.waiting.take() {
            Some(run) => self.resume(WaitingRun::new(run), sink, signals).await,
            None => Ok(RunOutcome::Finished),
        }
    }

    /// Goes on with a run that waited, and writes its events.
    pub(crate) async fn resume(
        &mut self,
        run: WaitingRun,
        sink: &mut dyn EventSink,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        self.waiting = None;
        for item in &run.run().to_input_list() {
            if let (Some(call_id), Some(tool)) = (item.call_id(), item.name()) {
                sink.note_call(&call_id, &tool);
            }
        }
        if self.durable.is_some() {
            return self.resume_durable(run, sink, signals).await;
        }
        let stream = self.runner().resume_stream(run.into_run());
        let stream = stream.map_err(|error| {
            let changed = run_error::changed_team(&error);
            Failure::Message {
                exit: run_error::exit(&error),
                help: match changed {
                    Some(_) => Some(run_error::CHANGED_TEAM_HELP.to_owned()),
                    None => run_error::help(&error).map(Cow::into_owned),
                },
                message: changed.unwrap_or_else(|| error.to_string()),
            }
        })?;
        self.drive(stream, sink, signals).await
    }

    /// Writes the events of a run.
    async fn drive(
        &mut self,
        mut stream: RunStream<Context>,
        sink: &mut dyn EventSink,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        let mut stopped_by = None;
        let mut incomplete_message = String::new();
        let mut last = None;
        let mut tick = tokio::time::interval(TICK);
        let deadline = self.team.timeout.map(|timeout| Instant::now() + timeout);
        let mut timed_out = false;
        loop {
            let event = tokio::select! {
                biased;
                // First, so that a response that never pauses can be stopped.
                signal = signals.next() => {
                    // After a second signal nothing is waited for.
                    if stopped_by.is_some() {
                        return Ok(RunOutcome::Stopped(signal));
                    }
                    stopped_by = Some(signal);
                    stream.stop();
                    continue;
                }
                () = sleep_until(deadline), if !timed_out => {
                    timed_out = true;
                    stream.stop();
                    continue;
                }
                event = stream.next() => event,
                _ = tick.tick() => {
                    sink.tick()?;
                    continue;
                }
            };
            let Some(event) = event else { break };
            // The events of the provider would double the output.
            if is_raw(&event) {
                continue;
            }
            match &event.kind {
                // Written below, once the conversation is stored.
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
            self.write(event, sink)?;
        }
        match stream.finish().await {
            Ok(result) => {
                // The run itself stores whole turns only.
                let run = result.run();
                let stored = self.runner().store_stopped(run, &incomplete_message).await;
                self.refresh_agent(result.last_agent().name()).await;
                if let Err(error) = stored {
                    return self.write_store_failure(&result, &error, sink);
                }
                self.write_last(last, sink)?;
                let status = result.status();
                if status == RunStatus::Interrupted {
                    self.waiting = Some(result.into_run());
                }
                Ok(match (status, stopped_by) {
                    (RunStatus::Completed, _) => RunOutcome::Finished,
                    (RunStatus::Interrupted, None) => RunOutcome::Waiting,
                    (_, None) if timed_out => {
                        sink.write_failure(run_error::TOOK_TOO_LONG)?;
                        RunOutcome::TimedOut
                    }
                    (_, signal) => RunOutcome::Stopped(signal.unwrap_or(Signal::Interrupt)),
                })
            }
            Err(error) => {
                if let Some(run) = error.run() {
                    if !run_error::is_store_failure(&error) {
                        self.refresh_agent(run.agent()).await;
                    } else if self.given_agent.is_none() {
                        // A store that has just failed would be waited for a second time.
                        run.agent().clone_into(&mut self.agent);
                    }
                }
                self.write_last(last, sink)?;
                if let Some(help) = run_error::help(&error) {
                    sink.write_help(&help)?;
                }
                Ok(RunOutcome::Failed(run_error::exit(&error)))
            }
        }
    }

    /// A runner of the conversation's team, with its store.
    pub(crate) fn runner(&self) -> Runner<Context, Arc<Context>> {
        let runner = self.team.runner().session(self.store.conversation());
        let mut runner = runner.take_over_conversations(self.takes_over);
        runner = runner.hooks(self.last_request.clone());
        if let Some(source) = &self.source {
            runner = runner.team_source(source.clone());
        }
        if let Some(GivenAgent { stored, given, .. }) = &self.given_agent {
            runner = runner.stored_agent(stored.as_str(), given.as_str());
        }
        match &self.trace {
            Some(trace) => runner.tracer(trace.clone()),
            None => runner,
        }
    }

    /// Reads which agent gets the next message; `last` if that cannot be read.
    async fn refresh_agent(&mut self, last: &str) {
        let stored = self.store.agent().await.ok().flatten();
        if let Some(given) = &self.given_agent
            && (self.store.items().await).is_ok_and(|items| items.len() > given.items)
        {
            self.given_agent = None;
        }
        self.agent = match (&self.given_agent, stored) {
            (Some(given), _) => given.given.clone(),
            (None, Some(stored)) => stored,
            (None, None) => last.to_owned(),
        };
    }

    /// Writes that the run has failed, as the conversation could not be stored after it.
    fn write_store_failure(
        &self,
        result: &RunResult<Context>,
        error: &Error,
        sink: &mut dyn EventSink,
    ) -> Result<RunOutcome, Failure> {
        let kind = EventKind::run_failed(ErrorKind::Session, error.to_string(), result.run());
        let turns = result.run().turns();
        self.write(StreamEvent::new(kind, &*self.agent, turns), sink)?;
        if let Some(help) = run_error::help(error) {
            sink.write_help(&help)?;
        }
        Ok(RunOutcome::Failed(run_error::exit(error)))
    }

    fn write_last(&self, event: Option<StreamEvent>, sink: &mut dyn EventSink) -> io::Result<()> {
        match event {
            Some(event) => self.write(event, sink),
            None => Ok(()),
        }
    }

    /// Writes an event that happens now.
    pub(crate) fn write(&self, event: StreamEvent, sink: &mut dyn EventSink) -> io::Result<()> {
        let at = rounded(self.began.elapsed().as_secs_f64());
        let is_start = matches!(event.kind, EventKind::RunStarted { .. });
        let mut line = EventLine::new(event, at);
        if is_start {
            line.context = self.team.chosen_context();
        }
        sink.write(&line)
    }
}

/// Waits until this time; for ever without one.
pub(crate) async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use std::ops::Range;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::SystemTime;

    use switchboard_core::callback::BoxError;
    use switchboard_core::conversation::{
        Commit, Committed, Conversations, Entry, Found, Head, ListQuery, MemoryStore, SearchQuery,
    };
    use switchboard_core::testing::ScriptedModel;
    use switchboard_teamfile::TeamFile;

    use super::*;

    /// The events of a conversation with two agents.
    async fn events_of(model: ScriptedModel, messages: &[&str]) -> Vec<StreamEvent> {
        let text = "[agents.Triage]\nhandoffs = [\"Billing\"]\n[agents.Billing]\n";
        let file = TeamFile::parse(text, "team.toml").unwrap();
        let open = file.open_options().model_handle(model).open().unwrap();
        let team = LoadedTeam::new(Path::new("team.toml"), open);
        let store = ConversationStore::in_memory();
        let mut conversation = Conversation::new(team, store, None, None).await.unwrap();
        let mut lines: Vec<EventLine> = Vec::new();
        let mut signals = Signals::listen().unwrap();
        for message in messages {
            let sent = conversation.send(message, &mut lines, &mut signals).await;
            sent.unwrap();
        }
        lines.into_iter().map(|line| line.event).collect()
    }

    #[tokio::test]
    async fn the_next_message_goes_to_the_agent_that_has_the_conversation() {
        let model = ScriptedModel::new()
            .call("transfer_to_billing", "{}")
            .say("Which bill?")
            .say("That one is paid.");
        let events = events_of(model, &["My bill", "The one of May"]).await;
        let started: Vec<(&str, Option<&str>)> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::RunStarted { input, .. } => Some((&*event.agent, input.as_deref())),
                _ => None,
            })
            .collect();
        assert_eq!(
            started,
            [
                ("Triage", Some("My bill")),
                ("Billing", Some("The one of May"))
            ]
        );
    }

    #[tokio::test]
    async fn the_events_are_those_of_the_stream_and_the_last_one_is_the_failure() {
        let model = ScriptedModel::new()
            .call("transfer_to_billing", "{}")
            .fail("no route to host");
        let events = events_of(model, &["Hi"]).await;
        let name = |event| serde_json::to_value(event).unwrap()["type"].clone();
        let types: Vec<_> = events.iter().map(name).collect();
        let expected = "run_started agent_updated turn_started usage item item handoff \
                        agent_updated turn_started run_failed";
        assert_eq!(types, expected.split(' ').collect::<Vec<_>>());
        let last = events.last().unwrap();
        let EventKind::RunFailed { error, turns, .. } = &last.kind else {
            panic!("{last:?}");
        };
        assert_eq!(
            (&*last.agent, *error, *turns),
            ("Billing", ErrorKind::Model, 1)
        );
    }

    /// A store on a server that is lost once the conversation is loaded. It counts the calls afterwards.
    #[derive(Clone, Default)]
    struct LostStore(MemoryStore, Arc<AtomicUsize>);

    impl LostStore {
        fn call<T>(&self) -> Result<T, BoxError> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Err("connection refused".into())
        }
    }

    impl switchboard_core::conversation::ConversationStore for LostStore {
        async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
            match self.1.load(Ordering::Relaxed) {
                0 => self.0.head(id).await,
                _ => self.call(),
            }
        }
        async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
            self.0.read(id, positions).await
        }
        async fn commit(&self, _: &str, _: Commit) -> Result<Committed, BoxError> {
            self.call()
        }
        async fn clear(&self, _: &str) -> Result<(), BoxError> {
            self.call()
        }
        async fn delete(&self, _: &str) -> Result<bool, BoxError> {
            self.call()
        }
        async fn delete_expired(&self, _: &str, _: SystemTime) -> Result<bool, BoxError> {
            self.call()
        }
        async fn list(&self, _: &ListQuery) -> Result<Vec<Head>, BoxError> {
            self.call()
        }
        async fn search(&self, _: &SearchQuery) -> Result<Vec<Found>, BoxError> {
            self.call()
        }
        async fn lease(&self, _: &str, _: &str, _: Duration) -> Result<bool, BoxError> {
            self.call()
        }
        async fn release(&self, _: &str, _: &str) -> Result<(), BoxError> {
            self.call()
        }
    }

    #[tokio::test]
    async fn a_store_that_is_lost_is_waited_for_once() {
        let file = TeamFile::parse("[agents.Triage]\n", "team.toml").unwrap();
        let model = ScriptedModel::new().say("Hello.");
        let open = file.open_options().model_handle(model).open().unwrap();
        let team = LoadedTeam::new(Path::new("team.toml"), open);
        let lost = LostStore::default();
        let store = ConversationStore::of(Conversations::new(lost.clone()).get("c"));
        let mut conversation = Conversation::new(team, store, None, None).await.unwrap();
        let mut lines: Vec<EventLine> = Vec::new();
        let mut signals = Signals::listen().unwrap();
        let sent = conversation.send("Hi", &mut lines, &mut signals).await;
        assert_eq!(sent.unwrap(), RunOutcome::Failed(Exit::Failed));
        assert_eq!(lost.1.load(Ordering::Relaxed), 1);
        assert_eq!(conversation.agent(), "Triage");
    }
}
