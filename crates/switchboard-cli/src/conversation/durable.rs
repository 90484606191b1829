//! Answers that survive the end of the program.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchboard_core::model::Usage;
use switchboard_core::{ErrorKind, EventKind, StreamEvent};
use switchboard_durable::{DurableRun, DurableRunner, RunEvent, RunStatus};
use switchboard_teamfile::Context;

use super::{Conversation, RunOutcome, TICK, sleep_until};
use crate::approvals::WaitingRun;
use crate::args::EngineOptions;
use crate::durable::{self, failure};
use crate::event_line::is_raw;
use crate::event_sink::EventSink;
use crate::failure::{Exit, Failure};
use crate::run_error;
use crate::signals::{Signal, Signals};

/// The time that steps in progress have to end when the program does.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// The durable runs of a conversation.
pub(crate) struct Durable {
    runner: DurableRunner<Context>,
    /// The options with which another command finds its runs.
    options: String,
    /// The name of the next message.
    key: Option<String>,
    /// The last run, and the position of its last event that was shown.
    run: Option<(DurableRun<Context>, Option<u64>)>,
}

impl Durable {
    /// Lets steps in progress end. Runs go on in another process.
    pub(super) async fn drain(&self) {
        self.runner.drain(DRAIN_TIME).await;
    }
}

impl Conversation {
    /// Lets answers survive the end of the program.
    pub(crate) async fn make_durable(
        &mut self,
        engine: &EngineOptions,
        address: Option<&str>,
    ) -> Result<(), Failure> {
        self.give_now().await?;
        let runner = self.team.runner();
        let mut runner = runner.take_over_conversations(self.takes_over);
        runner = runner.hooks(self.last_request.clone());
        if let Some(source) = &self.source {
            runner = runner.team_source(Arc::clone(source));
        }
        let store = self.store.conversation().conversations();
        self.durable = Some(Durable {
            runner: durable::runner(store, address, engine, None, runner)?,
            options: durable::options_text(engine, address),
            key: None,
            run: None,
        });
        Ok(())
    }

    /// Names the next message, where answers are durable.
    pub(crate) fn name_message(&mut self, key: Option<String>) {
        if let Some(durable) = &mut self.durable {
            durable.key = key;
        }
    }

    /// The identifier of the last durable run, and the options with which another command finds it.
    pub(crate) fn durable_run(&self) -> Option<(&str, &str)> {
        let durable = self.durable.as_ref()?;
        let (run, _) = durable.run.as_ref()?;
        Some((run.id(), &durable.options))
    }

    /// Attaches to a durable run, and goes on with it. Its events are shown from here on.
    pub(crate) async fn go_on_with(
        &mut self,
        id: &str,
        sink: &mut dyn EventSink,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        let Some(durable) = &mut self.durable else {
            return Ok(RunOutcome::Finished);
        };
        let run = durable.runner.attach(id).await.map_err(failure)?;
        let record = run.record().await.map_err(failure)?;
        durable.run = Some((run.clone(), None));
        if !record.is_settled() || matches!(record.status, RunStatus::Stopped { .. }) {
            run.resume().await.map_err(failure)?;
        }
        self.follow(run, None, sink, signals).await
    }

    pub(super) async fn send_durable(
        &mut self,
        message: &str,
        sink: &mut dyn EventSink,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        let Some(durable) = &mut self.durable else {
            return Ok(RunOutcome::Finished);
        };
        let key = durable.key.take().unwrap_or_else(durable::new_key);
        let name = self.store.conversation().name();
        let run = durable.runner.start(name, &key, message).await;
        let run = run.map_err(failure)?;
        durable.run = Some((run.clone(), None));
        self.follow(run, None, sink, signals).await
    }

    pub(super) async fn resume_durable(
        &mut self,
        waiting: WaitingRun,
        sink: &mut dyn EventSink,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        let Some((run, shown)) = self
            .durable
            .as_ref()
            .and_then(|durable| durable.run.clone())
        else {
            return Ok(RunOutcome::Finished);
        };
        run.reply(waiting.into_replies()).await.map_err(failure)?;
        self.follow(run, shown, sink, signals).await
    }

