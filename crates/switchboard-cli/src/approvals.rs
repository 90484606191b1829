//! Decisions on calls that wait for approval, and answers of people that a run waits for: those of a person
//! who is asked, or of the command line.

mod answer;
mod person;
mod waiting_run;

use std::io::{self, IsTerminal as _, Write as _};

use switchboard_core::approval::{Decision, DecisionError, Interruption};
use switchboard_core::people::PersonAnswer;
use switchboard_teamfile::{ApprovalRules, Context, TeamFile};

use crate::args::{self, ApproveBy};
use crate::conversation::{Conversation, RunOutcome};
use crate::event_sink::EventSink;
use crate::failure::{Exit, Failure};
use crate::line_reader::{LineKind, LineReader, Prompt, ReadLine, ResumeSignal};
use crate::screen::style::{BOLD, DIM, Look};
use crate::screen::waiting_name;
use crate::screen::wrap::{one_line, shortened, wrapped};
use crate::signals::{Signal, Signals};
use answer::Answer;
use person::PersonLine;
pub(crate) use person::{given_answer, is_person};
pub(crate) use waiting_run::WaitingRun;

/// Decides calls that wait.
pub(crate) struct Approvals {
    by: DecidedBy,
    /// The answer of the person that the run waits for first, given on the command line.
    answer: Option<PersonAnswer>,
    look: Look,
}

enum DecidedBy {
    /// Nobody: the calls wait on.
    Nobody,
    /// A person who is asked.
    Person,
    /// Everything is approved.
    ApproveAll,
    /// Everything is rejected.
    RejectAll,
    Rules(Box<ApprovalRules>),
}

/// The outcome of asking a person.
enum Asked {
    /// All calls are decided, and people have answered.
    Decided,
    /// The person left the calls waiting.
    Left,
    /// The program was asked to end.
    Stopped(Signal),
}

impl Approvals {
    /// Leaves calls waiting.
    pub(crate) fn none(look: Look) -> Self {
        Self {
            by: DecidedBy::Nobody,
            answer: None,
            look,
        }
    }

    /// Gives the answer of the person that the run waits for.
    pub(crate) fn answer_with(mut self, answer: Option<PersonAnswer>) -> Self {
        self.answer = answer;
        self
    }

    /// Decides as the command line asks. Without an option a person is asked in a terminal.
    pub(crate) fn new(
        args: &args::Approve,
        file: &TeamFile,
        output: Output,
        look: Look,
    ) -> Result<Self, Failure> {
        let by = match &args.approve {
            Some(ApproveBy::Ask) if output == Output::Json => {
                return Err(Failure::usage(
                    "nobody can be asked here",
                    "decide with --approve all, none or a file of rules, or later with `switchboard \
                     resume`",
                ));
            }
            Some(ApproveBy::Ask) => DecidedBy::Person,
            Some(ApproveBy::All) => DecidedBy::ApproveAll,
            Some(ApproveBy::None) => DecidedBy::RejectAll,
            Some(ApproveBy::File(path)) => {
                DecidedBy::Rules(Box::new(ApprovalRules::read(path, file)?))
            }
            None if output == Output::Screen
                && io::stdin().is_terminal()
                && io::stdout().is_terminal() =>
            {
                DecidedBy::Person
            }
            None => DecidedBy::Nobody,
        };
        Ok(Self {
            by,
            answer: None,
            look,
        })
    }

    /// Creates a reader of answers, if a person is asked.
    pub(crate) fn reader(&self) -> Result<Option<LineReader>, Failure> {
        match self.by {
            DecidedBy::Person => LineReader::of_answers().map(Some),
            _ => Ok(None),
        }
    }

    /// Decides the calls of a run that waits and goes on with it, until none waits or nobody decides.
    pub(crate) async fn settle(
        &self,
        mut outcome: RunOutcome,
        conversation: &mut Conversation,
        mut reader: Option<&mut LineReader>,
        sink: &mut dyn EventSink,
        signals: &mut Signals,
    ) -> Result<RunOutcome, Failure> {
        let mut given = self.answer.as_ref();
        while outcome == RunOutcome::Waiting {
            let Some(run) = conversation.waiting() else {
                break;
            };
            let mut run = WaitingRun::new(run.clone());
            let before = run.interruptions();
            let has_answer = if let Some(answer) = given.take() {
                give_answer(&mut run, answer)?;
                true
            } else {
                let context = conversation.team().open.context();
                let decided = self.decide(&mut run, context, reader.as_deref_mut(), signals);
                match decided.await? {
                    Asked::Decided => self.asks() && before.iter().any(is_person),
                    Asked::Left => break,
                    Asked::Stopped(signal) => return Ok(RunOutcome::Stopped(signal)),
                }
            };
            if !has_answer && run.interruptions().len() == before.len() {
                break;
            }
            outcome = conversation.resume(run, sink, signals).await?;
        }
        Ok(outcome)
    }

