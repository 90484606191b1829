//! Drawing a conversation for people: who speaks, who hands over to whom, what tools did.

pub(crate) mod spinner;
pub(crate) mod style;
mod words;
pub(crate) mod wrap;

use std::io::{self, Write};

use anstyle::Style;
use serde_json::Value;
use switchboard_core::GuardrailOutcome;
use unicode_width::UnicodeWidthStr as _;

use crate::audience::Audience;
use crate::event::{Carried, Cost, Event, Line};
use spinner::Spinner;
use style::{BAD, BOLD, DIM, Look, NOTICE, USER};
use wrap::{Flow, one_line, wrapped};

/// How much of a tool's arguments or output is shown, in characters.
const SHOWN: usize = 400;
/// The widest that the column of names gets.
const WIDEST_NAME: usize = 18;
/// Below this width, names stand on lines of their own.
const NARROW: usize = 48;

/// Draws events.
pub(crate) struct Screen {
    out: Box<dyn Write + Send>,
    /// Where errors go, if not where the rest goes.
    errors: Option<Box<dyn Write + Send>>,
    /// The sign that something is under way, and where it is drawn.
    spinner: Option<(Spinner, Box<dyn Write + Send>)>,
    look: Look,
    /// How the terminal looks now, where it can be resized.
    look_again: Option<fn(style::Language) -> Look>,
    user: UserWords,
    /// The agents of the team, for the width of their column and their colours.
    agents: Vec<String>,
    /// Who has the conversation.
    agent: String,
    speech: Option<Speech>,
    /// The last answer that was drawn.
    last_message: Option<String>,
    /// Whether something was drawn that the next run has to stand apart from.
    is_begun: bool,
}

/// Whether what the user says is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserWords {
    /// It is.
    Shown,
    /// It stands there already: the user typed it.
    Typed,
}

/// An answer that is being drawn.
struct Speech {
    agent: String,
    flow: Flow,
    text: String,
}

impl Screen {
    /// A screen that draws everything to `out`.
    pub(crate) fn new(out: impl Write + Send + 'static, look: Look) -> Self {
        Self {
            out: Box::new(out),
            errors: None,
            spinner: None,
            look,
            look_again: None,
            user: UserWords::Shown,
            agents: Vec::new(),
            agent: String::new(),
            speech: None,
            last_message: None,
            is_begun: false,
        }
    }

    /// The screen of a terminal or a pipe: errors go to standard error, and where somebody watches,
    /// something moves while they wait.
    pub(crate) fn of_stdout(look: Look) -> Self {
        let mut screen = Self::new(anstream::stdout(), look);
        screen.look_again = Some(Look::of_stdout);
        screen.errors = Some(Box::new(anstream::stderr()));
        if style::can_animate() {
            screen.spinner = Some((Spinner::default(), Box::new(io::stderr())));
        }
        screen
    }

    /// Whether what the user says is drawn.
    pub(crate) fn user_words(mut self, user: UserWords) -> Self {
        self.user = user;
        self
    }

    fn draw(&mut self, event: &Event) -> io::Result<()> {
        if let Event::TextDelta { agent, text } = event {
            return self.say(agent, text);
        }
        if let Event::Message { agent, text } = event {
            return self.end_message(agent, text);
        }
        self.end_speech()?;
        match event {
            Event::TextDelta { .. } | Event::Message { .. } | Event::Unknown => Ok(()),
            Event::RunStarted {
                agents,
                agent,
                message,
                ..
            } => self.begin(agents, agent, message),
            Event::AgentUpdated { agent, .. } => {
                self.agent.clone_from(agent);
                Ok(())
            }
            Event::ToolCalled {
                agent,
                tool,
                arguments,
                ..
            } => {
                let call = format!("{}({})", one_line(tool), listed(arguments));
                let call = self.short(&call);
                self.entry(agent, Style::new(), &call)
            }
            Event::ToolOutput { output, failed, .. } => self.tool_output(output, *failed),
            Event::Handoff {
                from,
                to,
                payload,
                carried,
                ..
            } => self.handoff(from, to, payload, carried.as_ref()),
            Event::HandoffRefused {
                from, to, reason, ..
            } => {
                let refused = self.look.language.refused(&one_line(to));
                self.entry(from, NOTICE, &format!("{refused} {reason}"))
            }
            Event::Guardrail {
                guardrail,
                agent,
                outcome,
                info,
            } => self.guardrail(guardrail, agent, *outcome, info),
            Event::Finished {
                agent,
                output,
                cost,
            } => self.finished(agent, output, cost),
            Event::Stopped { agent, cost, .. } => {
                let stopped = self.look.language.stopped();
                self.detail(NOTICE, stopped)?;
                self.cost(agent, cost)
            }
            Event::Error { message, help, .. } => self.error(message, help.as_deref()),
        }
    }

