//! The objects that the API answers with. Their schemas are part of its OpenAPI document.

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use switchboard_core::approval::Interruption;
use switchboard_core::conversation::{Entry, Head, to_millis};
use switchboard_core::stream::EventKind;
use switchboard_core::team::{Finding, Severity};

use crate::realtime::Mode;
use crate::runs::RunRecord;
use crate::service::{Listed, Shown, status_name};
use crate::team::{AgentInfo, ServedTeam};

/// A conversation in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ConversationSummary {
    id: String,
    /// The agent that gets the next message.
    agent: Option<String>,
    entries: u64,
    /// Milliseconds since 1970.
    created: i64,
    /// Milliseconds since 1970.
    changed: i64,
}

impl ConversationSummary {
    fn new(id: &str, head: &Head) -> Self {
        Self {
            id: id.to_owned(),
            agent: head.agent.as_deref().map(ToOwned::to_owned),
            entries: head.entries(),
            created: to_millis(head.created),
            changed: to_millis(head.changed),
        }
    }
}

/// A page of conversations, the last changed first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ConversationList {
    conversations: Vec<ConversationSummary>,
    /// The cursor of the next page; null on the last.
    next: Option<String>,
}

impl From<Listed> for ConversationList {
    fn from(listed: Listed) -> Self {
        let conversations = listed.conversations.iter();
        Self {
            conversations: conversations
                .map(|(id, head)| ConversationSummary::new(id, head))
                .collect(),
            next: listed.next,
        }
    }
}

/// An entry of a conversation's record.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EntryBody {
    position: u64,
    /// `item`, or `refused` for what a guardrail has refused.
    kind: String,
    /// The item in the form of OpenAI's Responses, or the refusal.
    content: Value,
    /// The run that made it; empty for what was added otherwise.
    run: String,
    turn: u32,
    /// The agent that made it; null for input.
    agent: Option<String>,
    /// Milliseconds since 1970.
    time: i64,
}

impl From<&Entry> for EntryBody {
    fn from(entry: &Entry) -> Self {
        let content = serde_json::from_str(entry.content.as_json());
        Self {
            position: entry.position,
            kind: entry.content.kind().to_owned(),
            content: content.unwrap_or_default(),
            run: entry.run.to_string(),
            turn: entry.turn,
            agent: entry.agent.as_deref().map(ToOwned::to_owned),
            time: to_millis(entry.time),
        }
    }
}

/// A conversation with its latest entries, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ConversationBody {
    #[serde(flatten)]
    summary: ConversationSummary,
    team: Option<String>,
    items: Vec<EntryBody>,
    /// Calls that wait for a decision, and people that are asked for an answer.
    waiting: Vec<Waiting>,
}

impl ConversationBody {
    pub(super) fn new(id: &str, shown: &Shown) -> Self {
        Self {
            summary: ConversationSummary::new(id, &shown.head),
            team: shown.team.clone(),
            items: shown.entries.iter().map(EntryBody::from).collect(),
            waiting: shown.waiting.iter().map(Waiting::from).collect(),
        }
    }
}

/// A call that waits for a decision, or a person that is asked for an answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Waiting {
    /// `tool`, `agent_tool`, `handoff`, `hosted_tool` or `person`.
    kind: String,
    /// The fields of the kind, such as the agent that a handoff leads to.
    details: Value,
    /// The agent whose model made the call, or the person.
    agent: String,
    tool: String,
    call_id: String,
    /// The arguments as the model wrote them.
    arguments: String,
}

impl Waiting {
    /// A call of a realtime session.
    pub(crate) fn of_call(agent: &str, tool: &str, call_id: &str, arguments: &str) -> Self {
        Self {
            kind: "tool".to_owned(),
            details: Value::Null,
            agent: agent.to_owned(),
            tool: tool.to_owned(),
            call_id: call_id.to_owned(),
            arguments: arguments.to_owned(),
        }
    }
}

impl From<&Interruption> for Waiting {
    fn from(waiting: &Interruption) -> Self {
        let kind = serde_json::to_value(&waiting.kind).unwrap_or_default();
        let (name, details) = match &kind {
            Value::Object(fields) => match fields.iter().next() {
                Some((name, details)) => (name.clone(), details.clone()),
                None => (String::new(), Value::Null),
            },
            other => (other.as_str().unwrap_or_default().to_owned(), Value::Null),
        };
        Self {
            kind: name,
            details,
            agent: waiting.agent.to_string(),
            tool: waiting.tool.to_string(),
            call_id: waiting.call_id.to_string(),
            arguments: waiting.arguments.to_string(),
        }
    }
}

/// Entries that a search has found, the latest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SearchResults {
    pub(super) found: Vec<FoundEntry>,
}

/// An entry that a search has found.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FoundEntry {
    pub(super) conversation: String,
    pub(super) entry: EntryBody,
}

/// A run, under way or ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunInfo {
    pub(crate) id: String,
    team: String,
    conversation: Option<String>,
    /// `running`, `completed`, `waiting`, `stopped`, `cancelled` or `failed`.
    pub(crate) status: String,
    /// The agent of the last event.
    agent: Option<String>,
    /// Milliseconds since 1970.
    started: i64,
    /// Milliseconds since 1970; null while it is under way.
    ended: Option<i64>,
    /// The final output of a run that has completed; text, or JSON where the agent answers with a type.
    output: Option<Value>,
    /// What a run waits for.
    waiting: Vec<Waiting>,
    error: Option<RunError>,
    /// Tokens of all models, once it has ended.
    usage: Option<UsageBody>,
    /// The number of its last event.
    last_event: u64,
}

