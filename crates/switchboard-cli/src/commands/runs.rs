//! `switchboard runs`: lists, shows, follows, cancels, deletes and resumes durable runs.

use std::io::Write;
use std::time::SystemTime;

use serde_json::{Value, json};
use switchboard_core::conversation::{Conversations, now};
use switchboard_core::trace::rfc3339;
use switchboard_durable::{
    DeletedRuns, DurableErrorKind, RunEvent, RunRecord, RunStatus, RunStore,
};
use switchboard_sessions::Access;
use switchboard_teamfile::TeamFile;
use unicode_width::UnicodeWidthStr as _;

use super::run::{Messenger, durable_help};
use crate::approvals::{self, Approvals, Output};
use crate::args::{OutputOptions, ResumeRun, Runs, RunsCommand};
use crate::conversation::Conversation;
use crate::conversation_store::{self, ConversationStore};
use crate::durable::{self, failure};
use crate::event_line::{EventLine, is_raw};
use crate::event_sink::{Answers, EventSink};
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;
use crate::screen::Screen;
use crate::screen::style::{BOLD, DIM, Language, Look};
use crate::screen::wrap::{one_line, padded, shortened};
use crate::signals::Signals;

/// The largest width of the column of names.
const MAX_COLUMN: usize = 40;

pub(super) async fn run(
    args: Runs,
    look: Look,
    out: &mut (dyn Write + Send),
) -> Result<Exit, Failure> {
    let access = match &args.command {
        RunsCommand::List { .. } | RunsCommand::Show { .. } | RunsCommand::Attach { .. } => {
            Access::Read
        }
        RunsCommand::Cancel { .. }
        | RunsCommand::Delete { .. }
        | RunsCommand::Prune { .. }
        | RunsCommand::Resume(_) => Access::Existing,
    };
    let store = conversation_store::open_existing(args.store.as_deref(), access).await?;
    let runs = RunStore::new(store.clone());
    let exit = match args.command {
        RunsCommand::List { limit, json } => {
            let listed = runs.list(limit.map(Into::into)).await.map_err(failure)?;
            list(&listed, json, look, out)?;
            Exit::Ok
        }
        RunsCommand::Show { id, json } => {
            let record = runs.record(&id).await.map_err(failure)?;
            show(&record, json, look, out)?;
            Exit::Ok
        }
        RunsCommand::Attach { id, after, output } => {
            attach(&runs, &id, after, &output, look).await?
        }
        RunsCommand::Cancel { id } => {
            runs.cancel(&id).await.map_err(failure)?;
            // A process that has the run ends it.
            let done = match runs.record(&id).await.map_err(failure)?.status {
                RunStatus::Cancelled => look.language.choose("cancelled", "已取消"),
                _ => look.language.choose("asked to end", "已请求结束"),
            };
            writeln!(out, "{done} {}", one_line(&id))?;
            Exit::Ok
        }
        RunsCommand::Delete { ids, force } => {
            delete(&runs, &ids, deleted_runs(force), look, out).await?;
            Exit::Ok
        }
        RunsCommand::Prune { older_than, force } => {
            let time = now()
                .checked_sub(older_than)
                .unwrap_or(SystemTime::UNIX_EPOCH);
            let pruned = runs.prune(time, deleted_runs(force)).await;
            match (pruned.map_err(failure)?, look.language) {
                (1, Language::En) => writeln!(out, "deleted 1 run")?,
                (number, Language::En) => writeln!(out, "deleted {number} runs")?,
                (number, Language::Zh) => writeln!(out, "已删除 {number} 个运行")?,
            }
            Exit::Ok
        }
        RunsCommand::Resume(run) => {
            resume(*run, &store, args.store.as_deref(), &runs, look).await?
        }
    };
    store.close().await;
    out.flush()?;
    Ok(exit)
}

fn deleted_runs(force: bool) -> DeletedRuns {
    if force {
        DeletedRuns::All
    } else {
        DeletedRuns::Ended
    }
}

