//! `switchboard sessions`: lists, shows, copies, moves and deletes stored conversations.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use switchboard_core::conversation::{Conversation, Conversations, Exported, Found, Head};
use switchboard_core::trace::rfc3339;
use switchboard_durable::{DeletedRuns, RunStore};
use switchboard_sessions::Access;
use switchboard_teamfile::{TeamFile, closest};
use unicode_width::UnicodeWidthStr as _;

use crate::args::{Sessions, SessionsCommand};
use crate::atomic_write;
use crate::bounded_read;
use crate::conversation_store;
use crate::durable;
use crate::failure::{Exit, Failure};
use crate::json_error;
use crate::screen::style::{BOLD, DIM, Look};
use crate::screen::wrap::{one_line, padded, shortened};
use crate::store_keys;
use crate::transcript::Transcript;

/// The largest width of the columns of names.
const MAX_COLUMN: usize = 30;
/// The number of columns that are shown of a found text.
const MAX_FOUND: usize = 120;

pub(super) async fn run(
    args: Sessions,
    look: Look,
    out: &mut (dyn Write + Send),
) -> Result<Exit, Failure> {
    let address = match (args.store, &args.team) {
        (Some(address), _) => Some(address),
        (None, Some(team)) => {
            let store = TeamFile::read(team)?.store()?;
            store.map(|address| address.to_string())
        }
        (None, None) => None,
    };
    let address = address.as_deref();
    let sessions = match &args.command {
        SessionsCommand::Import { .. } => conversation_store::open_all(address).await?,
        SessionsCommand::Delete { .. } | SessionsCommand::Fork { .. } => {
            conversation_store::open_existing(address, Access::Existing).await?
        }
        SessionsCommand::List { .. }
        | SessionsCommand::Show { .. }
        | SessionsCommand::Export { .. }
        | SessionsCommand::Search { .. } => {
            conversation_store::open_existing(address, Access::Read).await?
        }
    };
    let done = carry_out(args.command, &sessions, look, out).await;
    sessions.close().await;
    done?;
    out.flush()?;
    Ok(Exit::Ok)
}

async fn carry_out(
    command: SessionsCommand,
    sessions: &Conversations,
    look: Look,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    match command {
        SessionsCommand::List { limit, json } => {
            let mut listed = all_sessions(sessions).await?;
            listed.truncate(limit.map_or(usize::MAX, Into::into));
            list(&listed, json, look, out)?;
        }
        SessionsCommand::Show { name, limit, json } => {
            let session = existing(sessions, &name).await?;
            let record = session.record(None).await;
            let record = record.map_err(conversation_store::stored_failure)?;
            let mut transcript = Transcript::new(&record);
            if let Some(limit) = limit {
                transcript.keep_last(limit.get());
            }
            if json {
                transcript.write_json(out)?;
            } else {
                transcript.write(look, out)?;
            }
        }
        SessionsCommand::Export { name, file, force } => {
            let session = existing(sessions, &name).await?;
            let exported = session.export().await;
            let exported = exported.map_err(conversation_store::stored_failure)?;
            let mut json = serde_json::to_vec(&exported).map_err(io::Error::from)?;
            json.push(b'\n');
            match file {
                Some(path) => write_export(&path, &json, force)?,
                None => out.write_all(&json)?,
            }
        }
        SessionsCommand::Import { file, name } => {
            let exported = read_export(&file)?;
            let name = name.map_or_else(|| exported.id.clone(), Arc::from);
            check_new_name(&name, "give it one, as in --as tuesday")?;
            // The cipher text belongs to the name, and would be encrypted a second time with a key.
            if exported.is_encrypted()
                && (name != exported.id || store_keys::of_environment()?.is_some())
            {
                return Err(Failure::usage(
                    format!("the session in {} is encrypted", file.display()),
                    "export it with its key in SWITCHBOARD_STORE_KEY; or import it as it is, without the \
                     variable and without --as",
                ));
            }
            let imported = sessions.get(name.clone()).import(&exported).await;
            imported.map_err(|error| conversation_store::creation_failure(error, &name))?;
            let done = look.language.choose("imported", "已导入");
            writeln!(out, "{done} {}", one_line(&name))?;
        }
        SessionsCommand::Delete { names } => {
            // Checked first, so that a misspelt name deletes nothing.
            for name in &names {
                existing(sessions, name).await?;
            }
            let runs = RunStore::new(sessions.clone());
            for name in &names {
                // Journals repeat what was said. A run that has not ended still answers its message.
                let journals = runs.delete_of_conversation(name, DeletedRuns::Ended);
                journals.await.map_err(durable::failure)?;
                let deleted = sessions.delete(name).await;
                deleted.map_err(conversation_store::stored_failure)?;
                let done = look.language.choose("deleted", "已删除");
                writeln!(out, "{done} {}", one_line(name))?;
            }
        }
        SessionsCommand::Search { text, limit, json } => {
            let found = search(sessions, &text, limit.get()).await?;
            write_found(&found, &text, json, look, out)?;
        }
        SessionsCommand::Fork { name, new, before } => {
            check_new_name(&new, "give the copy one, as in tuesday-2")?;
            let session = existing(sessions, &name).await?;
            let forked = session.fork(new.as_str(), before).await;
            forked.map_err(|error| conversation_store::creation_failure(error, &new))?;
            let done = look.language.choose("copied to", "已复制到");
            writeln!(out, "{done} {}", one_line(&new))?;
        }
    }
    Ok(())
}

