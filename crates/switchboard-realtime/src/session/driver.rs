//! The driver: carries out the machine's commands, and tells it what came of them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;
use switchboard_core::callback::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::agents::Agents;
use super::event_queue::EventQueue;
use super::handle::Request;
use super::keeper::Keeper;
use super::tasks::carry_out;
use crate::error::RealtimeError;
use crate::event::RealtimeEvent;
use crate::machine::{MachineCommand, MachineInput, RealtimeMachine, Task, TaskOutcome, Ticket};
use crate::model::{
    RealtimeModelCommand, RealtimeModelError, RealtimeModelErrorKind, RealtimeModelEvent,
    RealtimeSender,
};

/// One session in this process.
pub(super) struct Driver<C> {
    pub(super) machine: Arc<Mutex<RealtimeMachine>>,
    pub(super) agents: Arc<Agents<C>>,
    pub(super) sender: RealtimeSender,
    pub(super) model: BoxStream<'static, RealtimeModelEvent>,
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) events: EventQueue,
    /// Set if events that are queued come before an error.
    pub(super) delivers_before_error: bool,
    pub(super) keeper: Option<Keeper>,
    pub(super) work: Work,
}

type SendResult = Result<Vec<RealtimeModelEvent>, RealtimeModelError>;

/// The work in progress.
#[derive(Default)]
pub(super) struct Work {
    tasks: JoinSet<(Ticket, TaskOutcome)>,
    sends: VecDeque<(Ticket, RealtimeModelCommand)>,
    sending: Option<BoxFuture<'static, (Ticket, SendResult)>>,
    /// Events that commands have caused, and what else follows from the sending.
    sent: VecDeque<MachineInput>,
    replies: HashMap<Ticket, oneshot::Sender<Result<(), RealtimeError>>>,
    /// The number of requests so far.
    requests: Ticket,
    /// Set once the model's events have ended.
    has_ended: bool,
}

/// The next thing that has happened.
enum Next {
    Input(Box<MachineInput>),
    Request(Request),
    /// Nobody can send requests any more.
    Abandoned,
    /// A task has panicked.
    Broken,
}

impl<C: Send + Sync + 'static> Driver<C> {
    /// Drives the session until it is closed.
    pub(super) async fn drive(mut self) {
        while !self.lock(|machine| machine.is_closed()) {
            match self.next().await {
                Next::Input(input) => self.apply(*input).await,
                Next::Request(request) => self.take_request(request).await,
                Next::Broken => {
                    let message = "a task of the session has panicked";
                    let error = RealtimeModelError::new(RealtimeModelErrorKind::Other, message);
                    let context = None;
                    let event = RealtimeModelEvent::Exception { error, context };
                    self.apply(MachineInput::Model(event)).await;
                }
                Next::Abandoned => return,
            }
        }
    }

    fn lock<T>(&self, look: impl FnOnce(&mut RealtimeMachine) -> T) -> T {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut machine)
    }

    async fn next(&mut self) -> Next {
        let reads = self.lock(|machine| machine.reads()) && !self.work.has_ended;
        let work = &mut self.work;
        if let Some(input) = work.sent.pop_front() {
            return Next::Input(Box::new(input));
        }
        if work.sending.is_none()
            && let Some((send, command)) = work.sends.pop_front()
        {
            let sender = self.sender.clone();
            let sending = async move { (send, sender.send(command).await) };
            work.sending = Some(Box::pin(sending));
        }
        tokio::select! {
            biased;
            (send, sent) = poll_sending(&mut work.sending) => {
                work.sending = None;
                let (events, error) = match sent {
                    Ok(events) => (events, None),
                    Err(error) => (Vec::new(), Some(error)),
                };
                let mut inputs: VecDeque<_> = events.into_iter().map(MachineInput::Model).collect();
                let first = inputs.pop_front();
                let sent = MachineInput::Sent { send, error };
                let Some(first) = first else {
                    return Next::Input(Box::new(sent));
                };
                inputs.push_back(sent);
                work.sent = inputs;
                Next::Input(Box::new(first))
            }
            Some(done) = work.tasks.join_next(), if !work.tasks.is_empty() => match done {
                Ok((task, outcome)) => {
                    Next::Input(Box::new(MachineInput::TaskDone { task, outcome }))
                }
                Err(_) => Next::Broken,
            },
            request = self.requests.recv() => match request {
                Some(request) => Next::Request(request),
                None => Next::Abandoned,
            },
            event = self.model.next(), if reads => {
                work.has_ended = event.is_none();
                let event = event.unwrap_or(RealtimeModelEvent::EndOfStream);
                Next::Input(Box::new(MachineInput::Model(event)))
            }
        }
    }

    async fn take_request(&mut self, request: Request) {
        self.work.requests += 1;
        let ticket = self.work.requests;
        self.work.replies.insert(ticket, request.reply);
        let action = request.action;
        self.apply(MachineInput::User {
            request: ticket,
            action,
        })
        .await;
    }

    async fn apply(&mut self, input: MachineInput) {
        let (commands, has_spoken) =
            self.lock(|machine| (machine.apply(input), machine.has_spoken()));
        if has_spoken {
            self.agents.note_spoken();
        }
        for command in commands {
            self.carry_out(command).await;
        }
    }

    /// Writes what is finished to the store.
    fn keep(&mut self, is_last: bool) {
        let Some(mut keeper) = self.keeper.take() else {
            return;
        };
        let (items, agent) = self.lock(|machine| {
            let items = machine.take_finished(is_last);
            (items, machine.agent().clone())
        });
        keeper.keep(&items, agent);
        self.keeper = Some(keeper);
    }

    async fn carry_out(&mut self, command: MachineCommand) {
        if let MachineCommand::Emit(
            RealtimeEvent::AgentEnd { .. } | RealtimeEvent::Handoff { .. },
        ) = &command
        {
            self.keep(false);
        }
        match command {
            MachineCommand::Send { send, command } => self.work.sends.push_back((send, *command)),
            MachineCommand::Begin { task, work } => {
                if matches!(*work, Task::HandOff { .. } | Task::ResolveAgent(_)) {
                    let voice = self.lock(|machine| machine.voice().cloned());
                    self.agents.note_voice(voice);
                }
                let agents = self.agents.clone();
                self.work
                    .tasks
                    .spawn(async move { (task, carry_out(&agents, *work).await) });
            }
            MachineCommand::Emit(event) => self.events.push(event),
            MachineCommand::Reply { request, result } => {
                if let Some(reply) = self.work.replies.remove(&request) {
                    // A caller that has gone needs no answer.
                    let _ = reply.send(result);
                }
            }
            MachineCommand::CountUsage(usage) => self.agents.count_usage(usage),
            MachineCommand::EndEvents(error) => {
                let end = error.map_or(Ok(()), Err);
                self.events.end(end, self.delivers_before_error);
            }
            MachineCommand::Close => {
                self.work.sends.clear();
                self.work.sending = None;
                self.work.sent.clear();
                self.work.tasks.shutdown().await;
                self.keep(true);
                if let Some(keeper) = self.keeper.take() {
                    keeper.finish().await;
                }
                if let Err(error) = self.sender.close().await {
                    tracing::warn!(%error, "a realtime connection was not closed cleanly");
                }
            }
        }
    }
}

impl<C> Drop for Driver<C> {
    fn drop(&mut self) {
        self.events.end(Ok(()), true);
    }
}

async fn poll_sending<T>(sending: &mut Option<BoxFuture<'static, T>>) -> T {
    match sending {
        Some(sending) => sending.await,
        None => std::future::pending().await,
    }
}
