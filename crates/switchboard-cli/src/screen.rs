//! Draws a conversation in a terminal: messages, handoffs, tool calls.

mod inner_events;
mod labels;
mod markdown;
mod messages;
pub(crate) mod spinner;
pub(crate) mod style;
pub(crate) mod wrap;

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use anstyle::Style;
use serde_json::Value;
use switchboard_core::Item;
use switchboard_core::approval::{Interruption, InterruptionKind};
use switchboard_core::guardrail::{GuardrailOutcome, GuardrailResult};
use switchboard_core::items::ItemKind;
use switchboard_core::model::Usage;
use switchboard_core::stream::{EventKind, HandoffEvent, HandoffStatus, ItemEvent};
use unicode_width::UnicodeWidthStr as _;

use crate::event_line::EventLine;
use crate::event_sink::EventSink;
use crate::translate::translate;
use messages::StreamedMessage;
use spinner::Spinner;
use style::{BAD, BOLD, DIM, Look, NOTICE};
use wrap::{one_line, wrapped};

/// The name of the offline model in events.
const OFFLINE_MODEL: &str = "offline";
/// The number of characters that are drawn of a tool's arguments or output.
const MAX_VALUE: usize = 400;
/// The largest width of the column of names.
const MAX_NAME_WIDTH: usize = 18;
/// In terminals narrower than this, names have lines of their own.
const MIN_WIDTH_FOR_COLUMN: usize = 48;

/// Draws events.
pub(crate) struct Screen {
    out: Box<dyn Write + Send>,
    /// The destination of errors, unless it is `out`.
    errors: Option<Box<dyn Write + Send>>,
    /// The spinner and its terminal.
    spinner: Option<(Spinner, Box<dyn Write + Send>)>,
    look: Look,
    /// Measures the terminal again, if it can be resized.
    measure: Option<fn(style::Language) -> Look>,
    user_messages: UserMessages,
    /// The names of all agents, for the width of their column and their colours.
    agents: Vec<Arc<str>>,
    /// The agent that has the conversation.
    agent: Arc<str>,
    /// The agent of the last handoff that is drawn.
    handed_to: Option<Arc<str>>,
    /// Set if its model is the offline one: its answers are then marked, so that nobody takes them for
    /// those of a language model.
    is_offline: bool,
    /// The time of the last `run_started`.
    run_started_at: f64,
    /// The message that is being drawn.
    message: Option<StreamedMessage>,
    /// The messages of the run that are drawn.
    drawn_messages: Vec<String>,
    /// The tools of calls, by the calls' identifiers.
    calls: HashMap<Arc<str>, String>,
    /// The call whose entry is the last one.
    last_call: Option<Arc<str>>,
    /// Set if the next run must be separated from something above it.
    has_content: bool,
}

/// The treatment of the user's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserMessages {
    /// They are drawn.
    Drawn,
    /// They are on the screen already: the user typed them.
    Typed,
}

impl Screen {
    /// Creates a screen that draws to `out`.
    pub(crate) fn new(out: impl Write + Send + 'static, look: Look) -> Self {
        Self {
            out: Box::new(out),
            errors: None,
            spinner: None,
            look,
            measure: None,
            user_messages: UserMessages::Drawn,
            agents: Vec::new(),
            agent: Arc::default(),
            handed_to: None,
            is_offline: false,
            run_started_at: 0.0,
            message: None,
            drawn_messages: Vec::new(),
            calls: HashMap::new(),
            last_call: None,
            has_content: false,
        }
    }

