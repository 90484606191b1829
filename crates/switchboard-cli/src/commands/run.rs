//! `switchboard run`: sends messages to a team and shows the run.

use std::path::Path;

use switchboard_sessions::Access;
use switchboard_teamfile::TeamFile;

use super::open_conversation;
use crate::approvals::{self, Approvals, Output};
use crate::args;
use crate::conversation::{Conversation, RunOutcome};
use crate::event_sink::EventSink;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::line_reader::LineReader;
use crate::loaded_team::LoadedTeam;
use crate::screen::style::Look;
use crate::screen::wrap::one_line;
use crate::shell;
use crate::signals::Signals;
use crate::trace_file;

pub(super) async fn run(args: args::Run, look: Look) -> Result<Exit, Failure> {
    let talk = &args.talk;
    let file = TeamFile::read(&talk.team.team)?;
    let team = LoadedTeam::load(&file, &talk.team.options, &[])?;
    // Words without quotes are one message as well.
    let message = (!args.message.is_empty()).then(|| args.message.join(" "));
    let messages = input::messages(message, args.input.as_deref())?;
    let asks = Output::new(args.output.json);
    let approvals = Approvals::new(&talk.options.approve, &file, asks, look)?;
    let (mut conversation, trace) = open_conversation(team, &talk.options, Access::Create).await?;
    conversation.name_message(args.key);
    let mut signals = Signals::listen()?;
    let mut sink = super::sink(&args.output, look, conversation.team());
    let mut messenger = Messenger::new(&mut conversation, &approvals, &mut *sink, &mut signals);
    let exit = messenger.send_all(&messages).await;
    if let Ok(Exit::Waiting) = exit {
        let person = asked_person(&conversation);
        sink.write_help(&match conversation.durable_run() {
            Some((run, options)) => durable_help(&talk.team.team, run, options),
            None => waiting_help(
                &talk.team.team,
                talk.options.session.as_deref(),
                person.as_deref(),
            ),
        })?;
    }
    conversation.close().await;
    // The trace of a run that failed is complete as well.
    trace_file::finish(trace, exit)
}

/// The name of the person that the run waits for.
pub(super) fn asked_person(conversation: &Conversation) -> Option<String> {
    let waiting = conversation.waiting()?.interruptions();
    let person = waiting
        .iter()
        .find(|waiting| approvals::is_person(waiting))?;
    Some(one_line(&person.agent).into_owned())
}

/// Advice for what waits: calls, or a person's answer.
pub(super) fn waiting_help(team: &Path, session: Option<&str>, person: Option<&str>) -> String {
    match session {
        Some(session) => {
            let team = shell::quoted(team);
            let session = shell::quoted(session.as_ref());
            let resume = format!("`switchboard resume {team} --session {session}`");
            match person {
                Some(person) => format!("answer as {person} with {resume}"),
                None => format!("decide it with {resume}"),
            }
        }
        None => "it is not kept: with --session NAME it would wait for `switchboard resume`, and \
                 --approve decides without asking"
            .to_owned(),
    }
}

/// Advice for a durable run that waits.
pub(super) fn durable_help(team: &Path, run: &str, options: &str) -> String {
    let (run, team) = (shell::quoted(run.as_ref()), shell::quoted(team));
    format!("go on with `switchboard runs resume {run} {team}{options}`")
}

/// Sends messages, and decides the calls that wait.
pub(super) struct Messenger<'a> {
    conversation: &'a mut Conversation,
    approvals: &'a Approvals,
    /// Created for the first question.
    reader: Option<LineReader>,
    sink: &'a mut dyn EventSink,
    signals: &'a mut Signals,
}

impl<'a> Messenger<'a> {
    pub(super) fn new(
        conversation: &'a mut Conversation,
        approvals: &'a Approvals,
        sink: &'a mut dyn EventSink,
        signals: &'a mut Signals,
    ) -> Self {
        Self {
            conversation,
            approvals,
            reader: None,
            sink,
            signals,
        }
    }

    /// Sends one message after the other, until a run does not finish.
    pub(super) async fn send_all<M: AsRef<str>>(
        &mut self,
        messages: &[M],
    ) -> Result<Exit, Failure> {
        for message in messages {
            let sent = self
                .conversation
                .send(message.as_ref(), self.sink, self.signals);
            let outcome = sent.await?;
            match self.settle(outcome).await? {
                Exit::Ok => {}
                exit => return Ok(exit),
            }
        }
        Ok(Exit::Ok)
    }

    /// Shows the calls that wait, decides them, and goes on with their run.
    pub(super) async fn resume(&mut self) -> Result<Exit, Failure> {
        let outcome = self
            .conversation
            .show_waiting(self.sink, self.signals)
            .await?;
        self.settle(outcome).await
    }

    /// Decides the calls that wait after this outcome.
    pub(super) async fn settle(&mut self, outcome: RunOutcome) -> Result<Exit, Failure> {
        if outcome == RunOutcome::Waiting && self.reader.is_none() {
            self.reader = self.approvals.reader()?;
        }
        let reader = self.reader.as_mut();
        let settled =
            self.approvals
                .settle(outcome, self.conversation, reader, self.sink, self.signals);
        Ok(match settled.await? {
            RunOutcome::Finished => Exit::Ok,
            RunOutcome::Waiting => Exit::Waiting,
            RunOutcome::Stopped(signal) => signal.exit(),
            RunOutcome::TimedOut => Exit::TimedOut,
            RunOutcome::Failed(exit) => exit,
        })
    }
}
