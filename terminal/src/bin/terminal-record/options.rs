//! What the program is asked to do.

use std::str::FromStr;

use terminal::{Key, Size};

pub(crate) const USAGE: &str = "\
usage: terminal-record --out FILE [options] -- PROGRAM [ARGUMENT...]

  --out FILE          the SVG to write
  --still             one picture, of the end, instead of an animation
  --columns N         the width of the screen, 80 unless told
  --rows N            its height, 24 unless told
  --title TEXT        the title of the window, the program and its arguments unless told
  --env NAME=VALUE    a variable for the program; it gets PATH, TERM, SHELL, LANG and a HOME that is empty
  --type TEXT         type this; <Enter>, <Tab>, <Backspace>, <Escape>, <Up>, <Down>, <Left>, <Right>,
                      <Home>, <End>, <CtrlC> and <CtrlD> are keys
  --wait TEXT         wait until this is shown
  --gone TEXT         wait until this is no longer shown

--type, --wait and --gone are done in their order. With --wait or --gone as the last of them the program
is then stopped; otherwise it must come to its end.";

/// What the program is asked to do.
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
                _ => return Err(format!("there is no option {option}")),
            }
        }
        let command: Vec<String> = arguments.collect();
        let Some((program, args)) = command.split_first() else {
            return Err("which program? It comes after --".to_owned());
        };
        Ok(Self {
            size,
            out: out.ok_or("--out is missing: where to write the picture")?,
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
        Ok(0) | Err(_) => Err(format!("{option} needs a number from 1 on, not {value:?}")),
        Ok(cells) => Ok(cells),
    }
}

fn variable(value: &str) -> Result<(String, String), String> {
    value
        .split_once('=')
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or(format!("--env needs NAME=VALUE, not {value:?}"))
}

/// Text with keys in it. What is in angle brackets and no key is text.
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
    fn steps_keep_their_order_and_what_is_no_key_is_text() {
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
    fn mistakes_are_told() {
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
                "which program? It comes after --",
                "--out is missing: where to write the picture",
                "--rows needs a number from 1 on, not \"0\"",
                "--rows needs a value",
                "--env needs NAME=VALUE, not \"A\"",
                "there is no option --colour",
            ]
        );
    }
}