    /// Creates a screen on standard output, with errors on standard error, and a spinner if both are
    /// terminals.
    pub(crate) fn of_stdout<'a>(look: Look, agents: impl Iterator<Item = &'a str>) -> Self {
        let mut screen = Self::new(anstream::stdout(), look);
        screen.agents = agents.map(Arc::from).collect();
        screen.measure = Some(Look::of_stdout);
        screen.errors = Some(Box::new(anstream::stderr()));
        if spinner::can_animate() {
            screen.spinner = Some((Spinner::default(), Box::new(io::stderr())));
        }
        screen
    }

    /// Sets the treatment of the user's messages.
    pub(crate) fn user_messages(mut self, user_messages: UserMessages) -> Self {
        self.user_messages = user_messages;
        self
    }

    fn draw(&mut self, line: &EventLine) -> io::Result<()> {
        let agent = &line.event.agent;
        match &line.event.kind {
            EventKind::RunStarted { agents, input, .. } => {
                self.run_started_at = line.at;
                self.begin_run(agents, agent);
                self.user_message(input.as_deref())
            }
            // Guardrails have held it back until now.
            EventKind::InputPassed { input, .. } => self.user_message(input.as_deref()),
            EventKind::CompactionFailed { reason, .. } => {
                let text = self.look.language.not_summarised(reason);
                self.detail(NOTICE, &text)
            }
            EventKind::AgentUpdated { model, .. } => {
                self.is_offline = **model == *OFFLINE_MODEL;
                let before = std::mem::replace(&mut self.agent, agent.clone());
                let is_drawn = self.handed_to.take().as_ref() == Some(agent);
                if is_drawn || before.is_empty() || before == *agent {
                    return Ok(());
                }
                // A budget that is used up makes no handoff, and leads to another agent all the same.
                self.entry(&before, BOLD, &format!("→ {}", one_line(agent)))
            }
            EventKind::TextDelta { item, text, .. } => self.text_delta(agent, item, text),
            EventKind::Item {
                name: ItemEvent::MessageOutputCreated,
                text: Some(text),
                ..
            } => self.message(agent, text),
            EventKind::Item {
                name: ItemEvent::ToolCalled,
                item,
                ..
            } => {
                self.note_item(item.item());
                self.provider_call(agent, item.item())
            }
            EventKind::ToolStarted {
                call_id,
                tool,
                arguments,
                ..
            } => self.call(agent, call_id, tool, arguments),
            EventKind::ToolEnded {
                call_id,
                tool,
                arguments,
                output,
                failed,
                ..
            } => {
                // Tools run at the same time, and one that does not exist never starts.
                if self.last_call.as_ref() != Some(call_id) {
                    self.call(agent, call_id, tool, arguments)?;
                }
                self.tool_output(output, *failed)
            }
            EventKind::Handoff(handoff) => self.handoff(handoff),
            EventKind::Inner { call_id, event, .. } => self.inner_event(call_id, event),
            EventKind::Guardrail { result, .. } => self.guardrail(result),
            EventKind::RunFinished {
                output,
                turns,
                usage,
                ..
            } => {
                let text = plain(output);
                // The output of a tool or a guardrail is not a message.
                if !self.is_drawn(text.trim()) {
                    self.entry(agent, Style::new(), text.trim())?;
                }
                self.cost(agent, *turns, usage, line.at)
            }
            EventKind::RunInterrupted { interruptions, .. } => {
                for (position, call) in interruptions.iter().enumerate() {
                    self.waiting(call, position + 1, interruptions.len())?;
                }
                Ok(())
            }
            EventKind::RunStopped { turns, usage, .. } => {
                self.detail(NOTICE, self.look.language.stopped())?;
                self.cost(agent, *turns, usage, line.at)
            }
            EventKind::RunFailed { message, .. } => self.error(message),
            _ => Ok(()),
        }
    }

    fn begin_run(&mut self, agents: &[Arc<str>], agent: &Arc<str>) {
        // A run names the agents that it can reach, which may be fewer than those of an earlier run.
        for name in agents {
            if !self.agents.contains(name) {
                self.agents.push(name.clone());
            }
        }
        self.agent = agent.clone();
        self.drawn_messages.clear();
    }

    /// Notes the name of a call's tool.
    fn note_item(&mut self, call: &Item) {
        if let (Some(call_id), Some(tool)) = (call.call_id(), call.name()) {
            self.note_call(&call_id, &tool);
        }
    }

    /// Draws the call of a tool that the provider runs. Function tools have events of their own.
    fn provider_call(&mut self, agent: &str, call: &Item) -> io::Result<()> {
        if call.kind() == ItemKind::FunctionCall {
            return Ok(());
        }
        let tool = call.name().or_else(|| call.type_name()).unwrap_or_default();
        let arguments = call.arguments().unwrap_or_default();
        let arguments =
            serde_json::from_str(&arguments).unwrap_or_else(|_| Value::from(&*arguments));
        let id = call.call_id().unwrap_or_default().into();
        self.call(agent, &id, &tool, &arguments)
    }

    fn call(
        &mut self,
        agent: &str,
        call_id: &Arc<str>,
        tool: &str,
        arguments: &Value,
    ) -> io::Result<()> {
        let call = format!("{}({})", one_line(tool), arguments_text(arguments));
        self.entry(agent, Style::new(), &self.shortened(&call))?;
        self.last_call = Some(call_id.clone());
        Ok(())
    }

    fn tool_output(&mut self, output: &Value, failed: bool) -> io::Result<()> {
        self.last_call = None;
        let text = self.shortened(&plain(output));
        if failed {
            let failed = self.look.language.failed();
            self.detail(NOTICE, &format!("{failed} {text}"))
        } else {
            self.detail(DIM, &format!("= {text}"))
        }
    }

    fn handoff(&mut self, handoff: &HandoffEvent) -> io::Result<()> {
        let (from, to) = (&handoff.from, one_line(&handoff.to));
        match handoff.status {
            HandoffStatus::Taken | HandoffStatus::FannedOut => {
                self.handed_to = Some(handoff.to.clone());
                self.entry(from, BOLD, &format!("→ {to}"))?;
            }
            HandoffStatus::Failed => {
                let failed = self.look.language.failed();
                let reason = handoff.reason.as_deref().unwrap_or_default();
                return self.entry(from, NOTICE, &format!("→ {to} {failed} {reason}"));
            }
            HandoffStatus::Refused => {
                let refused = self.look.language.refused(&to);
                let reason = handoff.reason.as_deref().unwrap_or_default();
                return self.entry(from, NOTICE, &format!("{refused} {reason}"));
            }
            _ => return self.entry(from, NOTICE, &self.look.language.ignored(&to)),
        }
        match &handoff.payload {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let text = self.shortened(&plain(value));
                    self.detail(Style::new(), &format!("{key}: {text}"))?;
                }
            }
            Value::Null => {}
            other => self.detail(Style::new(), &self.shortened(&plain(other)))?,
        }
        match (handoff.carried_items, handoff.of_items) {
            (Some(items), Some(of)) => self.detail(DIM, &self.look.language.carried(items, of)),
            _ => Ok(()),
        }
    }

    /// Draws a call that waits for a decision.
    fn waiting(&mut self, call: &Interruption, number: usize, of: usize) -> io::Result<()> {
        let language = self.look.language;
        let arguments = one_line(call.arguments.trim());
        let text = format!("{} {arguments}", waiting_name(call));
        let text = match text.char_indices().nth(MAX_VALUE) {
            None => text,
            Some((end, _)) => {
                let more = language.more_to_decide(text[end..].chars().count());
                format!("{}{more}", &text[..end])
            }
        };
        if let InterruptionKind::Person {
            from,
            may_hand_to,
            problem,
            ..
        } = &call.kind
        {
            let label = language.is_asked(from.as_deref().map(one_line).as_deref());
            self.entry(&call.agent, NOTICE, &format!("{label} {}", text.trim()))?;
            if let Some(problem) = problem {
                let text = self.shortened(problem);
                self.detail(Style::new(), &format!("{} {text}", language.failed()))?;
            }
            if !may_hand_to.is_empty() {
                let names = one_line(&may_hand_to.join(", ")).into_owned();
                self.detail(DIM, &language.may_hand_to(&names))?;
            }
        } else {
            let label = language.waits(number, of);
            self.entry(&call.agent, NOTICE, &format!("{label} {}", text.trim_end()))?;
        }
        if call.inside.is_empty() {
            return Ok(());
        }
        let calls: Vec<&str> = call
            .inside
            .iter()
            .map(|id| self.calls.get(id).map_or(&**id, String::as_str))
            .collect();
        let inside = language.inside(&one_line(&calls.join(" → ")));
        self.detail(DIM, &inside)
    }

    fn guardrail(&mut self, result: &GuardrailResult) -> io::Result<()> {
        let language = self.look.language;
        let text = match result.outcome {
            GuardrailOutcome::Tripped => language.tripped(&result.guardrail),
            GuardrailOutcome::Replaced => language.replaced(&result.guardrail),
            // A refused handoff has an event of its own.
            _ => return Ok(()),
        };
        let text = match plain(&result.info).as_str() {
            "" | "null" => text,
            info => format!("{text}: {}", self.shortened(info)),
        };
        self.entry(&result.agent, NOTICE, &text)
    }

    fn cost(&mut self, agent: &str, turns: u32, usage: &Usage, at: f64) -> io::Result<()> {
        let seconds = at - self.run_started_at;
        let language = self.look.language;
        let cost = language.cost(&one_line(agent), turns, usage, seconds);
        self.detail(DIM, &cost)
    }

    fn error(&mut self, message: &str) -> io::Result<()> {
        self.begin_line()?;
        self.out.flush()?;
        let label = self.look.paint(BAD, self.look.language.error());
        let message = translate(message, self.look.language);
        let message = wrapped(&message, self.look.width, 7, 7);
        self.write_error(&format!("{label} {message}\n"))
    }

    fn write_error(&mut self, text: &str) -> io::Result<()> {
        let errors = self.errors.as_mut().unwrap_or(&mut self.out);
        errors.write_all(text.as_bytes())?;
        errors.flush()
    }

    /// Draws the name of an agent and what it does.
    fn entry(&mut self, agent: &str, style: Style, text: &str) -> io::Result<()> {
        self.name(agent, self.style_of(agent))?;
        self.rest_of_entry(style, text)
    }

    fn rest_of_entry(&mut self, style: Style, text: &str) -> io::Result<()> {
        let indent = self.indent();
        let text = wrapped(text, self.look.width, indent, indent);
        writeln!(self.out, "{}", self.look.paint(style, &text))
    }

    /// Draws a line under an entry.
    fn detail(&mut self, style: Style, text: &str) -> io::Result<()> {
        self.begin_line()?;
        let indent = self.indent() + 2;
        let text = wrapped(text, self.look.width, indent, indent + 2);
        let text = self.look.paint(style, &text);
        writeln!(self.out, "{:indent$}{text}", "")
    }

    /// Begins an entry with a name.
    fn name(&mut self, name: &str, style: Style) -> io::Result<()> {
        self.begin_line()?;
        self.last_call = None;
        let name = one_line(name);
        let indent = self.indent();
        let painted = self.look.paint(style, &name);
        match indent.checked_sub(name.width() + 2) {
            Some(missing) => write!(self.out, "{painted}{:1$}", "", missing + 2),
            // A name that is too long for the column has a line of its own.
            None => write!(self.out, "{painted}\n{:indent$}", ""),
        }
    }

    /// Removes the spinner, and ends the message that is being drawn.
    fn begin_line(&mut self) -> io::Result<()> {
        if let Some((spinner, terminal)) = &mut self.spinner {
            spinner.clear(terminal)?;
        }
        self.end_message()
    }

    /// The column at which text begins.
    fn indent(&self) -> usize {
        if self
            .look
            .width
            .is_some_and(|width| width < MIN_WIDTH_FOR_COLUMN)
        {
            return 2;
        }
        let widest = self
            .agents
            .iter()
            .map(|name| one_line(name).width())
            .filter(|width| *width <= MAX_NAME_WIDTH)
            .max();
        widest.unwrap_or(0).max(self.look.language.user().width()) + 2
    }

    fn style_of(&self, agent: &str) -> Style {
        let position = self.agents.iter().position(|name| **name == *agent);
        style::of_agent(position.unwrap_or(0))
    }

    fn shortened(&self, text: &str) -> String {
        match text.char_indices().nth(MAX_VALUE) {
            None => text.to_owned(),
            Some((end, _)) => {
                let more = self.look.language.more(text[end..].chars().count());
                format!("{}{more}", &text[..end])
            }
        }
    }
}

