//! Watching a run: what its stream, its hooks and its spans tell, as events.
//!
//! The stream tells what was said and called, the hooks what the next agent's model is shown, and the
//! spans which tools failed and which guardrails objected.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use switchboard_core::{
    Agent, GuardrailOutcome, HandoffCall, HandoffSpec, HookResult, Item, ItemKind, Items,
    ModelEvent, ModelRequest, ModelResponse, RunContext, RunHooks, RunItem, RunItemEvent,
    RunItemKind, Span, SpanData, StreamEvent, Tracer,
};
use switchboard_teamfile::Context;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::event::{Carried, Event};
use crate::trace_file::TraceFile;

/// Something that hooks and spans saw, on its way to who tells events.
#[derive(Debug)]
pub(crate) enum Seen {
    /// The model of an agent is asked.
    Asked {
        input: Items,
        handoffs: Arc<[HandoffSpec]>,
    },
    /// It answered with so many items.
    Answered(usize),
    /// The conversation was handed over.
    HandedOver {
        from: String,
        to: String,
        tool: String,
        payload: Value,
    },
    /// A tool ran.
    Ran(ToolRun),
    /// A guardrail objected, and the run goes on.
    Guarded {
        guardrail: String,
        outcome: GuardrailOutcome,
    },
}

/// How a tool fared. Spans do not know the call, so it is found by what was called.
#[derive(Debug)]
pub(crate) struct ToolRun {
    tool: Arc<str>,
    /// Absent where spans must not hold what was said.
    arguments: Option<Arc<str>>,
    failed: bool,
}

/// The eyes of a run: its hooks and its tracer.
pub(crate) struct Eyes {
    seen: UnboundedSender<Seen>,
    /// The run that is watched; runs inside its tools are others.
    trace: Mutex<Option<u64>>,
    file: Option<Arc<TraceFile>>,
}

impl Eyes {
    /// Eyes, and where what they see comes out. Spans go to the file as well.
    pub(crate) fn new(file: Option<Arc<TraceFile>>) -> (Arc<Self>, UnboundedReceiver<Seen>) {
        let (seen, comes_out) = unbounded_channel();
        let trace = Mutex::default();
        let eyes = Self { seen, trace, file };
        (Arc::new(eyes), comes_out)
    }

    fn tell(&self, seen: Seen) {
        // Who no longer listens has ended the run.
        let _ = self.seen.send(seen);
    }

    fn is_watched(&self, span: &Span) -> bool {
        // Nothing panics while the lock is held.
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        *trace.get_or_insert(span.trace) == span.trace
    }
}

/// [`Eyes`] as hooks.
pub(crate) struct Hooks(pub(crate) Arc<Eyes>);

impl RunHooks<Context> for Hooks {
    async fn on_llm_start(
        &self,
        _ctx: &RunContext<Context>,
        _agent: &Agent<Context>,
        request: &ModelRequest,
    ) -> HookResult {
        self.0.tell(Seen::Asked {
            input: request.input.clone(),
            handoffs: request.handoffs.clone(),
        });
        Ok(())
    }

    async fn on_llm_end(
        &self,
        _ctx: &RunContext<Context>,
        _agent: &Agent<Context>,
        response: &ModelResponse,
    ) -> HookResult {
        self.0.tell(Seen::Answered(response.output.len()));
        Ok(())
    }

    async fn on_handoff(
        &self,
        _ctx: &RunContext<Context>,
        from: &Agent<Context>,
        to: &Agent<Context>,
        call: &HandoffCall,
    ) -> HookResult {
        self.0.tell(Seen::HandedOver {
            from: from.name().to_owned(),
            to: to.name().to_owned(),
            tool: call.tool.to_string(),
            payload: arguments_of(&call.call),
        });
        Ok(())
    }
}

impl Tracer for Eyes {
    fn start(&self, span: &Span) {
        self.is_watched(span);
    }

