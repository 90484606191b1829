//! The lines of `--json`, `/save` and `replay`: the events of a run's stream, each with its time.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_core::{EventKind, StreamEvent};

use crate::library_advice::without_library_advice;

/// An event and its time. `docs/program.md` describes the JSON form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EventLine {
    /// The event.
    pub(crate) event: StreamEvent,
    /// Seconds since the conversation began.
    pub(crate) at: f64,
    /// The values of the context that the user has set, by path; for the beginning of a run.
    pub(crate) context: Map<String, Value>,
}

impl EventLine {
    /// The line of an event that happens now. Its error has no advice for programmers.
    pub(crate) fn new(mut event: StreamEvent, at: f64) -> Self {
        remove_library_advice(&mut event);
        Self {
            event,
            at,
            context: Map::new(),
        }
    }

    /// The line of an event whose time is not known.
    pub(crate) fn at_once(event: StreamEvent) -> Self {
        Self {
            event,
            at: 0.0,
            context: Map::new(),
        }
    }

    /// Returns the event's JSON with a field `at`, and `context` if values were set.
    pub(crate) fn to_json(&self) -> serde_json::Result<String> {
        let event = serde_json::to_string(&self.event)?;
        let at = serde_json::to_string(&self.at)?;
        let fields = event.strip_suffix('}').unwrap_or(&event);
        let context = if self.context.is_empty() {
            String::new()
        } else {
            format!(",\"context\":{}", serde_json::to_string(&self.context)?)
        };
        Ok(format!("{fields}{context},\"at\":{at}}}"))
    }

    /// Parses a line. A missing `at` is 0.
    pub(crate) fn parse(json: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Added {
            #[serde(default)]
            at: f64,
            #[serde(default)]
            context: Map<String, Value>,
        }
        let Added { at, context } = serde_json::from_slice(json)?;
        let event = serde_json::from_slice(json)?;
        Ok(Self { event, at, context })
    }
}

fn remove_library_advice(event: &mut StreamEvent) {
    let text = match &mut event.kind {
        EventKind::RunFailed { message, .. } => message,
        EventKind::CompactionFailed { reason, .. } | EventKind::ModelRetry { reason, .. } => reason,
        EventKind::Inner { event, .. } => return remove_library_advice(event),
        _ => return,
    };
    if let Cow::Owned(plain) = without_library_advice(text) {
        *text = plain;
    }
}

/// Returns `true` for an event of the provider's protocol, also inside a call.
pub(crate) fn is_raw(event: &StreamEvent) -> bool {
    match &event.kind {
        EventKind::Raw { .. } => true,
        EventKind::Inner { event, .. } => is_raw(event),
        _ => false,
    }
}

