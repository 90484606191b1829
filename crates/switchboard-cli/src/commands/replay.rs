//! `switchboard replay`: a recorded run, shown again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::Path;
use std::time::Duration;

use crate::args;
use crate::audience::{Audience, JsonLines};
use crate::event::{Event, Line};
use crate::failure::{Exit, Failure};
use crate::screen::Screen;
use crate::screen::style::{Language, Look, NOTICE};
use crate::screen::wrap::{one_line, shortened};

pub(super) async fn run(args: args::Replay, look: Look) -> Result<Exit, Failure> {
    let source: Box<dyn BufRead> = if args.file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&args.file);
        let file = file.map_err(|error| Failure::unreadable(&args.file, &error))?;
        Box::new(BufReader::new(file))
    };
    let name = args.file.display().to_string();
    match args.json {
        true => replay(source, &name, &mut JsonLines(io::stdout()), args.speed).await,
        // What went wrong in the run is part of what is shown here.
        false => {
            let mut screen = Screen::new(anstream::stdout(), look);
            replay(source, &name, &mut screen, args.speed).await
        }
    }
}

async fn replay(
    mut source: Box<dyn BufRead>,
    name: &str,
    audience: &mut dyn Audience,
    speed: Option<f64>,
) -> Result<Exit, Failure> {
    let mut broken = Broken::new(name);
    let mut now = None;
    let mut bytes = Vec::new();
    for number in 1_usize.. {
        bytes.clear();
        let read = source.read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| Failure::unreadable(Path::new(name), &error))?;
        if read == 0 {
            break;
        }
        match bytes.trim_ascii() {
            b"" => {}
            line => match serde_json::from_slice::<Line>(line) {
                Ok(line) => {
                    if line.event != Event::Unknown {
                        broken.is_a_recording();
                    }
                    if let Some(speed) = speed {
                        wait(now.replace(line.at), line.at, speed).await;
                    }
                    audience.told(&line)?;
                }
                Err(error) => broken.add(number, line, &error)?,
            },
        }
    }
    broken.end()
}

/// The lines that cannot be shown. A few are told of; a file of nothing else is no recording.
struct Broken<'a> {
    name: &'a str,
    /// What is told once it is sure that the file is a recording.
    held: Vec<String>,
    is_recording: bool,
    count: usize,
}

impl<'a> Broken<'a> {
    /// How many are told of.
    const TOLD: usize = 10;

    fn new(name: &'a str) -> Self {
        Self {
            name,
            held: Vec::new(),
            is_recording: false,
            count: 0,
        }
    }

    fn is_a_recording(&mut self) {
        self.is_recording = true;
        self.held.drain(..).for_each(|text| warn(&text));
    }

    fn add(
        &mut self,
        number: usize,
        line: &[u8],
        error: &serde_json::Error,
    ) -> Result<(), Failure> {
        self.count += 1;
        if self.count > Self::TOLD {
            return if self.is_recording {
                Ok(())
            } else {
                Err(self.no_recording())
            };
        }
        let text = described(self.name, number, line, error);
        if self.is_recording {
            warn(&text)
        } else {
            self.held.push(text)
        }
        Ok(())
    }

    fn end(self) -> Result<Exit, Failure> {
        if !self.is_recording {
            return Err(self.no_recording());
        }
        let untold = self.count.saturating_sub(Self::TOLD);
        if untold > 0 {
            warn(&format!("{}: {untold} more lines were left out", self.name));
        }
        Ok(match self.count {
            0 => Exit::Ok,
            _ => Exit::Usage,
        })
    }

    fn no_recording(&self) -> Failure {
        Failure::usage(
            format!("{} holds no events of a run", self.name),
            "record one with `switchboard run team.toml \"Hi\" --json > run.jsonl`, or a chat with \
             /save",
        )
    }
}

/// Waits as long as it took, but nobody waits for minutes.
async fn wait(before: Option<f64>, at: f64, speed: f64) {
    let took = (at - before.unwrap_or(at)) / speed;
    let took = Duration::try_from_secs_f64(took).unwrap_or_default();
    tokio::time::sleep(took.min(Duration::from_secs(60))).await;
}

/// Which line is broken, and what to do.
fn described(name: &str, number: usize, line: &[u8], error: &serde_json::Error) -> String {
    // A line that is no event may be a whole file of something else.
    let line = String::from_utf8_lossy(&line[..line.len().min(240)]);
    let line = one_line(&line);
    let line = shortened(&line, 60);
    let error = error.to_string();
    // The place within the line is of no use: it is one line.
    let error = error.split(" at line ").next().unwrap_or(&error);
    let error = one_line(error);
    format!(
        "{name}:{number}: left out, as this is not an event: {error}\n  {line}\n  help: mend or \
         delete the line; each is one JSON object with a \"type\""
    )
}

fn warn(text: &str) {
    let look = Look::of_stderr(Language::En);
    let warning = look.paint(NOTICE, "warning:");
    // Nothing can be done where nobody reads standard error.
    let _ = writeln!(anstream::stderr(), "{warning} {text}");
}
