use std::sync::{Arc, Mutex};

use serde_json::json;
use switchboard_core::items::{RunItem, RunItemKind};

use super::style::{Colours, Language};
use super::*;

/// The text that a screen of this width shows for the events.
fn drawn(events: &[Value], width: Option<usize>, language: Language) -> String {
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let look = Look {
        width,
        colours: Colours::Off,
        language,
    };
    let out = Shared::default();
    let mut screen = Screen::new(out.clone(), look);
    for event in events {
        let json = serde_json::to_vec(event).unwrap();
        screen.write(&EventLine::parse(&json).unwrap()).unwrap();
    }
    let bytes = out.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

/// An event of Billing, with these fields.
fn event(kind: &str, fields: Value) -> Value {
    let mut event = json!({"type": kind, "agent": "Billing", "turn": 1, "at": 1.25});
    let Value::Object(fields) = fields else {
        panic!("{fields}");
    };
    event.as_object_mut().unwrap().extend(fields);
    event
}

fn started(input: &str) -> Value {
    let agents = ["Triage", "Billing"];
    let fields =
        json!({"version": 1, "agents": agents, "input": input, "agent": "Triage", "at": 0});
    event("run_started", fields)
}

fn delta(text: &str) -> Value {
    event("text_delta", json!({"item": "m1", "text": text}))
}

fn item(name: ItemEvent, text: Option<&str>, kind: RunItemKind, item: Item) -> Value {
    let item = RunItem::new(kind, "Billing", item);
    event("item", json!({"name": name, "text": text, "item": item}))
}

fn message(text: &str) -> Value {
    let name = ItemEvent::MessageOutputCreated;
    item(
        name,
        Some(text),
        RunItemKind::MessageOutput,
        Item::assistant(text),
    )
}

fn tool_started(id: &str, tool: &str, arguments: Value) -> Value {
    event(
        "tool_started",
        json!({"call_id": id, "tool": tool, "arguments": arguments}),
    )
}

fn tool_ended(id: &str, tool: &str, output: Value, failed: bool) -> Value {
    let fields = json!({
        "call_id": id, "tool": tool, "arguments": {}, "output": output, "failed": failed,
        "seconds": 0.1,
    });
    event("tool_ended", fields)
}

fn handoff(status: &str, more: Value) -> Value {
    let mut handoff = event("handoff", more);
    let fields = json!({
        "from": "Triage", "to": "Billing", "tool": "transfer_to_billing", "call_id": "h1",
        "status": status,
    });
    let fields = fields.as_object().unwrap().clone();
    handoff.as_object_mut().unwrap().extend(fields);
    handoff
}

fn taken() -> Value {
    let payload = json!({"reason": "charged twice", "amount": 12.5});
    handoff(
        "taken",
        json!({"payload": payload, "carried_items": 4, "of_items": 6}),
    )
}

fn tripped(guardrail: &str, info: &str) -> Value {
    let result = json!({
        "guardrail": guardrail, "agent": "Billing", "outcome": "tripped", "info": info,
    });
    event("guardrail", json!({"on": "output", "result": result}))
}

fn failed(message: &str) -> Value {
    let fields = json!({"error": "output_guardrail", "message": message, "turns": 1, "usage": {}});
    event("run_failed", fields)
}

fn finished(output: &str) -> Value {
    let usage = json!({"requests": 2, "input_tokens": 120, "output_tokens": 8});
    event(
        "run_finished",
        json!({"output": output, "turns": 2, "usage": usage}),
    )
}

fn conversation() -> Vec<Value> {
    vec![
        started("You took the money twice"),
        taken(),
        tool_started("1", "find_charge", json!({"customer": "Ann", "days": 3})),
        tool_ended("1", "find_charge", json!({"charges": 2}), false),
        delta("It is"),
        delta(" rever"),
        event("usage", json!({"response": {}, "run": {}})),
        delta("sed."),
        message("It is reversed."),
        finished("It is reversed."),
    ]
}

#[test]
fn a_conversation_shows_messages_handoffs_and_tool_calls() {
    assert_eq!(
        drawn(&conversation(), None, Language::En),
        "\
You      You took the money twice
Triage   → Billing
           reason: charged twice
           amount: 12.5
           carried 4 of 6 items
Billing  find_charge(customer: Ann, days: 3)
           = {\"charges\":2}
Billing  It is reversed.
           Billing · 2 turns · 120 tokens in, 8 out · 1.25 s
"
    );
}

#[test]
fn agents_inside_calls_have_lines_under_them() {
    let inner = |agent: &str, call: &str, mut inner: Value| {
        inner["agent"] = json!(agent);
        event(
            "inner",
            json!({"call_id": call, "tool": "t", "event": inner}),
        )
    };
    let handoff = |status: &str, reason: Option<&str>| {
        let fields = json!({"from": "Triage", "to": "Billing", "tool": "t", "call_id": "1",
            "payload": {}, "status": status, "reason": reason});
        event("handoff", fields)
    };
    let called = item(
        ItemEvent::ToolCalled,
        None,
        RunItemKind::ToolCall,
        Item::function_call("2", "ask", "{}"),
    );
    let events = [
        started("Is it right?"),
        handoff("failed", Some("reason is missing")),
        handoff("fanned_out", None),
        inner(
            "Billing",
            "1",
            tool_started("3", "find_charge", json!({"days": 3})),
        ),
        inner("Billing", "1", message("It is right.")),
        called,
        tool_started("2", "ask", json!({})),
        // The answer of a tool is its output.
        inner("Expert", "2", message("Yes.")),
        inner("Expert", "2", failed("no turns left")),
        tool_ended("2", "ask", json!("Yes."), false),
    ];
    assert_eq!(
        drawn(&events, None, Language::En),
        "\
You      Is it right?
Triage   → Billing failed: reason is missing
Triage   → Billing
           Billing: find_charge(days: 3)
           Billing: It is right.
Billing  ask()
           Expert: failed: no turns left
           = Yes.
"
    );
}

#[test]
fn in_a_narrow_terminal_names_have_lines_of_their_own() {
    assert_eq!(
        drawn(&conversation()[..2], Some(20), Language::En),
        "\
You
  You took the money
  twice
Triage
  → Billing
    reason: charged
      twice
    amount: 12.5
    carried 4 of 6
      items
"
    );
}

#[test]
fn labels_are_in_the_language_of_the_reader() {
    assert_eq!(
        drawn(&[started("多扣了一次钱"), taken()], None, Language::Zh),
        "\
用户     多扣了一次钱
Triage   → Billing
           reason: charged twice
           amount: 12.5
           带走 4/6 条
"
    );
}

#[test]
fn the_column_of_names_keeps_its_width_in_later_runs() {
    let mut later = started("And now?");
    later["agents"] = json!(["Billing"]);
    later["agent"] = json!("Billing");
    let mut events = [started("Hi"), later];
    events[0]["agents"] = json!(["Triage", "Billing", "Manager on duty"]);
    assert_eq!(
        drawn(&events, None, Language::En),
        "You              Hi\n\nYou              And now?\n"
    );
}

#[test]
fn a_message_is_drawn_once_whether_it_was_streamed_or_not() {
    let whole = [message("Done."), finished("Done.")];
    let streamed = [
        delta("\n\nDo"),
        delta("ne.\n"),
        message("Done."),
        finished("Done."),
    ];
    let expected = "\
Billing
     Done.
       Billing · 2 turns · 120 tokens in, 8 out · 1.25 s
";
    assert_eq!(drawn(&whole, None, Language::En), expected);
    assert_eq!(drawn(&streamed, None, Language::En), expected);
}

#[test]
fn two_messages_of_a_response_are_two_entries() {
    let mut second = delta("Two.");
    second["item"] = json!("m2");
    let events = [
        started("Hi"),
        delta("One."),
        second,
        message("One."),
        message("Two."),
    ];
    assert_eq!(
        drawn(&events, None, Language::En),
        "You      Hi\nBilling  One.\nBilling  Two.\n"
    );
}

#[test]
fn an_output_that_is_not_a_message_is_drawn() {
    let events = [started("Hi"), message("secret"), finished("(withheld)")];
    assert_eq!(
        drawn(&events, None, Language::En),
        "\
You      Hi
Billing  secret
Billing  (withheld)
           Billing · 2 turns · 120 tokens in, 8 out · 1.25 s
"
    );
}

#[test]
fn each_output_is_under_its_call_also_when_tools_run_at_the_same_time() {
    let events = [
        started("Hi"),
        tool_started("1", "slow", json!({})),
        tool_started("2", "fast", json!({})),
        tool_ended("2", "fast", json!("two"), false),
        tool_ended("1", "slow", json!("one"), false),
        tool_ended("3", "missing", json!("Tool 'missing' not found."), true),
    ];
    assert_eq!(
        drawn(&events, None, Language::En),
        "\
You      Hi
Billing  slow()
Billing  fast()
           = two
Billing  slow()
           = one
Billing  missing()
           failed: Tool 'missing' not found.
"
    );
}

#[test]
fn a_call_is_drawn_from_its_item_only_if_the_provider_runs_the_tool() {
    let call = |json: &str| {
        let call = serde_json::from_str(json).unwrap();
        item(ItemEvent::ToolCalled, None, RunItemKind::ToolCall, call)
    };
    let events = [
        started("Hi"),
        call(r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#),
        call(r#"{"type":"function_call","call_id":"c1","name":"find","arguments":"{}"}"#),
    ];
    assert_eq!(
        drawn(&events, None, Language::En),
        "You      Hi\nBilling  web_search_call()\n"
    );
}

#[test]
fn refusals_guardrails_and_failures_are_drawn() {
    let events = [
        started("Hi"),
        handoff(
            "refused",
            json!({"payload": {}, "reason": "closed on Sundays"}),
        ),
        handoff("ignored", json!({"payload": {}})),
        tripped("no cards", "a card number"),
        tripped("quiet", ""),
        failed("stopped"),
    ];
    assert_eq!(
        drawn(&events, None, Language::En),
        "\
You      Hi
Triage   → Billing refused: closed on Sundays
Triage   → Billing ignored
Billing  guardrail \"no cards\" stopped the run: a card number
Billing  guardrail \"quiet\" stopped the run
error: stopped
"
    );
}

#[test]
fn a_stopped_message_stays() {
    let stopped = event("run_stopped", json!({"turns": 0, "usage": {}}));
    assert_eq!(
        drawn(
            &[started("Hi"), delta("It is"), stopped],
            None,
            Language::En
        ),
        "\
You      Hi
Billing  It is
           stopped
           Billing · 0 turns · 0 tokens in, 0 out · 1.25 s
"
    );
}

#[test]
fn escape_sequences_of_a_model_or_a_tool_do_not_reach_the_terminal() {
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m";
    let mut handoff = handoff("taken", json!({"payload": { evil: evil }}));
    handoff["from"] = json!(evil);
    handoff["to"] = json!(evil);
    let events = [
        started(evil),
        delta(evil),
        message("other\u{1b}c"),
        tool_started(evil, evil, json!({ evil: evil })),
        tool_ended(evil, evil, json!(evil), true),
        handoff,
        tripped(evil, evil),
        finished(evil),
        failed(evil),
    ];
    for width in [None, Some(20), Some(80)] {
        let drawn = drawn(&events, width, Language::En);
        let raw: Vec<char> = drawn
            .chars()
            .filter(|c| c.is_control() && *c != '\n')
            .collect();
        assert_eq!(raw, Vec::<char>::new(), "{drawn}");
    }
}

#[test]
fn a_long_output_of_a_tool_is_shortened() {
    let events = [
        tool_started("1", "dump", json!({})),
        tool_ended("1", "dump", json!("x".repeat(MAX_VALUE + 7)), false),
    ];
    let expected = format!(
        "       = {}… (7 more characters; --json shows all)\n",
        "x".repeat(MAX_VALUE)
    );
    assert!(drawn(&events, None, Language::En).ends_with(&expected));
}

#[test]
fn a_message_that_guardrails_have_passed_and_a_summary_that_failed_are_shown() {
    let fields = json!({"version": 1, "agents": ["Billing"], "at": 0});
    let events = [
        event("run_started", fields),
        event("compaction_failed", json!({"reason": "no route"})),
        event("input_passed", json!({"input": "Hi"})),
    ];
    assert_eq!(
        drawn(&events, None, Language::En),
        "           the long conversation was not summarised: no route\nYou      Hi\n"
    );
}
