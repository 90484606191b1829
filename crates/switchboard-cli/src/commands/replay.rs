//! `switchboard replay`: a recorded run, shown again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::Path;
use std::time::Duration;

use crate::args;
use crate::audience::{Audience, JsonLines};
use crate::event::Line;
use crate::failure::{Exit, Failure};
use crate::screen::Screen;
use crate::screen::style::{Look, NOTICE};
use crate::screen::wrap::{one_line, shortened};

pub(super) async fn run(args: args::Replay, look: Look) -> Result<Exit, Failure> {
    let source: Box<dyn BufRead> = match args.file == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => {
            let file = File::open(&args.file);
            let file = file.map_err(|error| Failure::unreadable(&args.file, &error))?;
            Box::new(BufReader::new(file))
        }
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
    let mut exit = Exit::Ok;
    let mut shown = 0_usize;
    let mut now = None;
    let mut bytes = Vec::new();
    for number in 1_usize.. {
        bytes.clear();
        let read = source.read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| Failure::unreadable(Path::new(name), &error))?;
        if read == 0 {
            break;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Line>(bytes.trim_ascii()) {
            Ok(line) => {
                if let Some(speed) = speed {
                    wait(now.replace(line.at), line.at, speed).await;
                }
                audience.told(&line)?;
                shown += 1;
            }
            Err(error) => {
                exit = Exit::Usage;
                complain(name, number, &bytes, &error);
            }
        }
    }
    match shown {
        0 => Err(Failure::usage(
            format!("{name} holds no events"),
            "record a run with `switchboard run team.toml \"Hi\" --json > run.jsonl`, or a chat with \
             /save",
        )),
        _ => Ok(exit),
    }
}

/// Waits as long as it took, but nobody waits for minutes.
async fn wait(before: Option<f64>, at: f64, speed: f64) {
    let took = (at - before.unwrap_or(at)) / speed;
    let took = Duration::try_from_secs_f64(took).unwrap_or_default();
    tokio::time::sleep(took.min(Duration::from_secs(60))).await;
}

/// Says which line is broken; the others are shown all the same.
fn complain(name: &str, number: usize, line: &[u8], error: &serde_json::Error) {
    let look = Look::of_stderr(Default::default());
    let warning = look.paint(NOTICE, "warning:");
    let line = String::from_utf8_lossy(line.trim_ascii());
    let line = one_line(&line);
    let line = shortened(&line, 60);
    let error = error.to_string();
    // The place within the line is of no use: it is one line.
    let error = error.split(" at line ").next().unwrap_or(&error);
    let error = one_line(error);
    // Nothing can be done where nobody reads standard error.
    let _ = writeln!(
        anstream::stderr(),
        "{warning} {name}:{number}: left out, as this is not an event: {error}\n  {line}\n  help: \
         mend or delete the line; each is one JSON object with a \"type\""
    );
}
