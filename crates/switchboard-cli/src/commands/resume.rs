//! `switchboard resume`: decides the calls that wait in a session or answers for a person, and goes on with
//! its run.

use switchboard_sessions::Access;
use switchboard_teamfile::TeamFile;

use super::open_conversation;
use super::run::{Messenger, asked_person};
use crate::approvals::{self, Approvals, Output};
use crate::args;
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;
use crate::screen::style::Look;
use crate::signals::Signals;
use crate::trace_file;

pub(super) async fn run(args: args::Resume, look: Look) -> Result<Exit, Failure> {
    let file = TeamFile::read(&args.team.team)?;
    let team = LoadedTeam::load(&file, &args.team.options, &[])?;
    let approvals = Approvals::new(&args.approve, &file, Output::new(args.output.json), look)?
        .answer_with(approvals::given_answer(&args.answer)?);
    let talk = args::TalkOptions {
        session: Some(args.session),
        store: args.store,
        force: false,
        agent: None,
        approve: args.approve,
        trace: args.trace,
        durable: false,
        engine: args::EngineOptions::default(),
    };
    let (mut conversation, trace) = open_conversation(team, &talk, Access::Existing).await?;
    if !conversation.load_waiting().await? {
        conversation.close().await;
        let session = talk.session.unwrap_or_default();
        return Err(Failure::usage(
            format!("nothing waits for a decision in the session \"{session}\""),
            "send a message with `switchboard run`, or check the name of the session",
        ));
    }
    conversation.check_waiting().await?;
    let mut signals = Signals::listen()?;
    let mut sink = super::sink(&args.output, look, conversation.team());
    let mut messenger = Messenger::new(&mut conversation, &approvals, &mut *sink, &mut signals);
    let exit = messenger.resume().await;
    if let Ok(Exit::Waiting) = exit {
        sink.write_help(match asked_person(&conversation) {
            Some(_) => "it waits on; --reply, --hand-to and --hand-back answer without asking",
            None => "it waits on; --approve decides without asking",
        })?;
    }
    conversation.close().await;
    trace_file::finish(trace, exit)
}
