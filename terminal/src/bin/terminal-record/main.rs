//! Runs a program in a terminal, types into it, and writes a screenshot or a recording.

mod options;

use std::{error::Error, fs, process::ExitCode, thread, time::Duration};

use options::{Form, Input, Options, Step, USAGE};
use terminal::Terminal;

/// The pause before each typed character in a recording.
const CHARACTER_PAUSE: Duration = Duration::from_millis(60);
/// The pause before typing and before each key in a recording, as time to read.
const READING_PAUSE: Duration = Duration::from_millis(500);
/// The time without output before the last screenshot.
const QUIET: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("terminal-record: {problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match record(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("terminal-record: {error}");
            ExitCode::FAILURE
        }
    }
}

fn record(options: &Options) -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let home = home.path().to_string_lossy().into_owned();
    // Given variables come last and override these.
    let defaults = [("HOME", home.as_str()), ("LANG", "C.UTF-8")];
    let given = options
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let args = options.args.iter().map(String::as_str);
    let env = defaults.into_iter().chain(given);
    let mut terminal = Terminal::start(&options.program, args, options.size, env)?;

    for step in &options.steps {
        match step {
            Step::Wait(text) => terminal.wait_for(text)?,
            Step::Gone(text) => terminal.wait_gone(text)?,
            Step::Type(inputs) => type_all(&mut terminal, inputs, options.form),
        }
    }
    // After a final wait, the program may keep running.
    if matches!(options.steps.last(), Some(Step::Wait(_) | Step::Gone(_))) {
        terminal.settle(QUIET);
    } else {
        terminal.wait_exit()?;
    }
    let svg = match options.form {
        Form::Still => terminal.svg(&options.title),
        Form::Animated => terminal.recording().svg(&options.title),
    };
    fs::write(&options.out, svg)
        .map_err(|error| format!("cannot write {}: {error}", options.out))?;
    Ok(())
}

fn type_all(terminal: &mut Terminal, inputs: &[Input], form: Form) {
    let pause = |time| match form {
        Form::Still => {}
        Form::Animated => thread::sleep(time),
    };
    pause(READING_PAUSE);
    for input in inputs {
        match input {
            Input::Key(key) => {
                pause(READING_PAUSE);
                terminal.press(*key);
            }
            Input::Character(character) => {
                pause(CHARACTER_PAUSE);
                terminal.type_text(character.encode_utf8(&mut [0; 4]));
            }
        }
    }
}