/// Rounds seconds to milliseconds.
pub(crate) fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use switchboard_core::ErrorKind;
    use switchboard_core::stream::ItemEvent;

    use super::*;

    #[test]
    fn a_line_is_the_json_of_the_event_with_a_time() {
        let json =
            r#"{"type":"text_delta","agent":"Billing","turn":1,"item":"m1","text":"Hi","at":1.5}"#;
        let line = EventLine::parse(json.as_bytes()).unwrap();
        assert_eq!(line.at, 1.5);
        assert!(matches!(&line.event.kind, EventKind::TextDelta { text, .. } if text == "Hi"));
        assert_eq!(line.to_json().unwrap(), json);
    }

    #[test]
    fn types_and_fields_of_a_later_version_are_ignored() {
        let later = br#"{"type":"telepathy","agent":"Billing","turn":1,"at":3}"#;
        let line = EventLine::parse(later).unwrap();
        assert!(matches!(line.event.kind, EventKind::Unknown(_)));
        assert_eq!(line.at, 3.0);
        let later = br#"{"type":"turn_started","agent":"A","turn":1,"mood":"good","at":0}"#;
        let line = EventLine::parse(later).unwrap();
        assert!(matches!(line.event.kind, EventKind::TurnStarted { .. }));
    }

    /// One event of each type with all its fields.
    const EVENTS: &[&str] = &[
        r#"{"type":"run_started","agent":"A","turn":0,"version":1,"agents":["A"],"input":"Hi"}"#,
        r#"{"type":"input_passed","agent":"A","turn":0,"input":"Hi"}"#,
        r#"{"type":"agent_updated","agent":"A","turn":0,"model":"m"}"#,
        r#"{"type":"compaction_failed","agent":"A","turn":0,"reason":"r"}"#,
        r#"{"type":"turn_started","agent":"A","turn":1}"#,
        r#"{"type":"text_delta","agent":"A","turn":1,"item":"i","text":"t"}"#,
        r#"{"type":"reasoning_delta","agent":"A","turn":1,"item":"i","text":"t"}"#,
        r#"{"type":"arguments_delta","agent":"A","turn":1,"item":"i","call_id":"c","tool":"t","text":"x"}"#,
        r#"{"type":"raw","agent":"A","turn":1,"event":{}}"#,
        r#"{"type":"model_retry","agent":"A","turn":1,"attempt":2,"delay_seconds":1.0,"reason":"busy"}"#,
        r#"{"type":"usage","agent":"A","turn":1,"response":{},"run":{}}"#,
        r#"{"type":"item","agent":"A","turn":1,"name":"message_output_created","text":"t","item":{"type":"message_output_item","raw_item":{"role":"assistant","content":"t"},"agent":{"name":"A"}}}"#,
        r#"{"type":"tool_started","agent":"A","turn":1,"call_id":"c","tool":"t","arguments":{}}"#,
        r#"{"type":"tool_progress","agent":"A","turn":1,"call_id":"c","tool":"t","progress":1,"dropped":2}"#,
        r#"{"type":"tool_ended","agent":"A","turn":1,"call_id":"c","tool":"t","arguments":{},"output":1,"failed":true,"seconds":1.0}"#,
        r#"{"type":"handoff","agent":"A","turn":1,"from":"A","to":"B","tool":"t","call_id":"c","payload":{},"status":"taken","reason":"r","carried_items":1,"of_items":2}"#,
        r#"{"type":"inner","agent":"A","turn":1,"call_id":"c","tool":"t","event":{"type":"inner","agent":"B","turn":2,"call_id":"d","tool":"u","event":{"type":"turn_started","agent":"C","turn":1}}}"#,
        r#"{"type":"guardrail","agent":"A","turn":1,"on":"input","result":{"guardrail":"g","agent":"A","outcome":"replaced","info":null,"replaced_by":"x"}}"#,
        r#"{"type":"run_finished","agent":"A","turn":1,"output":"o","turns":1,"usage":{}}"#,
        r#"{"type":"run_interrupted","agent":"A","turn":1,"interruptions":[{"kind":"tool","agent":"A","tool":"t","call_id":"c","arguments":"{}","inside":["d"]}],"turns":1,"usage":{}}"#,
        r#"{"type":"run_stopped","agent":"A","turn":1,"turns":1,"usage":{}}"#,
        r#"{"type":"run_failed","agent":"A","turn":1,"error":"model","message":"m","guardrail":{"guardrail":"g","agent":"A","outcome":"tripped","info":"i"},"turns":1,"usage":{}}"#,
    ];

    #[test]
    fn the_guide_describes_every_type_and_every_field() {
        let guide = include_str!("../../../docs/program.md");
        for json in EVENTS {
            let line = EventLine::parse(json.as_bytes()).unwrap();
            assert!(!matches!(line.event.kind, EventKind::Unknown(_)), "{json}");
            let written: Value = serde_json::from_str(&line.to_json().unwrap()).unwrap();
            let fields = written.as_object().unwrap();
            let name = fields["type"].as_str().unwrap();
            let row = guide
                .lines()
                .find(|row| row.starts_with(&format!("| `{name}` |")))
                .unwrap_or_else(|| panic!("{name} is not in the guide"));
            let common = ["type", "agent", "turn", "at"];
            for field in fields
                .keys()
                .filter(|field| !common.contains(&field.as_str()))
            {
                assert!(row.contains(&format!("`{field}`")), "{name} {field}: {row}");
            }
            for object in ["result", "usage"] {
                for field in fields
                    .get(object)
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten()
                {
                    assert!(
                        guide.contains(&format!("`{}`", field.0)),
                        "{object} {}",
                        field.0
                    );
                }
            }
        }
    }

    #[test]
    fn the_guide_names_every_kind_of_error_and_item() {
        let guide = include_str!("../../../docs/program.md");
        let errors = "model_behavior model_refusal model configuration max_turns input_guardrail \
                      output_guardrail handoff_guardrail tool_guardrail user_code session";
        let items = "message_output_created handoff_requested handoff_occured tool_called \
                     tool_output reasoning_item_created tool_search_called \
                     tool_search_output_created mcp_approval_requested mcp_approval_response \
                     mcp_list_tools";
        for name in errors.split(' ') {
            serde_json::from_value::<ErrorKind>(name.into()).unwrap();
            assert!(guide.contains(&format!("`{name}`")), "{name}");
        }
        for name in items.split(' ') {
            serde_json::from_value::<ItemEvent>(name.into()).unwrap();
            assert!(guide.contains(&format!("`{name}`")), "{name}");
        }
    }
}