async fn delete(
    runs: &RunStore,
    ids: &[String],
    deleted: DeletedRuns,
    look: Look,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    // Checked first, so that a misspelt name deletes nothing.
    for id in ids {
        match runs.record(id).await {
            Err(error) if error.kind() == DurableErrorKind::Damaged => {}
            Ok(run) if deleted == DeletedRuns::Ended && !run.is_ended() => {
                return Err(Failure::usage(
                    format!("the run \"{}\" has not ended", one_line(id)),
                    "end it with `switchboard runs cancel`, or delete it with --force",
                ));
            }
            found => drop(found.map_err(failure)?),
        }
    }
    for id in ids {
        runs.delete(id, deleted).await.map_err(failure)?;
        let done = look.language.choose("deleted", "已删除");
        writeln!(out, "{done} {}", one_line(id))?;
    }
    Ok(())
}

fn list(
    records: &[RunRecord],
    json: bool,
    look: Look,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    if json {
        for record in records {
            writeln!(out, "{}", to_json(record))?;
        }
        return Ok(());
    }
    if records.is_empty() {
        let none = look
            .language
            .choose("there are no durable runs", "没有持久运行");
        writeln!(out, "{none}")?;
        return Ok(());
    }
    let widths = records.iter().map(|record| one_line(&record.id).width());
    let widest = widths.max().unwrap_or(0).min(MAX_COLUMN);
    for record in records {
        let id = one_line(&record.id);
        let id = padded(&shortened(&id, MAX_COLUMN), widest);
        let status = padded(record.status.name(), "cancelled".len());
        let changed = look.paint(DIM, &rfc3339(record.changed));
        writeln!(out, "{}  {status}  {changed}", look.paint(BOLD, &id))?;
    }
    Ok(())
}

fn show(
    record: &RunRecord,
    json: bool,
    look: Look,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    if json {
        writeln!(out, "{}", to_json(record))?;
        return Ok(());
    }
    let mut line = |name: &str, text: &str| {
        writeln!(
            out,
            "{}{}",
            look.paint(DIM, &padded(name, 14)),
            one_line(text)
        )
    };
    line("run", &record.id)?;
    line("session", &record.conversation)?;
    line("message", &record.key)?;
    if let Some(engine) = &record.engine {
        line("engine", engine)?;
    }
    if let Some(team) = &record.team {
        line("team", team)?;
    }
    line("status", record.status.name())?;
    match &record.status {
        RunStatus::Done { .. } => line("answer", &record.text().unwrap_or_default())?,
        RunStatus::Failed { message, .. } => line("error", message)?,
        RunStatus::Stopped { reason } => line("reason", reason)?,
        RunStatus::Pending {
            reason: Some(reason),
        } => line("reason", reason)?,
        RunStatus::Waiting { interruptions } => {
            for waiting in interruptions {
                let call = format!(
                    "{}: {}",
                    waiting.agent,
                    crate::screen::waiting_name(waiting)
                );
                line("waits for", &call)?;
            }
        }
        _ => {}
    }
    line("began", &rfc3339(record.created))?;
    line("changed", &rfc3339(record.changed))?;
    if let Some(due) = record.due {
        line("goes on by", &rfc3339(due))?;
    }
    Ok(())
}

fn to_json(record: &RunRecord) -> Value {
    let mut json = json!({
        "run": record.id,
        "session": record.conversation,
        "key": record.key,
        "status": record.status.name(),
        "failures": record.failures,
        "created": rfc3339(record.created),
        "changed": rfc3339(record.changed),
    });
    for (name, value) in [("engine", &record.engine), ("team", &record.team)] {
        if let Some(value) = value {
            json[name] = value.as_str().into();
        }
    }
    if let Some(due) = record.due {
        json["due"] = rfc3339(due).into();
    }
    match &record.status {
        RunStatus::Done { output } => json["output"] = output.clone(),
        RunStatus::Failed { message, .. } => json["error"] = message.as_str().into(),
        RunStatus::Stopped { reason } => json["reason"] = reason.as_str().into(),
        RunStatus::Pending {
            reason: Some(reason),
        } => json["reason"] = reason.as_str().into(),
        RunStatus::Waiting { interruptions } => json["waiting"] = json!(interruptions),
        _ => {}
    }
    json
}