    fn begin(&mut self, agents: &[String], agent: &str, message: &str) -> io::Result<()> {
        self.agents = agents.to_vec();
        agent.clone_into(&mut self.agent);
        self.last_message = None;
        if self.user == UserWords::Typed {
            return Ok(());
        }
        if std::mem::replace(&mut self.is_begun, true) {
            writeln!(self.out)?;
        }
        let user = self.look.language.user();
        self.spoken_by(user, USER)?;
        self.rest_of_entry(Style::new(), message)
    }

    fn say(&mut self, agent: &str, text: &str) -> io::Result<()> {
        if self
            .speech
            .as_ref()
            .is_none_or(|speech| speech.agent != agent)
        {
            // An answer begins with what can be seen of it.
            let text = text.trim_start();
            if text.is_empty() {
                return Ok(());
            }
            self.end_speech()?;
            self.spoken_by(agent, self.style_of(agent))?;
            let indent = self.indent();
            self.speech = Some(Speech {
                agent: agent.to_owned(),
                flow: Flow::new(self.look.width, indent, indent),
                text: String::new(),
            });
            return self.say(agent, text);
        }
        if let Some(speech) = &mut self.speech {
            speech.text.push_str(text);
            let shown = speech.flow.push(text);
            self.out.write_all(shown.as_bytes())?;
        }
        Ok(())
    }

    fn end_message(&mut self, agent: &str, text: &str) -> io::Result<()> {
        self.last_message = Some(text.to_owned());
        let is_drawn = |speech: &Speech| speech.agent == agent && speech.text.trim() == text.trim();
        let is_drawn = self.speech.as_ref().is_some_and(is_drawn);
        self.end_speech()?;
        if is_drawn || text.trim().is_empty() {
            Ok(())
        } else {
            self.entry(agent, Style::new(), text.trim())
        }
    }

    fn end_speech(&mut self) -> io::Result<()> {
        match self.speech.take() {
            Some(mut speech) => writeln!(self.out, "{}", speech.flow.finish()),
            None => Ok(()),
        }
    }

    fn tool_output(&mut self, output: &Value, failed: bool) -> io::Result<()> {
        let text = self.short(&plain(output));
        if failed {
            let failed = self.look.language.failed();
            self.detail(NOTICE, &format!("{failed} {text}"))
        } else {
            self.detail(DIM, &format!("= {text}"))
        }
    }

