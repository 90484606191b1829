//! Runs a program in a terminal, types what it is told, and writes a picture of what was shown.

mod options;

use std::{error::Error, fs, process::ExitCode, thread, time::Duration};

use options::{Form, Input, Options, Step, USAGE};
use terminal::Terminal;

/// Between two characters that are typed, so that a recording shows somebody type.
const CHARACTER: Duration = Duration::from_millis(60);
/// Before something is typed, and before a key: time to read.
const THOUGHT: Duration = Duration::from_millis(500);
/// How long the screen must have stood still before the last picture.
const STILL: Duration = Duration::from_millis(300);

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
    // What is given comes last and wins.
    let own = [("HOME", home.as_str()), ("LANG", "C.UTF-8")];
    let given = options
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let args = options.args.iter().map(String::as_str);
    let env = own.into_iter().chain(given);
    let mut terminal = Terminal::start(&options.program, args, options.size, env)?;

    for step in &options.steps {
        match step {
            Step::Wait(text) => terminal.wait_for(text)?,
            Step::Gone(text) => terminal.wait_gone(text)?,
            Step::Type(inputs) => type_all(&mut terminal, inputs, options.form),
        }
    }
    // Who waits for something at the end wants to see it, whether or not the program goes on.
    if matches!(options.steps.last(), Some(Step::Wait(_) | Step::Gone(_))) {
        terminal.settle(STILL);
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
    pause(THOUGHT);
    for input in inputs {
        match input {
            Input::Key(key) => {
                pause(THOUGHT);
                terminal.press(*key);
            }
            Input::Character(character) => {
                pause(CHARACTER);
                terminal.type_text(character.encode_utf8(&mut [0; 4]));
            }
        }
    }
}
