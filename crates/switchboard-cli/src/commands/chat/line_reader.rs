//! Reads the lines of a chat. Reading blocks, so it has a thread of its own.

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
use tokio::sync::mpsc as async_mpsc;

use super::chat_line::COMMANDS;
use super::terminal_mode::SavedMode;
use crate::data_folder;
use crate::failure::Failure;

/// The number of lines in the history.
const MAX_HISTORY: usize = 1000;

/// Reads lines from a terminal, a pipe or a file.
pub(super) struct LineReader {
    prompts: mpsc::Sender<Prompt>,
    lines: async_mpsc::Receiver<ReadLine>,
    source: Source,
    /// Makes the editor draw its line again.
    printer: Option<Box<dyn ExternalPrinter + Send>>,
    /// The mode of the terminal before lines were edited.
    saved_mode: SavedMode,
    /// Set while a requested line has not been received.
    is_waiting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A terminal with a line editor.
    Terminal,
    /// A pipe or a file.
    Piped,
}

/// The prompt; both forms have the same width.
#[derive(Debug, Clone)]
pub(super) struct Prompt {
    /// The text without colours.
    pub(super) raw: String,
    /// The text with colours.
    pub(super) styled: String,
}

/// The result of reading a line.
#[derive(Debug)]
pub(super) enum ReadLine {
    /// A line.
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
    /// The input cannot be read.
    Failed(io::Error),
}

impl LineReader {
    /// Creates a reader with a line editor and a history.
    pub(super) fn interactive() -> Result<Self, Failure> {
        // Without a data folder the history is in memory.
        let history = data_folder::open()
            .ok()
            .map(|folder| folder.join("history"));
        let mut editor = editor(history.as_ref()).map_err(|error| {
            Failure::usage(
                format!("the terminal cannot be used: {error}"),
                "pipe the messages in instead: switchboard chat team.toml < messages.txt",
            )
        })?;
        let printer = editor.create_external_printer().ok();
        let mut reader = Self::spawn(Source::Terminal, move |prompts, lines| {
            edit(editor, history.as_ref(), &prompts, &lines);
        });
        reader.printer = printer.map(|printer| Box::new(printer) as _);
        Ok(reader)
    }

    /// Creates a reader for a pipe or a file.
    pub(super) fn piped() -> Self {
        Self::spawn(Source::Piped, |prompts, lines| {
            let mut stdin = io::stdin().lock().lines();
            while prompts.recv().is_ok() {
                let line = match stdin.next() {
                    Some(Ok(line)) => ReadLine::Line(line),
                    Some(Err(error)) => ReadLine::Failed(error),
                    None => ReadLine::End,
                };
                if lines.blocking_send(line).is_err() {
                    return;
                }
            }
        })
    }

    /// Starts the thread that reads a line for each prompt.
    fn spawn(
        source: Source,
        read: impl FnOnce(mpsc::Receiver<Prompt>, async_mpsc::Sender<ReadLine>) + Send + 'static,
    ) -> Self {
        let (prompts, requested) = mpsc::channel();
        let (sender, lines) = async_mpsc::channel(1);
        let saved_mode = SavedMode::save();
        thread::spawn(move || read(requested, sender));
        Self {
            prompts,
            lines,
            source,
            printer: None,
            saved_mode,
            is_waiting: false,
        }
    }

    /// Returns `true` if a person types the lines.
    pub(super) fn is_interactive(&self) -> bool {
        self.source == Source::Terminal
    }

    /// Continues editing after the program was suspended and the shell has used the terminal.
    pub(super) fn resume(&mut self) {
        if let (true, Some(printer)) = (self.is_waiting, &mut self.printer) {
            self.saved_mode.set_raw();
            // It fails only if the editor has ended.
            let _ = printer.print(String::new());
        }
    }

    /// Reads the next line. If the future is dropped, the next call returns that line.
    pub(super) async fn next(&mut self, prompt: Prompt) -> ReadLine {
        if !self.is_waiting && self.prompts.send(prompt).is_err() {
            return ReadLine::End;
        }
        self.is_waiting = true;
        let line = self.lines.recv().await;
        self.is_waiting = false;
        line.unwrap_or(ReadLine::End)
    }
}

impl Drop for LineReader {
    /// Restores the terminal while a line is being edited: the editor cannot be stopped.
    fn drop(&mut self) {
        if self.is_waiting && self.is_interactive() {
            self.saved_mode.restore();
        }
    }
}

fn editor(history: Option<&PathBuf>) -> rustyline::Result<Editor<CommandCompleter, FileHistory>> {
    let config = Config::builder()
        .max_history_size(MAX_HISTORY)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(CommandCompleter));
    editor.set_auto_add_history(true);
    if let Some(path) = history.filter(|path| path.exists()) {
        // A history that cannot be read is treated as missing.
        let _ = editor.load_history(path);
    }
    Ok(editor)
}

fn edit(
    mut editor: Editor<CommandCompleter, FileHistory>,
    history: Option<&PathBuf>,
    prompts: &mpsc::Receiver<Prompt>,
    lines: &async_mpsc::Sender<ReadLine>,
) {
    while let Ok(Prompt { raw, styled }) = prompts.recv() {
        let line = match editor.readline(&(raw, styled)) {
            Ok(line) => ReadLine::Line(line),
            Err(ReadlineError::Interrupted) => ReadLine::Interrupted,
            Err(ReadlineError::Eof) => ReadLine::End,
            Err(ReadlineError::Io(error)) => ReadLine::Failed(error),
            Err(error) => ReadLine::Failed(io::Error::other(error)),
        };
        if let (ReadLine::Line(_), Some(path)) = (&line, history) {
            // At once, as the terminal may be closed at any time.
            let _ = data_folder::make_private(path).map(|()| editor.append_history(path));
        }
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

/// Completes the names of commands.
struct CommandCompleter;

impl Completer for CommandCompleter {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _ctx: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let Some(prefix) = line[..pos].strip_prefix('/') else {
            return Ok((pos, Vec::new()));
        };
        let names = COMMANDS.iter().map(|command| command.name);
        let matching = names.filter(|name| name.starts_with(prefix));
        Ok((0, matching.map(|name| format!("/{name} ")).collect()))
    }
}

impl Hinter for CommandCompleter {
    type Hint = String;
}

impl Highlighter for CommandCompleter {}
impl Validator for CommandCompleter {}
impl Helper for CommandCompleter {}