/// All sessions, the last changed first.
async fn all_sessions(sessions: &Conversations) -> Result<Vec<Head>, Failure> {
    let listed = sessions.list(None).await;
    let mut listed = listed.map_err(conversation_store::stored_failure)?;
    listed.retain(|head| !is_service_record(&head.id));
    Ok(listed)
}

/// Finds entries of sessions, the latest first.
async fn search(sessions: &Conversations, text: &str, limit: usize) -> Result<Vec<Found>, Failure> {
    let mut asked = limit;
    loop {
        let found = sessions.search(text, asked).await;
        let mut found = found.map_err(conversation_store::stored_failure)?;
        let is_all = found.len() < asked;
        found.retain(|found| !is_service_record(&found.conversation));
        if is_all || found.len() >= limit {
            found.truncate(limit);
            return Ok(found);
        }
        asked = asked.saturating_mul(2);
    }
}

/// Returns `true` for what `switchboard serve` keeps in the same store and is no session: responses, tasks, marks. They
/// are in folders that begin with `~`.
fn is_service_record(name: &str) -> bool {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    folder.split('/').any(|part| part.starts_with('~'))
}

/// The session of a name that the user typed.
async fn existing(sessions: &Conversations, name: &str) -> Result<Conversation, Failure> {
    let session = sessions.get(name);
    let head = session
        .head()
        .await
        .map_err(conversation_store::stored_failure)?;
    if head.is_some() {
        return Ok(session);
    }
    let listed = all_sessions(sessions).await?;
    let help = match closest(name, listed.iter().map(|head| &*head.id)) {
        Some(near) => format!("did you mean \"{}\"?", one_line(near)),
        None => "`switchboard sessions list` lists them; --store names another store".to_owned(),
    };
    let name = one_line(name);
    Err(Failure::usage(
        format!("there is no session \"{name}\""),
        help,
    ))
}

/// Checks the name of a new session.
fn check_new_name(name: &str, help: &str) -> Result<(), Failure> {
    if name.trim().is_empty() {
        return Err(Failure::usage("the session's name is empty", help));
    }
    Ok(())
}

/// A line of `list --json`.
#[derive(Serialize)]
struct ListedSession<'a> {
    name: &'a str,
    agent: Option<&'a str>,
    entries: u64,
    team: Option<Value>,
    created: String,
    changed: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
}

impl<'a> ListedSession<'a> {
    fn of(head: &'a Head) -> Self {
        let details = head.details.as_deref().unwrap_or("{}");
        let details: Value = serde_json::from_str(details).unwrap_or_default();
        Self {
            name: &head.id,
            agent: head.agent.as_deref(),
            entries: head.entries(),
            team: details
                .pointer("/team/name")
                .filter(|name| name.is_string())
                .cloned(),
            created: rfc3339(head.created),
            changed: rfc3339(head.changed),
            expires: head.expires.map(rfc3339),
        }
    }
}

