//! A conversation with a team: several runs with one session, each with the agent of the last.

use std::io;
use std::time::{Duration, Instant};

use switchboard_core::run::RunStatus;
use switchboard_core::stream::{EventKind, ItemEvent, RunStream, StreamEvent};
use switchboard_core::{ErrorKind, Item, RunResult};
use switchboard_teamfile::Context;

use crate::conversation_store::ConversationStore;
use crate::event_line::{EventLine, rounded};
use crate::event_sink::EventSink;
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;
use crate::run_error;
use crate::signals::{Signal, Signals};
use crate::trace_file::TraceFile;

/// The time between calls of [`EventSink::tick`].
const TICK: Duration = Duration::from_millis(100);

/// A conversation with a team.
pub(crate) struct Conversation {
    team: LoadedTeam,
    store: ConversationStore,
    /// The name of the agent that has the conversation.
    agent: String,
    /// Set if a conversation of another team is taken over.
    takes_over: bool,
    /// The agent that has the stored conversation, and the one that gets it instead.
    given_agent: Option<(String, String)>,
    trace: Option<TraceFile>,
    began: Instant,
}

/// The outcome of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunOutcome {
    /// The run has its final output.
    Finished,
    /// The user stopped the run.
    Stopped(Signal),
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
                    Some(stored) => given_agent = Some((stored, agent.clone())),
                    None => store.set_agent(&agent).await?,
                }
                agent
            }
            None => {
                let stored = store.agent().await?;
                stored.unwrap_or_else(|| team.open.start().name().to_owned())
            }
        };
        Ok(Self {
            agent,
            takes_over: false,
            given_agent,
            team,
            store,
            trace,
            began: Instant::now(),
        })
    }

    /// Goes on with a conversation of another team as well.
    pub(crate) fn take_over(mut self, takes_over: bool) -> Self {
        self.takes_over = takes_over;
        self
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
        self.store.close().await;
    }

    /// Deletes the conversation and begins again with the team's first agent.
    pub(crate) async fn reset(&mut self) -> Result<(), Failure> {
        self.store.clear().await?;
        self.agent = self.team.open.start().name().to_owned();
        Ok(())
    }

    /// Sends a message to the team, and writes the events of the run.
    pub(crate) async fn send(
        &mut self,
        message: &str,
        sink: &mut dyn EventSink,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        let mut stream = self.stream(message);
        let mut stopped_by = None;
        let mut incomplete_message = String::new();
        let mut last = None;
        let mut tick = tokio::time::interval(TICK);
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
                event = stream.next() => event,
                _ = tick.tick() => {
                    sink.tick()?;
                    continue;
                }
            };
            let Some(event) = event else { break };
            match &event.kind {
                // The events of the provider would double the output.
                EventKind::Raw { .. } => continue,
                // Written below, once the conversation is stored.
                EventKind::RunFinished { .. }
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
                let stored = self.store_stopped(&result, &incomplete_message).await;
                self.refresh_agent(result.last_agent().name()).await;
                if let Err(failure) = stored {
                    return self.write_store_failure(&result, &failure, sink);
                }
                self.write_last(last, sink)?;
                Ok(match result.status() {
                    RunStatus::Completed => RunOutcome::Finished,
                    _ => RunOutcome::Stopped(stopped_by.unwrap_or(Signal::Interrupt)),
                })
            }
            Err(error) => {
                if let Some(run) = error.run() {
                    self.refresh_agent(run.agent()).await;
                }
                self.write_last(last, sink)?;
                if let Some(help) = run_error::help(&error) {
                    sink.write_help(help)?;
                }
                Ok(RunOutcome::Failed(run_error::exit(&error)))
            }
        }
    }

    fn stream(&self, message: &str) -> RunStream<Context> {
        let runner = self.team.runner().session(self.store.conversation());
        let mut runner = runner.take_over_conversations(self.takes_over);
        if let Some((stored, given)) = &self.given_agent {
            runner = runner.stored_agent(stored.as_str(), given.as_str());
        }
        match &self.trace {
            Some(trace) => runner.tracer(trace.clone()).stream(message),
            None => runner.stream(message),
        }
    }

    /// Stores the message of a run that the user has stopped, and the part of the answer that the user
    /// has read. The run itself stores whole turns only.
    async fn store_stopped(
        &self,
        result: &RunResult<Context>,
        incomplete_message: &str,
    ) -> Result<(), Failure> {
        if result.status() == RunStatus::Completed || incomplete_message.trim().is_empty() {
            return Ok(());
        }
        let mut items = result.run().unsaved_items().to_vec();
        items.push(Item::assistant(incomplete_message));
        self.store.append(&items).await
    }

    /// Reads which agent gets the next message; `last` if that cannot be read.
    async fn refresh_agent(&mut self, last: &str) {
        let stored = self.store.agent().await.ok().flatten();
        // Once a turn is stored, the conversation is with the agent that was given.
        let is_stored = |(from, _): &(String, String)| stored.as_ref() != Some(from);
        if self.given_agent.as_ref().is_some_and(is_stored) {
            self.given_agent = None;
        }
        self.agent = stored.unwrap_or_else(|| last.to_owned());
    }

    /// Writes that the run has failed, as the conversation could not be stored after it.
    fn write_store_failure(
        &self,
        result: &RunResult<Context>,
        failure: &Failure,
        sink: &mut dyn EventSink,
    ) -> Result<RunOutcome, Failure> {
        let (message, help) = failure.message_and_help();
        let kind = EventKind::run_failed(ErrorKind::Session, message, result.run());
        let turns = result.run().turns();
        self.write(StreamEvent::new(kind, &*self.agent, turns), sink)?;
        if let Some(help) = help {
            sink.write_help(&help)?;
        }
        Ok(RunOutcome::Failed(failure.exit()))
    }

    fn write_last(&self, event: Option<StreamEvent>, sink: &mut dyn EventSink) -> io::Result<()> {
        match event {
            Some(event) => self.write(event, sink),
            None => Ok(()),
        }
    }

    fn write(&self, event: StreamEvent, sink: &mut dyn EventSink) -> io::Result<()> {
        let at = rounded(self.began.elapsed().as_secs_f64());
        sink.write(&EventLine { event, at })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
}
