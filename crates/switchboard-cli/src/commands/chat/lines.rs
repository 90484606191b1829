//! Lines that the user types, read beside the conversation: reading blocks, and answers come in the
//! meantime.

use std::io::{self, BufRead as _};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use rustyline::completion::Completer;
use rustyline::config::Configurer as _;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, ExternalPrinter, Helper};
use tokio::sync::mpsc as answers;

use super::terminal_mode::Before;
use super::typed::COMMANDS;
use crate::data_folder;
use crate::failure::Failure;

/// How many lines the history keeps.
const KEPT_LINES: usize = 1000;

/// Where lines come from.
pub(super) struct Lines {
    prompts: mpsc::Sender<Prompt>,
    read: answers::Receiver<Read>,
    source: Source,
    /// Has the editor draw the line again.
    printer: Option<Box<dyn ExternalPrinter + Send>>,
    /// How the terminal was before.
    before: Before,
    /// Whether a line was asked for that has not come yet.
    is_asked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A person who edits them.
    Edited,
    /// A pipe or a file.
    Piped,
}

/// What stands before the line that is typed; both are of one width.
#[derive(Debug, Clone)]
pub(super) struct Prompt {
    /// Without colours.
    pub(super) raw: String,
    /// With them.
    pub(super) styled: String,
}

/// What came instead of, or as, a line.
#[derive(Debug)]
pub(super) enum Read {
    /// A line.
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// There are no more: Ctrl-D, or the end of the pipe.
    End,
    /// They cannot be read.
    Failed(io::Error),
}

impl Lines {
    /// Lines that a person edits, with a history.
    pub(super) fn edited() -> Result<Self, Failure> {
        // Without a place for the history, there is one as long as the program runs.
        let history = data_folder::open()
            .ok()
            .map(|folder| folder.join("history"));
        let mut editor = editor(history.as_ref()).map_err(|error| {
            Failure::usage(
                format!("the terminal cannot be used: {error}"),
                "pipe the messages in instead: switchboard chat team.toml < messages.txt",
            )
        })?;
        // Where there is one, the editor also learns of a signal that another thread has got.
        let printer = editor.create_external_printer().ok();
        let mut lines = Self::read_by(Source::Edited, move |prompts, read| {
            edit(editor, history.as_ref(), &prompts, &read);
        });
        lines.printer = printer.map(|printer| Box::new(printer) as _);
        Ok(lines)
    }

    /// Lines from a pipe or a file.
    pub(super) fn piped() -> Self {
        Self::read_by(Source::Piped, |prompts, read| {
            let mut lines = io::stdin().lock().lines();
            while prompts.recv().is_ok() {
                let line = match lines.next() {
                    Some(Ok(line)) => Read::Line(line),
                    Some(Err(error)) => Read::Failed(error),
                    None => Read::End,
                };
                if read.blocking_send(line).is_err() {
                    return;
                }
            }
        })
    }

    fn read_by(
        source: Source,
        reader: impl FnOnce(mpsc::Receiver<Prompt>, answers::Sender<Read>) + Send + 'static,
    ) -> Self {
        let (prompts, asked) = mpsc::channel();
        let (read, lines) = answers::channel(1);
        let before = Before::now();
        thread::spawn(move || reader(asked, read));
        Self {
            prompts,
            read: lines,
            source,
            printer: None,
            before,
            is_asked: false,
        }
    }

    /// Whether a person types them.
    pub(super) fn are_edited(&self) -> bool {
        self.source == Source::Edited
    }

    /// Goes on with a line where the program was stopped and the shell has used the terminal since.
    pub(super) fn resume(&mut self) {
        if let (true, Some(printer)) = (self.is_asked, &mut self.printer) {
            self.before.edit();
            // An editor that is gone draws nothing.
            let _ = printer.print(String::new());
        }
    }

    /// The next line. Where nobody waits for it to the end, the next call gets it.
    pub(super) async fn next(&mut self, prompt: Prompt) -> Read {
        if !self.is_asked && self.prompts.send(prompt).is_err() {
            return Read::End;
        }
        self.is_asked = true;
        let read = self.read.recv().await;
        self.is_asked = false;
        read.unwrap_or(Read::End)
    }
}

impl Drop for Lines {
    /// A line that is still being edited will not be: nobody can tell the editor to stop, and the
    /// program is about to end.
    fn drop(&mut self) {
        if self.is_asked && self.are_edited() {
            self.before.restore();
        }
    }
}

fn editor(history: Option<&PathBuf>) -> rustyline::Result<Editor<Commands, FileHistory>> {
    let config = Config::builder()
        .max_history_size(KEPT_LINES)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Commands));
    editor.set_auto_add_history(true);
    if let Some(path) = history.filter(|path| path.exists()) {
        // A history that cannot be read is one that is not there.
        let _ = editor.load_history(path);
    }
    Ok(editor)
}

fn edit(
    mut editor: Editor<Commands, FileHistory>,
    history: Option<&PathBuf>,
    prompts: &mpsc::Receiver<Prompt>,
    read: &answers::Sender<Read>,
) {
    while let Ok(Prompt { raw, styled }) = prompts.recv() {
        let line = match editor.readline(&(raw, styled)) {
            Ok(line) => Read::Line(line),
            Err(ReadlineError::Interrupted) => Read::Interrupted,
            Err(ReadlineError::Eof) => Read::End,
            Err(ReadlineError::Io(error)) => Read::Failed(error),
            Err(error) => Read::Failed(io::Error::other(error)),
        };
        if let (Read::Line(_), Some(path)) = (&line, history) {
            // At once: a terminal may be closed at any time. Lines are private, like what is said.
            let _ = data_folder::private(path).map(|()| editor.append_history(path));
        }
        if read.blocking_send(line).is_err() {
            return;
        }
    }
}

/// Completes commands.
struct Commands;

impl Completer for Commands {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _ctx: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let Some(written) = line[..pos].strip_prefix('/') else {
            return Ok((pos, Vec::new()));
        };
        let names = COMMANDS.iter().map(|command| command.name);
        let fitting = names.filter(|name| name.starts_with(written));
        Ok((0, fitting.map(|name| format!("/{name} ")).collect()))
    }
}

impl Hinter for Commands {
    type Hint = String;
}

impl Highlighter for Commands {}
impl Validator for Commands {}
impl Helper for Commands {}
