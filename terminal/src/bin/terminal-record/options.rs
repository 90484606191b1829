//! The command line.

use std::str::FromStr;

use terminal::{Key, Size};

pub(crate) const USAGE: &str = "\
usage: terminal-record --out FILE [options] -- PROGRAM [ARGUMENT...]

  --out FILE          the SVG to write
  --still             one screenshot of the end instead of an animation
  --columns N         the width of the screen (default 80)
  --rows N            the height of the screen (default 24)
  --title TEXT        the title of the window (default: the command)
  --env NAME=VALUE    a variable for the program, besides PATH, TERM, SHELL, LANG and an empty HOME
  --type TEXT         type this; <Enter>, <Tab>, <Backspace>, <Escape>, <Up>, <Down>, <Left>, <Right>,
                      <Home>, <End>, <CtrlC> and <CtrlD> are keys
  --wait TEXT         wait until this is shown
  --gone TEXT         wait until this is no longer shown

--type, --wait and --gone are done in order. If the last of them is --wait or --gone, the program is stopped
then; otherwise it must end by itself.";

/// The parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) size: Size,
    pub(crate) out: String,
    pub(crate) form: Form,
    pub(crate) title: String,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) steps: Vec<Step>,
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Still,
    Animated,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Type(Vec<Input>),
    Wait(String),
    Gone(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Character(char),
    Key(Key),
}

impl Options {
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut size = Size {
            columns: 80,
            rows: 24,
        };
        let (mut out, mut title) = (None, None);
        let mut form = Form::Animated;
        let (mut env, mut steps) = (Vec::new(), Vec::new());

        let mut arguments = arguments.into_iter();
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{option} needs a value"));
            match option.as_str() {
                "--" => break,
                "--still" => form = Form::Still,
                "--columns" => size.columns = cells(&option, &value()?)?,
                "--rows" => size.rows = cells(&option, &value()?)?,
                "--out" => out = Some(value()?),
                "--title" => title = Some(value()?),
                "--env" => env.push(variable(&value()?)?),
                "--type" => steps.push(Step::Type(inputs(&value()?))),
                "--wait" => steps.push(Step::Wait(value()?)),
                "--gone" => steps.push(Step::Gone(value()?)),
                _ => return Err(format!("unknown option {option}")),
            }
        }
        let command: Vec<String> = arguments.collect();
        let Some((program, args)) = command.split_first() else {
            return Err("the program is missing: give it after --".to_owned());
        };
        Ok(Self {
            size,
            out: out.ok_or("--out is missing: the file to write")?,
            form,
            title: title.unwrap_or_else(|| command.join(" ")),
            env,
            steps,
            program: program.clone(),
            args: args.to_vec(),
        })
    }
}

fn cells(option: &str, value: &str) -> Result<u16, String> {
    match value.parse() {
        Ok(0) | Err(_) => Err(format!(
            "{option} needs a number of at least 1, not {value:?}"
        )),
        Ok(cells) => Ok(cells),
    }
}

fn variable(value: &str) -> Result<(String, String), String> {
    value
        .split_once('=')
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or(format!("--env needs NAME=VALUE, not {value:?}"))
}

/// Parses text with keys in angle brackets. Anything else in angle brackets is text.
fn inputs(mut text: &str) -> Vec<Input> {
    let mut inputs = Vec::new();
    while let Some(first) = text.chars().next() {
        let key = text.strip_prefix('<').and_then(|rest| {
            let (name, rest) = rest.split_once('>')?;
            Some((Key::from_str(name).ok()?, rest))
        });
        if let Some((key, rest)) = key {
            inputs.push(Input::Key(key));
            text = rest;
        } else {
            inputs.push(Input::Character(first));
            text = &text[first.len_utf8()..];
        }
    }
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        Options::parse(arguments.iter().map(|argument| (*argument).to_owned()))
    }

    #[test]
    fn steps_keep_their_order_and_unknown_keys_are_text() {
        let options = parse(&[
            "--rows",
            "3",
            "--still",
            "--out",
            "a.svg",
            "--env",
            "A=b=c",
            "--wait",
            "> ",
            "--type",
            "a<b><Enter>",
            "--gone",
            "...",
            "--",
            "cat",
            "--still",
        ]);
        let expected = Options {
            size: Size {
                columns: 80,
                rows: 3,
            },
            out: "a.svg".to_owned(),
            form: Form::Still,
            title: "cat --still".to_owned(),
            env: vec![("A".to_owned(), "b=c".to_owned())],
            steps: vec![
                Step::Wait("> ".to_owned()),
                Step::Type(vec![
                    Input::Character('a'),
                    Input::Character('<'),
                    Input::Character('b'),
                    Input::Character('>'),
                    Input::Key(Key::Enter),
                ]),
                Step::Gone("...".to_owned()),
            ],
            program: "cat".to_owned(),
            args: vec!["--still".to_owned()],
        };
        assert_eq!(options, Ok(expected));
    }

    #[test]
    fn mistakes_are_reported() {
        let problem = |arguments: &[&str]| parse(arguments).unwrap_err();
        assert_eq!(
            [
                problem(&["--out", "a.svg"]),
                problem(&["--", "cat"]),
                problem(&["--rows", "0"]),
                problem(&["--rows"]),
                problem(&["--env", "A"]),
                problem(&["--colour"]),
            ],
            [
                "the program is missing: give it after --",
                "--out is missing: the file to write",
                "--rows needs a number of at least 1, not \"0\"",
                "--rows needs a value",
                "--env needs NAME=VALUE, not \"A\"",
                "unknown option --colour",
            ]
        );
    }
}