/// The error of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct RunError {
    kind: String,
    message: String,
}

/// Requests and tokens.
#[derive(Debug, Serialize, JsonSchema)]
struct UsageBody {
    requests: u64,
    input_tokens: u64,
    cached_tokens: u64,
    output_tokens: u64,
    reasoning_tokens: u64,
}

/// Describes a run.
pub(crate) fn run_info(run: &RunRecord) -> RunInfo {
    let last = run.log.last();
    let event = last.as_ref().map(|last| &last.event);
    let mut info = RunInfo {
        id: run.id.to_string(),
        team: run.team.to_string(),
        conversation: run.conversation.as_deref().map(ToOwned::to_owned),
        status: "running".to_owned(),
        agent: event.map(|event| event.agent.to_string()),
        started: millis(run.started),
        ended: run.end(|end| millis(end.time)),
        output: None,
        waiting: Vec::new(),
        error: None,
        usage: run.end(|end| UsageBody {
            requests: end.usage.requests,
            input_tokens: end.usage.input_tokens,
            cached_tokens: end.usage.cached_tokens,
            output_tokens: end.usage.output_tokens,
            reasoning_tokens: end.usage.reasoning_tokens,
        }),
        last_event: last.as_ref().map_or(0, |last| last.id),
    };
    if let Some(status) = run.end(|end| status_name(end.status, run.is_cancelled())) {
        status.clone_into(&mut info.status);
    }
    match event.map(|event| &event.kind) {
        Some(EventKind::RunFinished { output, .. }) => info.output = Some(output.clone()),
        Some(EventKind::RunInterrupted { interruptions, .. }) => {
            info.waiting = interruptions.iter().map(Waiting::from).collect();
        }
        Some(EventKind::RunFailed { error, message, .. }) => {
            let kind = serde_json::to_value(error).unwrap_or_default();
            info.error = Some(RunError {
                kind: kind.as_str().unwrap_or_default().to_owned(),
                message: message.clone(),
            });
        }
        _ => {}
    }
    info
}

fn millis(time: SystemTime) -> i64 {
    to_millis(time)
}

/// The runs under way, and those that ended a short time ago; the latest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunList {
    pub(super) runs: Vec<RunInfo>,
}

/// The teams.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TeamList {
    pub(super) teams: Vec<TeamBody>,
}

/// A team.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TeamBody {
    name: String,
    description: Option<String>,
    agents: Vec<AgentBody>,
    /// `realtime` or `voice` if one can speak with the team; see `/api/teams/{team}/realtime/tickets`.
    speech: Option<String>,
}

/// An agent of a team.
#[derive(Debug, Serialize, JsonSchema)]
struct AgentBody {
    name: String,
    description: Option<String>,
    tools: Vec<String>,
    /// The agents that its handoffs lead to.
    handoffs: Vec<String>,
    /// Conversations begin with it.
    is_start: bool,
}

impl From<&ServedTeam> for TeamBody {
    fn from(team: &ServedTeam) -> Self {
        let agent = |agent: AgentInfo| AgentBody {
            name: agent.name,
            description: agent.description,
            tools: agent.tools,
            handoffs: agent.handoffs,
            is_start: agent.is_start,
        };
        Self {
            name: team.name().to_owned(),
            description: team.description_text().map(ToOwned::to_owned),
            agents: team.agents().into_iter().map(agent).collect(),
            speech: team.speech_mode().map(|mode| mode.as_str().to_owned()),
        }
    }
}

/// A ticket for a realtime session.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TicketBody {
    /// To be sent as the subprotocol `ticket.TICKET`. It is good once.
    pub(super) ticket: String,
    pub(super) conversation: String,
    /// The seconds for which it is good.
    pub(super) expires_in: u64,
    /// The other subprotocol of the WebSocket.
    pub(super) protocol: String,
    pub(super) mode: Mode,
}

/// The mistakes of a team, the most severe first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CheckBody {
    pub(super) findings: Vec<FindingBody>,
}

/// A mistake in a team, or something that looks like one.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FindingBody {
    code: String,
    /// `note`, `warning` or `error`.
    severity: String,
    agent: String,
    tool: Option<String>,
    message: String,
    advice: String,
}

impl From<&Finding> for FindingBody {
    fn from(finding: &Finding) -> Self {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            _ => "note",
        };
        Self {
            code: finding.code.as_str().to_owned(),
            severity: severity.to_owned(),
            agent: finding.agent.clone(),
            tool: finding.tool.clone(),
            message: finding.message.clone(),
            advice: finding.advice.clone(),
        }
    }
}

/// An error.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ErrorBody {
    error: ErrorDetails,
}

/// The content of an error.
#[derive(Debug, Serialize, JsonSchema)]
struct ErrorDetails {
    message: String,
    #[serde(rename = "type")]
    kind: String,
    param: Option<String>,
    code: String,
}