    fn end(&self, span: Span) {
        if let Some(file) = &self.file {
            file.write(&span);
        }
        if !self.is_watched(&span) {
            return;
        }
        match &span.data {
            SpanData::Function {
                name,
                input,
                output,
                failed,
            } => self.tell(Seen::Ran(ToolRun {
                tool: name.clone(),
                arguments: input.clone(),
                // One without an output was stopped by something else than itself.
                failed: *failed || span.error.is_some() && output.is_none(),
            })),
            SpanData::Guardrail { name, outcome, .. } => match outcome {
                // What trips is told with the error, which knows more.
                GuardrailOutcome::Allowed | GuardrailOutcome::Tripped => {}
                outcome => self.tell(Seen::Guarded {
                    guardrail: name.to_string(),
                    outcome: *outcome,
                }),
            },
            _ => {}
        }
    }
}

/// Makes events of what was seen and of what the stream tells, in the order in which they happened.
pub(crate) struct Teller {
    /// The names of the agents' models.
    models: BTreeMap<String, String>,
    agent: String,
    /// How many items the model was shown, and how many have come since.
    conversation: usize,
    handoffs: Arc<[HandoffSpec]>,
    calls: HashMap<String, Call>,
    runs: Vec<ToolRun>,
    /// A handoff of which is not known yet what it carries.
    handed_over: Option<(String, String, String, Value)>,
    /// What was said of an answer that is not complete.
    said: String,
}

struct Call {
    tool: String,
    /// As the model wrote them.
    arguments: String,
    is_handoff: bool,
}

impl Teller {
    /// A teller of a run that begins with this agent.
    pub(crate) fn new(agent: &str, models: BTreeMap<String, String>) -> Self {
        Self {
            models,
            agent: agent.to_owned(),
            conversation: 0,
            handoffs: Arc::default(),
            calls: HashMap::new(),
            runs: Vec::new(),
            handed_over: None,
            said: String::new(),
        }
    }

    /// What was said of an answer that is not complete.
    pub(crate) fn said(&self) -> &str {
        &self.said
    }

    /// The events of something seen.
    pub(crate) fn seen(&mut self, seen: Seen) -> Vec<Event> {
        match seen {
            Seen::Asked { input, handoffs } => {
                let carried = Carried {
                    items: input.len(),
                    of: self.conversation,
                    kinds: kinds(&input),
                };
                self.conversation = input.len();
                self.handoffs = handoffs;
                self.handoff(Some(carried))
            }
            Seen::Answered(items) => {
                self.conversation += items;
                Vec::new()
            }
            Seen::HandedOver {
                from,
                to,
                tool,
                payload,
            } => {
                self.handed_over = Some((from, to, tool, payload));
                Vec::new()
            }
            Seen::Ran(run) => {
                self.runs.push(run);
                Vec::new()
            }
            Seen::Guarded { guardrail, outcome } => vec![Event::Guardrail {
                guardrail,
                agent: self.agent.clone(),
                outcome,
                info: Value::Null,
            }],
        }
    }

