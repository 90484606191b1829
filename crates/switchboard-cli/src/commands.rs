//! What each command does.

mod chat;
mod check;
mod completions;
mod demo;
mod graph;
mod init;
mod replay;
mod run;
mod schema;
mod test;

use std::io;
use std::sync::Arc;

use crate::args::{self, Cli, Command};
use crate::conversation::{Conversation, Desk};
use crate::failure::{Exit, Failure};
use crate::screen::style::Look;
use crate::session::Kept;
use crate::trace_file::TraceFile;

/// Does what the command line asks for.
pub(crate) fn run(cli: Cli) -> Result<Exit, Failure> {
    let look = Look::of_stdout(cli.lang);
    let out = &mut anstream::stdout();
    match cli.command {
        None => waited_for(demo::run(&args::Demo::default(), look)),
        Some(Command::Demo(args)) => waited_for(demo::run(&args, look)),
        Some(Command::Init(args)) => init::run(&args, look, out),
        Some(Command::Run(args)) => waited_for(run::run(args, look)),
        Some(Command::Chat(args)) => waited_for(chat::run(args, look)),
        Some(Command::Check(args)) => check::run(&args, look, out),
        Some(Command::Graph(args)) => graph::run(&args, &mut io::stdout()),
        Some(Command::Test(args)) => waited_for(test::run(args, look)),
        Some(Command::Replay(args)) => waited_for(replay::run(args, look)),
        Some(Command::Schema) => schema::run(&mut io::stdout()),
        Some(Command::Completions(args)) => completions::run(&args, &mut io::stdout()),
    }
}

/// Waits for work that talks to the network and to people.
fn waited_for(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Said {
            exit: Exit::Failed,
            message: format!("the program cannot work here: {error}"),
            help: None,
        })?;
    let outcome = runtime.block_on(work);
    // A thread may still wait for a line that nobody types.
    runtime.shutdown_background();
    outcome
}

/// The conversation that the command line asks for, and the file of its spans.
async fn conversation(
    desk: Desk,
    args: &args::Talk,
) -> Result<(Conversation, Option<Arc<TraceFile>>), Failure> {
    let trace = args.trace.as_deref().map(TraceFile::create).transpose()?;
    let trace = trace.map(Arc::new);
    let kept = Kept::named(args.session.as_deref()).await?;
    let conversation = Conversation::new(desk, kept, args.agent.as_deref(), trace.clone()).await?;
    Ok((conversation, trace))
}
