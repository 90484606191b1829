//! The objects that the API answers with. Their schemas are part of its OpenAPI document.

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use switchboard_core::approval::Interruption;
use switchboard_core::conversation::{Entry, to_millis};
use switchboard_core::stream::EventKind;
use switchboard_core::team::{Finding, Severity};

use crate::agent_details::AgentDetails;
use crate::realtime::Mode;
use crate::recording::Tokens;
use crate::runs::RunRecord;
use crate::service::{Listed, ListedConversation, Shown, TurnInfo, Turns, status_name};
use crate::team::{AgentInfo, ServedTeam};
use crate::tenant::Tenant;

/// A conversation in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ConversationSummary {
    id: String,
    /// The beginning of its first message.
    title: Option<String>,
    team: Option<String>,
    /// The agent that gets the next message.
    agent: Option<String>,
    entries: u64,
    /// Milliseconds since 1970.
    created: i64,
    /// Milliseconds since 1970.
    changed: i64,
    /// The run that is under way.
    running: Option<String>,
    /// It waits for a decision or a person.
    is_waiting: bool,
}

impl From<&ListedConversation> for ConversationSummary {
    fn from(listed: &ListedConversation) -> Self {
        let head = &listed.head;
        Self {
            id: listed.id.to_string(),
            title: listed.title.clone(),
            team: listed.details.team.clone(),
            agent: head.agent.as_deref().map(ToOwned::to_owned),
            entries: head.entries(),
            created: to_millis(head.created),
            changed: to_millis(head.changed),
            running: listed.running.as_deref().map(ToOwned::to_owned),
            is_waiting: listed.is_waiting,
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
            conversations: conversations.map(ConversationSummary::from).collect(),
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
    items: Vec<EntryBody>,
    /// There are earlier entries.
    more: bool,
    /// The values of the team's context that were chosen for it, by path.
    context: Value,
    forked_from: Option<ForkedFrom>,
    /// Calls that wait for a decision, and people that are asked for an answer.
    waiting: Vec<Waiting>,
}

/// The conversation that one is a copy of.
#[derive(Debug, Serialize, JsonSchema)]
struct ForkedFrom {
    conversation: String,
    /// The position before which the copy begins; null for all of it.
    before: Option<u64>,
}

impl ConversationBody {
    pub(super) fn new(tenant: &Tenant, shown: &Shown) -> Self {
        let details = &shown.listed.details;
        // The stored name has the tenant's before it.
        let origin = details.forked_from.as_ref();
        let origin = origin.and_then(|(name, before)| Some((tenant.id_of(name)?, *before)));
        Self {
            summary: ConversationSummary::from(&shown.listed),
            items: shown.entries.iter().map(EntryBody::from).collect(),
            more: shown.has_more,
            context: Value::Object(details.context.clone()),
            forked_from: origin.map(|(conversation, before)| ForkedFrom {
                conversation: conversation.to_owned(),
                before,
            }),
            waiting: shown.waiting.iter().map(Waiting::from).collect(),
        }
    }
}

/// The turns of a conversation, the oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TurnList {
    turns: Vec<TurnBody>,
    /// The position for `after` of the next page; null on the last.
    next: Option<u64>,
}

/// A message, or a turn of an agent.
#[derive(Debug, Serialize, JsonSchema)]
struct TurnBody {
    /// `message` or `agent`.
    kind: String,
    /// The position of its first entry.
    position: u64,
    /// The position after its last entry.
    end: u64,
    /// The position for a fork here; null where none is possible.
    fork_before: Option<u64>,
    run: String,
    turn: u32,
    agent: Option<String>,
    /// Milliseconds since 1970.
    time: i64,
    /// The beginning of what was said.
    text: String,
    /// The names of the tools that were called.
    calls: Vec<String>,
    handoff: Option<TurnHandoff>,
    /// A guardrail has refused it.
    refused: bool,
    /// The run whose recording has it.
    recording: Option<String>,
    tokens: Option<Tokens>,
}

/// The handoff at the end of a turn.
#[derive(Debug, Serialize, JsonSchema)]
struct TurnHandoff {
    to: String,
}

impl From<Turns> for TurnList {
    fn from(turns: Turns) -> Self {
        Self {
            turns: turns.turns.into_iter().map(TurnBody::from).collect(),
            next: turns.next,
        }
    }
}

impl From<TurnInfo> for TurnBody {
    fn from(turn: TurnInfo) -> Self {
        let kind = if turn.is_message { "message" } else { "agent" };
        Self {
            kind: kind.to_owned(),
            position: turn.positions.start,
            end: turn.positions.end,
            fork_before: turn.fork_before,
            run: turn.run.to_string(),
            turn: turn.turn,
            agent: turn.agent.as_deref().map(ToOwned::to_owned),
            time: to_millis(turn.time),
            text: turn.text,
            calls: turn.calls,
            handoff: turn.handed_to.map(|to| TurnHandoff { to }),
            refused: turn.is_refused,
            recording: turn.recording.as_deref().map(ToOwned::to_owned),
            tokens: turn.tokens,
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
    /// The beginning of the conversation's first message.
    pub(super) title: Option<String>,
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
    /// Another one after each time that the team was read again.
    version: String,
    /// The values of its context that a conversation may set, with their defaults.
    context: Vec<ContextValue>,
    agents: Vec<AgentBody>,
    /// `realtime` or `voice` if one can speak with the team; see `/api/teams/{team}/realtime/tickets`.
    speech: Option<String>,
}

/// A value of a team's context.
#[derive(Debug, Serialize, JsonSchema)]
struct ContextValue {
    path: String,
    value: Value,
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
    /// A person answers for it.
    is_person: bool,
    model: Option<String>,
}

impl From<&ServedTeam> for TeamBody {
    fn from(team: &ServedTeam) -> Self {
        let agent = |agent: AgentInfo| AgentBody {
            name: agent.name,
            description: agent.description,
            tools: agent.tools,
            handoffs: agent.handoffs,
            is_start: agent.is_start,
            is_person: agent.is_person,
            model: agent.model,
        };
        let context = team.context_values().into_iter();
        Self {
            name: team.name().to_owned(),
            description: team.description_text().map(ToOwned::to_owned),
            version: team.version().to_owned(),
            context: context
                .map(|(path, value)| ContextValue { path, value })
                .collect(),
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

/// An agent with everything that is known of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AgentDetailsBody {
    #[serde(flatten)]
    pub(super) details: AgentDetails,
    /// Its mistakes.
    pub(super) findings: Vec<FindingBody>,
}

/// The studio.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StudioBody {
    pub(super) version: String,
    /// Runs are recorded.
    pub(super) recording: bool,
    /// A team file can be changed.
    pub(super) editing: bool,
    pub(super) default_team: Option<String>,
    /// `en` or `zh`.
    pub(super) language: String,
    pub(super) limits: StudioLimits,
    /// Spoken conversations are possible.
    pub(super) voice: bool,
}

/// The limits that a page should know.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StudioLimits {
    pub(super) body_bytes: usize,
    /// The bytes of the files attached to a message, before they are encoded.
    pub(super) attachment_bytes: usize,
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