fn list(heads: &[Head], json: bool, look: Look, out: &mut dyn Write) -> io::Result<()> {
    if json {
        for head in heads {
            let line = serde_json::to_string(&ListedSession::of(head))?;
            writeln!(out, "{line}")?;
        }
        return Ok(());
    }
    if heads.is_empty() {
        let none = look.language.choose(
            "There are no sessions; `switchboard chat team.toml --session NAME` begins one.",
            "还没有会话；`switchboard chat team.toml --session NAME` 可以开始一个。",
        );
        return writeln!(out, "{none}");
    }
    let cell = |text: &str| shortened(&one_line(text), MAX_COLUMN).into_owned();
    let rows: Vec<(String, String, &Head)> = heads
        .iter()
        .map(|head| {
            (
                cell(&head.id),
                cell(head.agent.as_deref().unwrap_or("-")),
                head,
            )
        })
        .collect();
    let names = rows
        .iter()
        .map(|(name, ..)| name.width())
        .max()
        .unwrap_or(0);
    let agents = rows.iter().map(|(_, agent, _)| agent.width()).max();
    let agents = agents.unwrap_or(0);
    for (name, agent, head) in &rows {
        let name = look.paint(BOLD, &padded(name, names));
        let agent = padded(agent, agents);
        let changed = rfc3339(head.changed);
        let day = changed.get(..16).unwrap_or(&changed).replace('T', " ");
        let count = head.entries();
        let entries = look
            .language
            .choose(format!("{count} entries"), format!("{count} 条"));
        let when = look.paint(DIM, &format!("{day} UTC  {entries}"));
        writeln!(out, "{name}  {agent}  {when}")?;
    }
    Ok(())
}

/// A line of `search --json`.
#[derive(Serialize)]
struct FoundLine<'a> {
    session: &'a str,
    position: u64,
    time: String,
    agent: Option<&'a str>,
    text: String,
}

fn write_found(
    found: &[Found],
    searched: &str,
    json: bool,
    look: Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    for found in found {
        let text = found.entry.content.searchable_text().unwrap_or_default();
        if json {
            let line = FoundLine {
                session: &found.conversation,
                position: found.entry.position,
                time: rfc3339(found.entry.time),
                agent: found.entry.agent.as_deref(),
                text,
            };
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
            continue;
        }
        let name = look.paint(BOLD, &one_line(&found.conversation));
        let author = found.entry.agent.as_deref().unwrap_or(look.language.user());
        let text = around(&text, searched);
        writeln!(out, "{name}  {}: {text}", one_line(author))?;
    }
    if found.is_empty() && !json {
        let none = look.language.choose("Nothing was found.", "没有找到。");
        writeln!(out, "{none}")?;
    }
    Ok(())
}

/// The part of a text around the words that were searched for, as one line.
fn around(text: &str, searched: &str) -> String {
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    let text = one_line(&text);
    let at = text
        .to_lowercase()
        .find(&searched.to_lowercase())
        .unwrap_or(0);
    // Lower case may have another length, so this is only about where the words are.
    let before = text
        .char_indices()
        .map(|(at, _)| at)
        .filter(|start| *start + 40 >= at);
    let start = before.min().unwrap_or(0);
    let dots = if start > 0 { "…" } else { "" };
    format!("{dots}{}", shortened(&text[start..], MAX_FOUND))
}

fn write_export(path: &Path, json: &[u8], force: bool) -> Result<(), Failure> {
    if atomic_write::exists(path) && !force {
        return Err(Failure::usage(
            format!("{} is there already; nothing was written", path.display()),
            "name another file, or write over it with --force",
        ));
    }
    atomic_write::write(&[(path.to_owned(), json)])
}

fn read_export(path: &Path) -> Result<Exported, Failure> {
    let text = if path == Path::new("-") {
        bounded_read::text(io::stdin().lock())
    } else {
        bounded_read::file(path)
    };
    let text = text.map_err(|error| Failure::unreadable(path, &error))?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(
            format!(
                "{} is no exported session: {}",
                path.display(),
                json_error::describe(&error)
            ),
            "name a file that `switchboard sessions export` has written",
        )
    })
}
