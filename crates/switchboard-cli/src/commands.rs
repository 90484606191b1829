//! The commands.

mod chat;
mod check;
mod completions;
mod demo;
mod graph;
mod init;
mod replay;
mod resume;
mod run;
mod runs;
mod schema;
mod serve;
mod sessions;
mod speech;
mod studio;
mod talk;
mod test;
mod worker;

use std::io;

use switchboard_sessions::Access;

use crate::args::{self, Cli, Command};
use crate::conversation::Conversation;
use crate::conversation_store::ConversationStore;
use crate::event_sink::{Answers, EventSink, JsonLines};
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;
use crate::screen::Screen;
use crate::screen::style::{Language, Look};
use crate::trace_file::TraceFile;

/// Runs the command.
pub(crate) fn run(cli: Cli, language: Language) -> Result<Exit, Failure> {
    let look = Look::of_stdout(language);
    let out = &mut anstream::stdout();
    match cli.command {
        None => block_on(demo::run(&args::Demo::default(), look)),
        Some(Command::Demo(args)) => block_on(demo::run(&args, look)),
        Some(Command::Init(args)) => init::run(&args, look, out),
        Some(Command::Run(args)) => block_on(run::run(args, look)),
        Some(Command::Resume(args)) => block_on(resume::run(args, look)),
        Some(Command::Chat(args)) => block_on(chat::run(args, look)),
        Some(Command::Talk(args)) => block_on(talk::run(args, look)),
        Some(Command::Sessions(args)) => block_on(sessions::run(args, look, out)),
        Some(Command::Runs(args)) => block_on(runs::run(args, look, out)),
        Some(Command::Worker(args)) => worker::run(&args),
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::Studio(args)) => studio::run(&args, look),
        Some(Command::Key(args)) => serve::add_key(&args, out),
        Some(Command::Check(args)) => check::run(&args, look, out),
        Some(Command::Graph(args)) => graph::run(&args, look, out),
        Some(Command::Test(args)) => block_on(test::run(args, look)),
        Some(Command::Replay(args)) => block_on(replay::run(args, look)),
        Some(Command::Schema) => schema::run(&mut io::stdout()),
        Some(Command::Completions(args)) => completions::run(&args, &mut io::stdout()),
    }
}

/// Runs an asynchronous command.
fn block_on(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Message {
            exit: Exit::Failed,
            message: format!("the program cannot work here: {error}"),
            help: None,
        })?;
    let outcome = runtime.block_on(command);
    // The thread that reads lines may be blocked.
    runtime.shutdown_background();
    outcome
}

/// The destination of the events of runs.
fn sink(output: &args::OutputOptions, look: Look, team: &LoadedTeam) -> Box<dyn EventSink> {
    if output.json {
        Box::new(JsonLines::new(io::stdout(), look.language))
    } else if output.quiet {
        Box::new(Answers::new(io::stdout(), look.language))
    } else {
        Box::new(Screen::of_stdout(look, team.names()))
    }
}

/// Opens the conversation of the command line, and its trace file. `access` is that to the store of its session.
async fn open_conversation(
    team: LoadedTeam,
    args: &args::TalkOptions,
    access: Access,
) -> Result<(Conversation, Option<TraceFile>), Failure> {
    let trace = args.trace.as_deref().map(TraceFile::create).transpose()?;
    let address = match (&args.session, &args.store) {
        (None, _) => None,
        (_, Some(address)) => Some(address.clone()),
        (_, None) => team.open.store()?.map(ToOwned::to_owned),
    };
    let store = match &args.session {
        None => ConversationStore::in_memory(),
        Some(name) => ConversationStore::open(name, address.as_deref(), access).await?,
    };
    let conversation = Conversation::new(team, store, args.agent.as_deref(), trace.clone()).await?;
    let mut conversation = conversation.take_over(args.force);
    if args.durable {
        conversation
            .make_durable(&args.engine, address.as_deref())
            .await?;
    }
    Ok((conversation, trace))
}