    /// The events of what the stream told.
    pub(crate) fn streamed(&mut self, event: StreamEvent<Context>) -> Vec<Event> {
        match event {
            StreamEvent::Model(ModelEvent::TextDelta { text, .. }) => {
                self.said.push_str(&text);
                let agent = self.agent.clone();
                vec![Event::TextDelta { agent, text }]
            }
            StreamEvent::Item(event, item) => self.item(event, &item).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// What is left to tell when a run has ended.
    pub(crate) fn ended(&mut self) -> Vec<Event> {
        self.handoff(None)
    }

    /// The handoff that took place, with what it carried.
    fn handoff(&mut self, carried: Option<Carried>) -> Vec<Event> {
        let Some((from, to, tool, payload)) = self.handed_over.take() else {
            return Vec::new();
        };
        self.agent.clone_from(&to);
        let updated = Event::AgentUpdated {
            agent: to.clone(),
            model: self.models.get(&to).cloned().unwrap_or_default(),
        };
        let handoff = Event::Handoff {
            from,
            to,
            tool,
            payload,
            carried,
        };
        vec![handoff, updated]
    }

    fn item(&mut self, event: RunItemEvent, item: &RunItem) -> Option<Event> {
        let agent = item.agent().to_owned();
        let raw = item.item();
        match event {
            RunItemEvent::MessageOutputCreated => {
                self.said.clear();
                let text = raw.text().or_else(|| raw.refusal())?.into_owned();
                Some(Event::Message { agent, text })
            }
            RunItemEvent::HandoffRequested => {
                self.called(raw, true);
                None
            }
            RunItemEvent::HandoffOccurred => {
                self.conversation += 1;
                None
            }
            RunItemEvent::ToolCalled => {
                let tool = self.called(raw, false);
                Some(Event::ToolCalled {
                    agent,
                    call_id: raw.call_id().unwrap_or_default().into_owned(),
                    tool,
                    arguments: arguments_of(raw),
                })
            }
            RunItemEvent::ToolOutput => {
                self.conversation += 1;
                Some(self.output(agent, item))
            }
            _ => None,
        }
    }

    /// Notes a call, so that its output can be told with it.
    fn called(&mut self, call: &Item, is_handoff: bool) -> String {
        let tool = match call.kind() {
            ItemKind::FunctionCall => call.name(),
            // A tool that the provider runs has a type instead.
            _ => call.name().or_else(|| call.type_name()),
        };
        let tool = tool.unwrap_or_default().into_owned();
        let noted = Call {
            tool: tool.clone(),
            arguments: call.arguments().unwrap_or_default().into_owned(),
            is_handoff,
        };
        let id = call.call_id().unwrap_or_default().into_owned();
        self.calls.insert(id, noted);
        tool
    }

    fn output(&mut self, agent: String, item: &RunItem) -> Event {
        let call_id = item.item().call_id().unwrap_or_default().into_owned();
        let output = match item.kind() {
            RunItemKind::ToolCallOutput { output } => output.clone(),
            _ => json!(item.item().output()),
        };
        let call = self.calls.remove(&call_id);
        let (tool, arguments) = match call {
            Some(call) if call.is_handoff => return self.refused(agent, call, &output),
            Some(call) => (call.tool, call.arguments),
            None => (String::new(), String::new()),
        };
        let failed = self.has_failed(&tool, &arguments);
        Event::ToolOutput {
            agent,
            call_id,
            tool,
            output,
            failed,
        }
    }

    /// A call of a handoff that was answered like a tool's was not taken.
    fn refused(&self, from: String, call: Call, output: &Value) -> Event {
        let spec = self
            .handoffs
            .iter()
            .find(|spec| *spec.tool_name == *call.tool);
        Event::HandoffRefused {
            from,
            to: spec.map_or_else(|| call.tool.clone(), |spec| spec.agent_name.to_string()),
            payload: as_json(&call.arguments),
            tool: call.tool,
            reason: match output {
                Value::String(reason) => reason.clone(),
                other => other.to_string(),
            },
        }
    }

    /// Whether a tool failed. One that never ran did: there was none of that name.
    fn has_failed(&mut self, tool: &str, arguments: &str) -> bool {
        let is_it = |run: &ToolRun| {
            *run.tool == *tool
                && run
                    .arguments
                    .as_deref()
                    .is_none_or(|given| given == arguments)
        };
        match self.runs.iter().position(is_it) {
            Some(at) => self.runs.remove(at).failed,
            None => true,
        }
    }
}

fn arguments_of(call: &Item) -> Value {
    as_json(&call.arguments().unwrap_or_default())
}

/// What a model sent: an empty object where it sent nothing, and its text where that is not JSON.
fn as_json(arguments: &str) -> Value {
    match arguments.trim() {
        "" => json!({}),
        text => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
    }
}

/// How many items there are of each kind; messages by who spoke.
fn kinds(items: &Items) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for item in items {
        let kind = match item.role() {
            Some(role) => format!("{role}_message"),
            None => item.type_name().unwrap_or_default().into_owned(),
        };
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

#[cfg(test)]
mod tests;
