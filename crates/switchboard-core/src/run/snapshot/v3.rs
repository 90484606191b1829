//! Reading version 3, in which all fields of a run stood side by side.

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::{Snapshot, StoredRunItem, VERSION};
use crate::items::Item;

type Raw = Box<RawValue>;

/// A run of version 3.
#[derive(Deserialize)]
struct StoredV3 {
    items: Vec<Item>,
    run_items: Vec<StoredRunItem>,
    agent: Raw,
    first: Raw,
    trail: Raw,
    turn: Raw,
    made_items: Raw,
    usage: Raw,
    agent_started: Raw,
    input_checks: Raw,
    tool_users: Raw,
    input_guardrails: Raw,
    output_guardrails: Raw,
    tool_guardrails: Raw,
    handoff_guardrails: Raw,
    input: Raw,
    stored_input: Raw,
    generated: Raw,
    record: Raw,
    owned: Raw,
    calls: Raw,
    unsaved: Raw,
    saved_early: Raw,
    has_session: Raw,
    delivered: Option<Raw>,
    responses: Raw,
    phase: PhaseV3,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum PhaseV3 {
    Model,
    Tools(TurnV3),
    Judge(TurnV3),
    Handoff(TurnV3),
    Output(TurnV3, Raw),
    Done(Raw),
}

/// A turn of version 3; it is written as one of version 4.
#[derive(Deserialize, Serialize)]
#[serde(from = "FlatTurn")]
struct TurnV3 {
    items: Raw,
    handoffs: Raw,
    tools: ToolsV3,
    progress: Raw,
    #[serde(skip_serializing_if = "Option::is_none")]
    picked: Option<Raw>,
    used_tools: Raw,
    ends_at_tool: Raw,
    end_told: Raw,
}

#[derive(Serialize)]
struct ToolsV3 {
    calls: Raw,
    unknown: Raw,
    results: Raw,
    done: Raw,
    started: Raw,
}

#[derive(Deserialize)]
struct FlatTurn {
    items: Raw,
    tools: Raw,
    unknown_tools: Raw,
    handoffs: Raw,
    results: Raw,
    done: Raw,
    started: Raw,
    progress: Raw,
    picked: Option<Raw>,
    used_tools: Raw,
    ends_at_tool: Raw,
    end_told: Raw,
}

impl From<FlatTurn> for TurnV3 {
    fn from(turn: FlatTurn) -> Self {
        Self {
            items: turn.items,
            handoffs: turn.handoffs,
            tools: ToolsV3 {
                calls: turn.tools,
                unknown: turn.unknown_tools,
                results: turn.results,
                done: turn.done,
                started: turn.started,
            },
            progress: turn.progress,
            picked: turn.picked,
            used_tools: turn.used_tools,
            ends_at_tool: turn.ends_at_tool,
            end_told: turn.end_told,
        }
    }
}

#[derive(Serialize)]
struct RunV4 {
    agent: AgentV4,
    first_agent: AgentV4,
    position: PositionV4,
    conversation: ConversationV4,
    session: SessionV4,
    guardrails: GuardrailsV4,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered: Option<Raw>,
    handoffs: Raw,
    responses: Raw,
    usage: Raw,
}

/// Version 3 had no name beside the key.
#[derive(Serialize)]
struct AgentV4 {
    key: Raw,
    name: Raw,
}

#[derive(Serialize)]
struct PositionV4 {
    turn: Raw,
    phase: PhaseV3,
    agent_started: Raw,
    last_item: Raw,
    tool_users: Raw,
}

#[derive(Serialize)]
struct ConversationV4 {
    input: Raw,
    stored_input: Raw,
    generated: Raw,
    record: Raw,
    owned: Raw,
    calls: Raw,
}

#[derive(Serialize)]
struct SessionV4 {
    is_attached: Raw,
    unsaved: Raw,
    saved_early: Raw,
}

#[derive(Serialize)]
struct GuardrailsV4 {
    input_checks: Raw,
    input: Raw,
    output: Raw,
    tool: Raw,
    handoff: Raw,
}

/// Converts a run of version 3.
pub(super) fn convert(stored: &str) -> Result<Snapshot, serde_json::Error> {
    let v3: StoredV3 = serde_json::from_str(stored)?;
    let agent = |key: Raw| AgentV4 {
        name: key.clone(),
        key,
    };
    let run = RunV4 {
        agent: agent(v3.agent),
        first_agent: agent(v3.first),
        position: PositionV4 {
            turn: v3.turn,
            phase: v3.phase,
            agent_started: v3.agent_started,
            last_item: v3.made_items,
            tool_users: v3.tool_users,
        },
        conversation: ConversationV4 {
            input: v3.input,
            stored_input: v3.stored_input,
            generated: v3.generated,
            record: v3.record,
            owned: v3.owned,
            calls: v3.calls,
        },
        session: SessionV4 {
            is_attached: v3.has_session,
            unsaved: v3.unsaved,
            saved_early: v3.saved_early,
        },
        guardrails: GuardrailsV4 {
            input_checks: v3.input_checks,
            input: v3.input_guardrails,
            output: v3.output_guardrails,
            tool: v3.tool_guardrails,
            handoff: v3.handoff_guardrails,
        },
        delivered: v3.delivered,
        handoffs: v3.trail,
        responses: v3.responses,
        usage: v3.usage,
    };
    Ok(Snapshot {
        version: VERSION,
        items: v3.items,
        run_items: v3.run_items,
        run: to_raw_value(&run)?,
    })
}
