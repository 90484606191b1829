//! `switchboard replay`: shows a recorded run again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use switchboard_core::EventKind;

use crate::args;
use crate::bounded_read;
use crate::event_line::EventLine;
use crate::event_sink::EventSink as _;
use crate::failure::{Exit, Failure};
use crate::json_error;
use crate::recording::{Cuts, check_version};
use crate::screen::Screen;
use crate::screen::style::{Language, Look, NOTICE};
use crate::screen::wrap::{one_line, shortened};
use crate::translate::translate;

pub(super) async fn run(args: args::Replay, look: Look) -> Result<Exit, Failure> {
    let source: Box<dyn BufRead> = if args.file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&args.file);
        let file = file.map_err(|error| Failure::unreadable(&args.file, &error))?;
        Box::new(BufReader::new(file))
    };
    let mut output = if args.json {
        ReplayOutput::Json(io::stdout())
    } else {
        // The errors of the run are part of what is shown.
        ReplayOutput::Screen(Box::new(Screen::new(anstream::stdout(), look)))
    };
    let name = args.file.display().to_string();
    replay(source, &name, &mut output, args.speed, look.language).await
}

enum ReplayOutput {
    Screen(Box<Screen>),
    Json(io::Stdout),
}

impl ReplayOutput {
    fn write(&mut self, line: &EventLine, json: &[u8]) -> io::Result<()> {
        match self {
            Self::Screen(screen) => screen.write(line),
            // As it was recorded, with types and fields of later versions.
            Self::Json(out) => {
                out.write_all(json)?;
                out.write_all(b"\n")?;
                out.flush()
            }
        }
    }
}

async fn replay(
    mut source: Box<dyn BufRead>,
    name: &str,
    output: &mut ReplayOutput,
    speed: Option<f64>,
    language: Language,
) -> Result<Exit, Failure> {
    let mut invalid = InvalidLines::new(name, language);
    let mut previous = None;
    let mut cuts = Cuts::default();
    let mut bytes = Vec::new();
    for number in 1_usize.. {
        bytes.clear();
        let read = bounded_read::line_bytes(&mut source, &mut bytes);
        let read = read.map_err(|error| Failure::unreadable(Path::new(name), &error))?;
        if read == 0 {
            break;
        }
        let json = bytes.trim_ascii();
        if json.is_empty() {
            continue;
        }
        match EventLine::parse(json) {
            Ok(line) => {
                if !matches!(line.event.kind, EventKind::Unknown(_)) {
                    invalid.recording_found();
                }
                check_version(&line.event.kind, name)?;
                cuts.see(&line.event);
                if let Some(speed) = speed {
                    sleep(previous.replace(line.at), line.at, speed).await;
                }
                output.write(&line, json)?;
            }
            // A line without an end is the last one, and was being written.
            Err(_) if invalid.is_recording && !bytes.ends_with(b"\n") => {
                cuts.end_within_line();
            }
            Err(error) => invalid.add(number, json, &error)?,
        }
    }
    let exit = invalid.finish()?;
    let cuts = cuts.describe(name);
    if cuts.is_empty() {
        return Ok(exit);
    }
    cuts.iter().for_each(|text| warn(text, language));
    Ok(Exit::Failed)
}

/// The lines that are not events. A few are reported; a file of nothing else is not a recording.
struct InvalidLines<'a> {
    name: &'a str,
    language: Language,
    /// Warnings, held back until the file turns out to be a recording.
    warnings: Vec<String>,
    is_recording: bool,
    count: usize,
}

impl<'a> InvalidLines<'a> {
    /// The number of lines that are reported.
    const MAX_REPORTED: usize = 10;

    fn new(name: &'a str, language: Language) -> Self {
        Self {
            name,
            language,
            warnings: Vec::new(),
            is_recording: false,
            count: 0,
        }
    }

    fn recording_found(&mut self) {
        self.is_recording = true;
        let language = self.language;
        self.warnings
            .drain(..)
            .for_each(|text| warn(&text, language));
    }

    fn add(
        &mut self,
        number: usize,
        line: &[u8],
        error: &serde_json::Error,
    ) -> Result<(), Failure> {
        if !self.is_recording && is_of_older_version(line) {
            return Err(Failure::usage(
                format!(
                    "{} was recorded by an older version of switchboard",
                    self.name
                ),
                "record the conversation again: the events have another form now",
            ));
        }
        self.count += 1;
        if self.count > Self::MAX_REPORTED {
            return if self.is_recording {
                Ok(())
            } else {
                Err(self.not_a_recording())
            };
        }
        let text = describe(self.name, number, line, error);
        if self.is_recording {
            warn(&text, self.language);
        } else {
            self.warnings.push(text);
        }
        Ok(())
    }

    fn finish(self) -> Result<Exit, Failure> {
        if !self.is_recording {
            return Err(self.not_a_recording());
        }
        let unreported = self.count.saturating_sub(Self::MAX_REPORTED);
        if unreported > 0 {
            let name = self.name;
            let text = format!("{name}: {unreported} more lines were left out");
            warn(&text, self.language);
        }
        Ok(match self.count {
            0 => Exit::Ok,
            _ => Exit::Usage,
        })
    }

    fn not_a_recording(&self) -> Failure {
        Failure::usage(
            format!("{} holds no events of a run", self.name),
            "record one with `switchboard run team.toml \"Hi\" --json > run.jsonl`, or a chat with \
             /save",
        )
    }
}

/// Returns `true` for an event from before the events had turns.
fn is_of_older_version(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(line).is_ok_and(|event| {
        event["type"].is_string() && event["at"].is_number() && event.get("turn").is_none()
    })
}

/// Waits as long as the recorded run did, but at most a minute.
async fn sleep(previous: Option<f64>, at: f64, speed: f64) {
    let pause = (at - previous.unwrap_or(at)) / speed;
    let pause = Duration::try_from_secs_f64(pause).unwrap_or_default();
    tokio::time::sleep(pause.min(Duration::from_secs(60))).await;
}

/// Describes an invalid line, with advice.
fn describe(name: &str, number: usize, line: &[u8], error: &serde_json::Error) -> String {
    // The line may be a whole file of something else.
    let line = String::from_utf8_lossy(&line[..line.len().min(240)]);
    let line = one_line(&line);
    let line = shortened(&line, 60);
    let error = json_error::describe(error);
    // The position within one line is of no use.
    let error = match error.rsplit_once(" at line ") {
        Some((error, _)) => one_line(error),
        None => one_line(&error),
    };
    format!(
        "{name}:{number}: left out, as this is not an event: {error}\n  {line}\n  help: mend or \
         delete the line; each is one JSON object with a \"type\""
    )
}

/// Prints a warning; its last line may be advice.
fn warn(text: &str, language: Language) {
    let look = Look::of_stderr(language);
    let warning = look.paint(NOTICE, language.choose("warning:", "警告："));
    let lines = text
        .lines()
        .map(|line| match line.strip_prefix("  help: ") {
            Some(help) => format!("  {} {}", language.help(), translate(help, language)),
            None => translate(line, language).into_owned(),
        });
    let text = lines.collect::<Vec<_>>().join("\n");
    // A closed standard error is no reason to fail.
    let _ = writeln!(anstream::stderr(), "{warning} {text}");
}