    /// Writes the events of a run after a position, until it ends or waits.
    async fn follow(
        &mut self,
        run: DurableRun<Context>,
        after: Option<u64>,
        sink: &mut dyn EventSink,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        let mut shown = after;
        let mut events = run.events(after);
        let mut tick = tokio::time::interval(TICK);
        let deadline = self.team.timeout.map(|timeout| Instant::now() + timeout);
        let mut stopped_by = None;
        let mut timed_out = false;
        let mut open_run = OpenRun::default();
        loop {
            let event = tokio::select! {
                biased;
                signal = signals.next() => {
                    // Asked to end, the program leaves the run to others.
                    if stopped_by.is_some() || signal == Signal::Terminate {
                        return Ok(RunOutcome::Stopped(signal));
                    }
                    stopped_by = Some(signal);
                    let _ = run.cancel().await;
                    continue;
                }
                () = sleep_until(deadline), if !timed_out => {
                    timed_out = true;
                    let _ = run.cancel().await;
                    continue;
                }
                event = events.next() => event.map_err(failure)?,
                _ = tick.tick() => {
                    sink.tick()?;
                    continue;
                }
            };
            let Some(event) = event else { break };
            shown = Some(event.position());
            match event {
                RunEvent::Event { event, .. } if !is_raw(&event) => {
                    open_run.see(&event);
                    self.write(*event, sink)?;
                }
                RunEvent::Retracted { from, to, .. } => {
                    self.write(durable::retraction(&self.agent, from, to)?, sink)?;
                }
                _ => {}
            }
        }
        if let Some(durable) = &mut self.durable {
            durable.run = Some((run.clone(), shown));
        }
        let status = run.record().await.map_err(failure)?.status;
        let agent = self.agent.clone();
        self.refresh_agent(&agent).await;
        if status == RunStatus::Cancelled
            && let Some(stopped) = open_run.stopped()?
        {
            self.write(stopped, sink)?;
        }
        Ok(match status {
            RunStatus::Done { .. } => RunOutcome::Finished,
            RunStatus::Waiting { .. } => {
                let result = run.result().await.map_err(failure)?;
                match result {
                    Ok(result) => self.waiting = Some(result.into_run()),
                    Err(error) => {
                        return Err(Failure::Message {
                            exit: Exit::Failed,
                            message: error.to_string(),
                            help: None,
                        });
                    }
                }
                RunOutcome::Waiting
            }
            RunStatus::Cancelled if timed_out => {
                sink.write_failure(run_error::TOOK_TOO_LONG)?;
                RunOutcome::TimedOut
            }
            RunStatus::Cancelled => RunOutcome::Stopped(stopped_by.unwrap_or(Signal::Interrupt)),
            RunStatus::Failed { kind, .. } => RunOutcome::Failed(exit_of(kind)),
            RunStatus::Stopped { reason } => {
                return Err(Failure::Message {
                    exit: Exit::Failed,
                    message: reason,
                    help: Some(
                        "resume it with the team file as it was, or cancel it with `switchboard runs cancel`"
                            .to_owned(),
                    ),
                });
            }
            _ => RunOutcome::Failed(Exit::Failed),
        })
    }
}

/// A run whose events have begun and not ended. One that is cancelled may have no last event.
#[derive(Default)]
struct OpenRun {
    /// The agent that has the conversation; `None` outside of a run.
    agent: Option<Arc<str>>,
    turn: u32,
    usage: Usage,
}

impl OpenRun {
    /// Takes the next event.
    fn see(&mut self, event: &StreamEvent) {
        match &event.kind {
            EventKind::RunStarted { .. } => {
                *self = Self {
                    agent: Some(event.agent.clone()),
                    ..Self::default()
                };
            }
            EventKind::RunFinished { .. }
            | EventKind::RunInterrupted { .. }
            | EventKind::RunStopped { .. }
            | EventKind::RunFailed { .. } => *self = Self::default(),
            kind if self.agent.is_some() => {
                self.agent = Some(event.agent.clone());
                self.turn = event.turn;
                if let EventKind::Usage { run, .. } = kind {
                    self.usage = *run;
                }
            }
            _ => {}
        }
    }

    /// The last event of a run that was stopped here; `None` outside of a run.
    fn stopped(&self) -> io::Result<Option<StreamEvent>> {
        let Some(agent) = &self.agent else {
            return Ok(None);
        };
        let json = serde_json::json!({
            "type": "run_stopped", "agent": agent, "turn": self.turn, "turns": self.turn, "usage": self.usage
        });
        Ok(Some(serde_json::from_value(json)?))
    }
}

/// The exit code for a kind of error.
fn exit_of(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Model => Exit::Model,
        ErrorKind::InputGuardrail
        | ErrorKind::OutputGuardrail
        | ErrorKind::HandoffGuardrail
        | ErrorKind::ToolGuardrail => Exit::Guardrail,
        _ => Exit::Failed,
    }
}
