//! Reads the lines that a person types. Reading blocks, so it has a thread of its own.

mod terminal_mode;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use rustyline::completion::Completer;
use rustyline::config::Configurer as _;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{FileHistory, History as _};
use rustyline::validate::Validator;
use rustyline::{
    Cmd, Config, Context, Editor, ExternalPrinter, Helper, KeyCode, KeyEvent, Modifiers,
};
use tokio::sync::mpsc as async_mpsc;

use crate::bounded_read;
use crate::data_folder;
use crate::failure::Failure;
pub(crate) use terminal_mode::ResumeSignal;
use terminal_mode::SavedMode;

/// The number of lines in the history.
const MAX_HISTORY: usize = 1000;

/// Reads lines from a terminal, a pipe or a file.
pub(crate) struct LineReader {
    prompts: mpsc::Sender<Prompt>,
    lines: async_mpsc::Receiver<ReadLine>,
    source: Source,
    /// Makes the editor draw its line again.
    printer: Option<Box<dyn ExternalPrinter + Send>>,
    /// The lines that are stored. The editor has those of this chat in memory.
    history: Option<StoredHistory>,
    /// The mode of the terminal before lines were edited.
    saved_mode: SavedMode,
    /// Set while a requested line has not been received.
    is_waiting: bool,
}

/// The file of lines that were typed.
struct StoredHistory {
    path: PathBuf,
    lines: FileHistory,
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
pub(crate) struct Prompt {
    /// The kind of line that is asked for.
    pub(crate) kind: LineKind,
    /// The text without colours.
    pub(crate) raw: String,
    /// The text with colours.
    pub(crate) styled: String,
}

/// A kind of line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// A message or a command, which can be recalled.
    Message,
    /// An answer to a question, which is forgotten.
    Answer,
}

/// The result of reading a line.
#[derive(Debug)]
pub(crate) enum ReadLine {
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
    /// Creates a reader of messages with a line editor, a history, and the names of commands to complete.
    pub(crate) fn of_messages(commands: Vec<&'static str>) -> Result<Self, Failure> {
        // Without a data folder the history is in memory.
        let history = data_folder::open().ok();
        let history = history.map(|folder| folder.join("history"));
        Self::interactive(history, commands)
    }

    /// Creates a reader of answers: with a line editor in a terminal.
    pub(crate) fn of_answers() -> Result<Self, Failure> {
        if io::stdin().is_terminal() && io::stdout().is_terminal() {
            Self::interactive(None, Vec::new())
        } else {
            Ok(Self::piped())
        }
    }

    fn interactive(history: Option<PathBuf>, commands: Vec<&'static str>) -> Result<Self, Failure> {
        let unusable = |error| {
            Failure::usage(
                format!("the terminal cannot be used: {error}"),
                "pipe the messages in instead: switchboard chat team.toml < messages.txt",
            )
        };
        let config = config().map_err(unusable)?;
        let lines = FileHistory::with_config(&config);
        let mut editor = editor(config, history.as_ref(), commands).map_err(unusable)?;
        let printer = editor.create_external_printer().ok();
        let mut reader = Self::spawn(Source::Terminal, move |prompts, lines| {
            edit(editor, &prompts, &lines);
        });
        reader.printer = printer.map(|printer| Box::new(printer) as _);
        reader.history = history.map(|path| StoredHistory { path, lines });
        Ok(reader)
    }

    /// Creates a reader for a pipe or a file.
    pub(crate) fn piped() -> Self {
        Self::spawn(Source::Piped, |prompts, lines| {
            let mut stdin = io::stdin().lock();
            while prompts.recv().is_ok() {
                let line = match bounded_read::line(&mut stdin) {
                    Ok(Some(line)) => ReadLine::Line(line),
                    Ok(None) => ReadLine::End,
                    Err(error) => ReadLine::Failed(error),
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
            history: None,
            saved_mode,
            is_waiting: false,
        }
    }

    /// Returns `true` if a person types the lines.
    pub(crate) fn is_interactive(&self) -> bool {
        self.source == Source::Terminal
    }

    /// Stores a line for the next chats. A history that cannot be written is treated as missing.
    pub(crate) fn store(&mut self, line: &str) {
        let Some(StoredHistory { path, lines }) = &mut self.history else {
            return;
        };
        if lines.add(line).is_ok() && data_folder::make_private(path).is_ok() {
            let _ = lines.append(path);
        }
    }

    /// Continues editing after the program was suspended and the shell has used the terminal.
    pub(crate) fn resume(&mut self) {
        if let (true, Some(printer)) = (self.is_waiting, &mut self.printer) {
            self.saved_mode.set_raw();
            // It fails only if the editor has ended.
            let _ = printer.print(String::new());
        }
    }

    /// Reads the next line. If the future is dropped, the next call returns that line.
    pub(crate) async fn next(&mut self, prompt: Prompt) -> ReadLine {
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

fn config() -> rustyline::Result<Config> {
    let config = Config::builder()
        .max_history_size(MAX_HISTORY)?
        .history_ignore_dups(true)?
        .history_ignore_space(true);
    Ok(config.build())
}

fn editor(
    config: Config,
    history: Option<&PathBuf>,
    commands: Vec<&'static str>,
) -> rustyline::Result<Editor<CommandCompleter, FileHistory>> {
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(CommandCompleter(commands)));
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    if let Some(path) = history.filter(|path| path.exists()) {
        // A history that cannot be read is treated as missing.
        let _ = editor.load_history(path);
    }
    Ok(editor)
}

fn edit(
    mut editor: Editor<CommandCompleter, FileHistory>,
    prompts: &mpsc::Receiver<Prompt>,
    lines: &async_mpsc::Sender<ReadLine>,
) {
    while let Ok(Prompt { kind, raw, styled }) = prompts.recv() {
        editor.set_auto_add_history(kind == LineKind::Message);
        let line = match editor.readline(&(raw, styled)) {
            Ok(line) => ReadLine::Line(line),
            Err(ReadlineError::Interrupted) => ReadLine::Interrupted,
            Err(ReadlineError::Eof) => ReadLine::End,
            Err(ReadlineError::Io(error)) => ReadLine::Failed(error),
            Err(error) => ReadLine::Failed(io::Error::other(error)),
        };
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

/// Completes the names of commands.
struct CommandCompleter(Vec<&'static str>);

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
        let matching = self.0.iter().filter(|name| name.starts_with(prefix));
        Ok((0, matching.map(|name| format!("/{name} ")).collect()))
    }
}

impl Hinter for CommandCompleter {
    type Hint = String;
}

impl Highlighter for CommandCompleter {}
impl Validator for CommandCompleter {}
impl Helper for CommandCompleter {}