/// Writes the events of a run, until it ends or waits.
async fn attach(
    runs: &RunStore,
    id: &str,
    after: Option<u64>,
    output: &OutputOptions,
    look: Look,
) -> Result<Exit, Failure> {
    runs.record(id).await.map_err(failure)?;
    let mut sink: Box<dyn EventSink> = if output.quiet {
        Box::new(Answers::new(std::io::stdout(), look.language))
    } else {
        Box::new(Screen::of_stdout(look, std::iter::empty()))
    };
    let mut signals = Signals::listen()?;
    let mut events = runs.events(id, after);
    loop {
        let event = tokio::select! {
            biased;
            signal = signals.next() => return Ok(signal.exit()),
            event = events.next() => event.map_err(failure)?,
        };
        let Some(event) = event else { break };
        // The events of the provider would double the output.
        if matches!(&event, RunEvent::Event { event, .. } if is_raw(event)) {
            continue;
        }
        if output.json {
            println!("{}", positioned(&event)?);
            continue;
        }
        if let RunEvent::Event { event, .. } = event {
            sink.write(&EventLine::at_once(*event))?;
        }
    }
    let record = runs.record(id).await.map_err(failure)?;
    Ok(match record.status {
        RunStatus::Done { .. } => Exit::Ok,
        RunStatus::Waiting { .. } => Exit::Waiting,
        _ => Exit::Failed,
    })
}

/// The JSON of an event, with its position.
fn positioned(event: &RunEvent) -> Result<String, Failure> {
    let position = event.position();
    let json = match event {
        RunEvent::Event { event, .. } => serde_json::to_string(event),
        RunEvent::Retracted { from, to, .. } => {
            serde_json::to_string(&durable::retraction("", *from, *to)?)
        }
        _ => Ok("{}".to_owned()),
    };
    let json = json.map_err(std::io::Error::from)?;
    let fields = json.strip_suffix('}').unwrap_or(&json);
    Ok(format!("{fields},\"position\":{position}}}"))
}

/// Goes on with a run in this process.
async fn resume(
    args: ResumeRun,
    store: &Conversations,
    address: Option<&str>,
    runs: &RunStore,
    look: Look,
) -> Result<Exit, Failure> {
    let record = runs.record(&args.id).await.map_err(failure)?;
    if record.is_ended() {
        return Err(Failure::usage(
            format!(
                "the run \"{}\" is {} already",
                args.id,
                record.status.name()
            ),
            "`switchboard runs attach` shows what it did",
        ));
    }
    let file = TeamFile::read(&args.team)?;
    let team = LoadedTeam::load(&file, &args.options, &[])?;
    let approvals = Approvals::new(&args.approve, &file, Output::new(args.output.json), look)?
        .answer_with(approvals::given_answer(&args.answer)?);
    let session = ConversationStore::of(store.get(record.conversation.as_str()));
    let mut conversation = Conversation::new(team, session, None, None).await?;
    conversation.make_durable(&args.engine, address).await?;
    let mut signals = Signals::listen()?;
    let mut sink = super::sink(&args.output, look, conversation.team());
    let outcome = conversation
        .go_on_with(&args.id, &mut *sink, &mut signals)
        .await?;
    let mut messenger = Messenger::new(&mut conversation, &approvals, &mut *sink, &mut signals);
    let exit = messenger.settle(outcome).await;
    if let Ok(Exit::Waiting) = exit {
        let options = durable::options_text(&args.engine, address);
        sink.write_help(&durable_help(&args.team, &args.id, &options))?;
    }
    conversation.close().await;
    exit
}