    fn handoff(
        &mut self,
        from: &str,
        to: &str,
        payload: &Value,
        carried: Option<&Carried>,
    ) -> io::Result<()> {
        self.entry(from, BOLD, &format!("→ {}", one_line(to)))?;
        match payload {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let text = self.short(&plain(value));
                    self.detail(Style::new(), &format!("{key}: {text}"))?;
                }
            }
            Value::Null => {}
            other => {
                let text = self.short(&plain(other));
                self.detail(Style::new(), &text)?;
            }
        }
        match carried {
            Some(carried) => self.detail(DIM, &self.look.language.carried(carried)),
            None => Ok(()),
        }
    }

    fn guardrail(
        &mut self,
        guardrail: &str,
        agent: &str,
        outcome: GuardrailOutcome,
        info: &Value,
    ) -> io::Result<()> {
        let words = self.look.language;
        let text = match outcome {
            GuardrailOutcome::Tripped => words.tripped(guardrail),
            GuardrailOutcome::Replaced => words.replaced(guardrail),
            // What it refused is told by the handoff.
            _ => return Ok(()),
        };
        let text = match info {
            Value::Null => text,
            info => format!("{text}: {}", self.short(&plain(info))),
        };
        self.entry(agent, NOTICE, &text)
    }

    fn finished(&mut self, agent: &str, output: &Value, cost: &Cost) -> io::Result<()> {
        let text = plain(output);
        // A tool or a guardrail may have made the output, and nobody has said it yet.
        if self
            .last_message
            .as_ref()
            .is_none_or(|last| last.trim() != text.trim())
        {
            self.entry(agent, Style::new(), text.trim())?;
        }
        self.cost(agent, cost)
    }

    fn cost(&mut self, agent: &str, cost: &Cost) -> io::Result<()> {
        let agent = one_line(agent);
        let cost = self.look.language.cost(&agent, cost);
        self.detail(DIM, &cost)
    }

    fn error(&mut self, message: &str, help: Option<&str>) -> io::Result<()> {
        self.out.flush()?;
        let width = self.look.width;
        let mut text = self.look.paint(BAD, "error: ");
        text.push_str(&wrapped(message, width, 7, 7));
        text.push('\n');
        if let Some(help) = help {
            text.push_str(&self.look.paint(BOLD, "  help: "));
            text.push_str(&wrapped(help, width, 8, 8));
            text.push('\n');
        }
        let to = self.errors.as_mut().unwrap_or(&mut self.out);
        to.write_all(text.as_bytes())?;
        to.flush()
    }

    /// An entry of who acts, in the column of names, and what they do.
    fn entry(&mut self, who: &str, style: Style, text: &str) -> io::Result<()> {
        self.spoken_by(who, self.style_of(who))?;
        self.rest_of_entry(style, text)
    }

    fn rest_of_entry(&mut self, style: Style, text: &str) -> io::Result<()> {
        let indent = self.indent();
        let text = wrapped(text, self.look.width, indent, indent);
        writeln!(self.out, "{}", self.look.paint(style, &text))
    }

    /// A line under an entry.
    fn detail(&mut self, style: Style, text: &str) -> io::Result<()> {
        let indent = self.indent() + 2;
        let text = wrapped(text, self.look.width, indent, indent + 2);
        let text = self.look.paint(style, &text);
        writeln!(self.out, "{:indent$}{text}", "")
    }

    /// The name of who acts; what they do can follow.
    fn spoken_by(&mut self, who: &str, style: Style) -> io::Result<()> {
        let who = one_line(who);
        let indent = self.indent();
        let name = self.look.paint(style, &who);
        match indent.checked_sub(who.width() + 2) {
            Some(missing) => write!(self.out, "{name}{:1$}", "", missing + 2),
            // A name that is too long for its column has a line of its own.
            None => write!(self.out, "{name}\n{:indent$}", ""),
        }
    }

    /// Where text begins: behind the column of names, where there is room for one.
    fn indent(&self) -> usize {
        if self.look.width.is_some_and(|width| width < NARROW) {
            return 2;
        }
        let names = self.agents.iter().map(|name| one_line(name).width());
        let user = self.look.language.user().width();
        let widest = names.filter(|width| *width <= WIDEST_NAME).max();
        widest.unwrap_or(0).max(user) + 2
    }

    fn style_of(&self, agent: &str) -> Style {
        let place = self.agents.iter().position(|name| name == agent);
        style::of_agent(place.unwrap_or(0))
    }

    fn short(&self, text: &str) -> String {
        match text.char_indices().nth(SHOWN) {
            None => text.to_owned(),
            Some((end, _)) => {
                let more = text[end..].chars().count();
                let more = self.look.language.more(more);
                format!("{}{more}", &text[..end])
            }
        }
    }
}

impl Audience for Screen {
    fn told(&mut self, line: &Line) -> io::Result<()> {
        if let Some((spinner, err)) = &mut self.spinner {
            spinner.clear(err)?;
        }
        if let Some(look) = self.look_again {
            self.look = look(self.look.language);
            if let Some(speech) = &mut self.speech {
                speech.flow.resize(self.look.width);
            }
        }
        self.draw(&line.event)?;
        self.out.flush()
    }

    fn waiting(&mut self) -> io::Result<()> {
        // In the middle of a line it would overwrite what stands there.
        match &mut self.spinner {
            Some((spinner, err)) if self.speech.is_none() => {
                spinner.turn(err, &one_line(&self.agent))
            }
            _ => Ok(()),
        }
    }
}

/// A value for people: text as it is, all else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Arguments for people: `order_id: ORD-1, express: true`.
fn listed(arguments: &Value) -> String {
    match arguments {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{key}: {}", plain(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
        other => plain(other),
    }
}

#[cfg(test)]
mod tests;