    /// Returns `true` if a person is asked.
    fn asks(&self) -> bool {
        matches!(self.by, DecidedBy::Person)
    }

    /// Decides the calls of a run as the command line says. Returns `false` if calls still wait that a person
    /// would have to decide.
    pub(crate) fn decide_alone(
        &self,
        run: &mut WaitingRun,
        context: &Context,
    ) -> Result<bool, Failure> {
        let before = run.interruptions().len();
        match &self.by {
            DecidedBy::Nobody | DecidedBy::Person => return Ok(false),
            DecidedBy::ApproveAll => decide_all(run, &|_| Some(Decision::approve()))?,
            DecidedBy::RejectAll => decide_all(run, &|_| Some(Decision::reject()))?,
            DecidedBy::Rules(rules) => decide_all(run, &|call| rules.decide(call, context))?,
        }
        Ok(run.interruptions().len() < before)
    }

    async fn decide(
        &self,
        run: &mut WaitingRun,
        context: &Context,
        reader: Option<&mut LineReader>,
        signals: &mut Signals,
    ) -> Result<Asked, Failure> {
        match &self.by {
            DecidedBy::Nobody => Ok(Asked::Left),
            DecidedBy::Person => match reader {
                Some(reader) => self.ask(run, reader, signals).await,
                None => Ok(Asked::Left),
            },
            _ => {
                self.decide_alone(run, context)?;
                Ok(Asked::Decided)
            }
        }
    }

    /// Asks for each call.
    async fn ask(
        &self,
        run: &mut WaitingRun,
        reader: &mut LineReader,
        signals: &mut Signals,
    ) -> Result<Asked, Failure> {
        let mut resume = ResumeSignal::listen()?;
        let calls = run.interruptions();
        for (position, call) in calls.iter().enumerate() {
            let mut has_answer = false;
            // A decision for always decides later calls as well.
            while !has_answer && run.interruptions().contains(call) {
                let prompt = if is_person(call) {
                    self.person_prompt(call)
                } else {
                    self.prompt(call, position + 1, calls.len())
                };
                if !reader.is_interactive() {
                    self.say(&prompt.raw)?;
                }
                let read = tokio::select! {
                    read = reader.next(prompt) => read,
                    () = resume.next() => {
                        reader.resume();
                        continue;
                    }
                    signal = signals.next() => match signal {
                        Signal::Interrupt => ReadLine::Interrupted,
                        signal => return Ok(Asked::Stopped(signal)),
                    },
                };
                let line = match read {
                    ReadLine::Line(line) => line,
                    ReadLine::Interrupted | ReadLine::End => return Ok(Asked::Left),
                    ReadLine::Failed(error) => {
                        let input = std::path::Path::new("standard input");
                        return Err(Failure::unreadable(input, &error));
                    }
                };
                if is_person(call) {
                    has_answer = self.answer_as(run, call, PersonLine::from(line.as_str()))?;
                } else {
                    self.answer(run, call, Answer::from(line.as_str()))?;
                }
            }
        }
        Ok(Asked::Decided)
    }

    /// Acts on an answer. A call that is not decided after it is asked for again.
    fn answer(
        &self,
        run: &mut WaitingRun,
        call: &Interruption,
        answer: Answer<'_>,
    ) -> Result<(), Failure> {
        let language = self.look.language;
        let (decision, words) = match answer {
            Answer::Approve(words) => (Decision::approve(), words),
            Answer::ApproveAlways(words) => (Decision::approve().always(), words),
            Answer::Reject(words) => (rejection(words), None),
            Answer::RejectAlways(words) => (rejection(words).always(), None),
            Answer::ShowAll => {
                let text = format!("{} {}", waiting_name(call), one_line(call.arguments.trim()));
                return self.say(text.trim_end());
            }
            Answer::Empty => return Ok(()),
            Answer::Help => return self.help(),
            Answer::Unclear => {
                return self.say(language.choose(
                    "answer with y, n or a; ? explains them",
                    "请回答 y、n 或 a；? 查看说明",
                ));
            }
        };
        if let Some(words) = words
            && let Err(error) = run.add_input(words)
        {
            return self.say(&error.to_string());
        }
        run.decide(call, decision).map_err(|error| refused(&error))
    }

    /// Acts on a person's line. Returns `true` if it is an answer.
    fn answer_as(
        &self,
        run: &mut WaitingRun,
        waiting: &Interruption,
        line: PersonLine,
    ) -> Result<bool, Failure> {
        let language = self.look.language;
        match line {
            PersonLine::Answer(answer) => match run.answer(waiting, answer) {
                Ok(()) => return Ok(true),
                Err(error) => self.say(&error.to_string())?,
            },
            PersonLine::ShowAll => self.say(&one_line(waiting.arguments.trim()))?,
            PersonLine::Help => self.person_help()?,
            PersonLine::Empty => {}
            PersonLine::Unclear => self.say(language.choose(
                "there are /to NAME, /back and /show; ? explains them",
                "命令有 /to 名称、/back 和 /show；? 查看说明",
            ))?,
        }
        Ok(false)
    }