impl EventSink for Screen {
    fn write(&mut self, line: &EventLine) -> io::Result<()> {
        if let Some(measure) = self.measure {
            self.look = measure(self.look.language);
            if let Some(message) = &mut self.message {
                message.wrapper.resize(self.look.width);
            }
        }
        self.draw(line)?;
        self.out.flush()
    }

    fn note_call(&mut self, call_id: &str, tool: &str) {
        self.calls.insert(call_id.into(), tool.to_owned());
    }

    fn write_failure(&mut self, message: &str) -> io::Result<()> {
        self.end_message()?;
        self.error(message)
    }

    fn write_help(&mut self, help: &str) -> io::Result<()> {
        let label = format!("  {}", self.look.language.help());
        let label = self.look.paint(BOLD, &label);
        let help = translate(help, self.look.language);
        let help = wrapped(&help, self.look.width, 8, 8);
        self.write_error(&format!("{label} {help}\n"))
    }

    fn tick(&mut self) -> io::Result<()> {
        match &mut self.spinner {
            // Within a line it would overwrite the text.
            Some((spinner, terminal)) if self.message.is_none() => {
                spinner.draw(terminal, &one_line(&self.agent))
            }
            _ => Ok(()),
        }
    }
}

/// The name of a call that waits: of a tool, or of the agent that would get the conversation.
pub(crate) fn waiting_name(call: &Interruption) -> String {
    let name = one_line(&call.tool);
    match &call.kind {
        InterruptionKind::Handoff { to } => format!("→ {}", one_line(to)),
        InterruptionKind::HostedTool { server } => format!("{name} ({})", one_line(server)),
        InterruptionKind::Person { .. } => String::new(),
        _ => name.into_owned(),
    }
}

/// Formats a value for people: a string as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Formats arguments for people: `order_id: ORD-1, express: true`.
fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| format!("{key}: {}", plain(value)))
            .collect::<Vec<_>>()
            .join(", "),
        other => plain(other),
    }
}

#[cfg(test)]
mod tests;