    fn person_prompt(&self, waiting: &Interruption) -> Prompt {
        let question = self.look.language.choose("answer as", "以此身份回答：");
        let name = one_line(&waiting.agent);
        let name = shortened(&name, 40);
        Prompt {
            kind: LineKind::Answer,
            raw: format!("{question} {name}> "),
            styled: format!("{question} {}> ", self.look.paint(BOLD, &name)),
        }
    }

    fn person_help(&self) -> Result<(), Failure> {
        self.list(&[
            ("TEXT", "say it to the user", "说给用户"),
            (
                "/to NAME",
                "hand the conversation to this agent",
                "把对话交给该成员",
            ),
            (
                "/back",
                "hand the conversation back to where it came from",
                "把对话交还给原来的成员",
            ),
            ("/show", "show all of the payload", "显示全部内容"),
            ("Ctrl-C", "leave it waiting", "不作回答，继续等待"),
        ])
    }

    fn help(&self) -> Result<(), Failure> {
        self.list(&[
            (
                "y",
                "approve; words after it are said to the agent",
                "批准；后面的话会说给成员",
            ),
            (
                "n",
                "reject; words after it are the reason the model gets",
                "拒绝；后面的话作为理由告诉模型",
            ),
            (
                "a",
                "approve this tool of this agent until the run ends",
                "在本次运行中一直批准该成员的这个工具",
            ),
            (
                "never",
                "reject it until the run ends",
                "在本次运行中一直拒绝",
            ),
            ("s", "show all of the arguments", "显示全部参数"),
            ("Ctrl-C", "leave it waiting", "不作决定，继续等待"),
        ])
    }

    /// Lists answers with their meaning.
    fn list(&self, answers: &[(&str, &str, &str)]) -> Result<(), Failure> {
        let language = self.look.language;
        let widest = answers.iter().map(|(answer, ..)| answer.len()).max();
        let indent = widest.unwrap_or(0) + 2;
        for (answer, en, zh) in answers {
            let about = wrapped(language.choose(en, zh), self.look.width, indent, indent);
            writeln!(
                anstream::stdout(),
                "{}{about}",
                self.look.paint(BOLD, &format!("{answer:indent$}"))
            )?;
        }
        Ok(())
    }

    fn prompt(&self, call: &Interruption, number: usize, of: usize) -> Prompt {
        let language = self.look.language;
        let name = waiting_name(call);
        let name = shortened(&name, 40);
        let number = match of {
            1 => String::new(),
            of => format!(" ({number}/{of})"),
        };
        let question = language.choose("approve", "批准");
        Prompt {
            kind: LineKind::Answer,
            raw: format!("{question} {name}{number}? [y/n/a/?] "),
            styled: format!(
                "{question} {}{number}? {} ",
                self.look.paint(BOLD, &name),
                self.look.paint(DIM, "[y/n/a/?]")
            ),
        }
    }

    fn say(&self, text: &str) -> Result<(), Failure> {
        let text = wrapped(text.trim_end(), self.look.width, 0, 2);
        writeln!(anstream::stdout(), "{text}")?;
        Ok(())
    }
}

/// Gives the answer of the command line to the first person that the run waits for.
fn give_answer(run: &mut WaitingRun, answer: &PersonAnswer) -> Result<(), Failure> {
    let waiting = run.interruptions();
    let Some(waiting) = waiting.iter().find(|waiting| is_person(waiting)) else {
        return Err(Failure::usage(
            "nobody is asked for an answer: calls wait for a decision",
            "decide them with --approve",
        ));
    };
    run.answer(waiting, answer.clone())
        .map_err(|error| Failure::usage(error.to_string(), "give another answer"))
}

/// The output of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// For people.
    Screen,
    /// `--json`.
    Json,
}

impl Output {
    /// The output that `--json` chooses.
    pub(crate) fn new(json: bool) -> Self {
        if json { Self::Json } else { Self::Screen }
    }
}

fn decide_all(
    run: &mut WaitingRun,
    decide: &dyn Fn(&Interruption) -> Option<Decision>,
) -> Result<(), Failure> {
    for call in run.interruptions() {
        if !is_person(&call)
            && let Some(decision) = decide(&call)
        {
            run.decide(&call, decision)
                .map_err(|error| refused(&error))?;
        }
    }
    Ok(())
}

fn rejection(words: Option<&str>) -> Decision {
    match words {
        Some(words) => Decision::reject().message(words),
        None => Decision::reject(),
    }
}

fn refused(error: &DecisionError) -> Failure {
    Failure::Message {
        exit: Exit::Failed,
        message: error.to_string(),
        help: None,
    }
}
