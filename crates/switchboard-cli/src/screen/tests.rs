use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::json;
use switchboard_core::Usage;

use super::style::{Colours, Language};
use super::*;

/// What a screen of this width shows of events.
fn shown(events: &[Event], width: Option<usize>, language: Language) -> String {
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
        let event = event.clone();
        screen.told(&Line { event, at: 0.0 }).unwrap();
    }
    let bytes = out.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

fn started(message: &str) -> Event {
    Event::RunStarted {
        team: "team.toml".to_owned(),
        agents: vec!["Triage".to_owned(), "Billing".to_owned()],
        agent: "Triage".to_owned(),
        model: "offline".to_owned(),
        message: message.to_owned(),
    }
}

fn delta(text: &str) -> Event {
    Event::TextDelta {
        agent: "Billing".to_owned(),
        text: text.to_owned(),
    }
}

fn message(text: &str) -> Event {
    Event::Message {
        agent: "Billing".to_owned(),
        text: text.to_owned(),
    }
}

fn finished(output: &str) -> Event {
    Event::Finished {
        agent: "Billing".to_owned(),
        output: json!(output),
        cost: Cost {
            turns: 2,
            usage: Usage {
                requests: 2,
                input_tokens: 120,
                output_tokens: 8,
                ..Usage::default()
            },
            seconds: 1.25,
        },
    }
}

fn handoff() -> Event {
    let kinds = [
        ("function_call", 1),
        ("function_call_output", 1),
        ("user_message", 2),
    ];
    Event::Handoff {
        from: "Triage".to_owned(),
        to: "Billing".to_owned(),
        tool: "transfer_to_billing".to_owned(),
        payload: json!({"reason": "charged twice", "amount": 12.5}),
        carried: Some(Carried {
            items: 4,
            of: 6,
            kinds: BTreeMap::from(kinds.map(|(kind, count)| (kind.to_owned(), count))),
        }),
    }
}

fn conversation() -> Vec<Event> {
    vec![
        started("You took the money twice"),
        handoff(),
        Event::ToolCalled {
            agent: "Billing".to_owned(),
            call_id: "1".to_owned(),
            tool: "find_charge".to_owned(),
            arguments: json!({"customer": "Ann", "days": 3}),
        },
        Event::ToolOutput {
            agent: "Billing".to_owned(),
            call_id: "1".to_owned(),
            tool: "find_charge".to_owned(),
            output: json!({"charges": 2}),
            failed: false,
        },
        delta("It is"),
        delta(" rever"),
        delta("sed."),
        message("It is reversed."),
        finished("It is reversed."),
    ]
}

#[test]
fn a_conversation_shows_who_speaks_and_what_is_handed_over() {
    assert_eq!(
        shown(&conversation(), None, Language::En),
        "\
You      You took the money twice
Triage   → Billing
           reason: charged twice
           amount: 12.5
           carried 4 of 6 items: 2 user messages, 1 call, 1 output
Billing  find_charge(customer: Ann, days: 3)
           = {\"charges\":2}
Billing  It is reversed.
           Billing · 2 turns · 120 tokens in, 8 out · 1.25 s
"
    );
}

#[test]
fn a_narrow_terminal_has_names_on_lines_of_their_own() {
    assert_eq!(
        shown(&conversation()[..2], Some(20), Language::En),
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
      items: 2 user
      messages, 1
      call, 1 output
"
    );
}

#[test]
fn labels_are_in_the_language_of_the_reader() {
    assert_eq!(
        shown(&[started("多扣了一次钱"), handoff()], None, Language::Zh),
        "\
用户     多扣了一次钱
Triage   → Billing
           reason: charged twice
           amount: 12.5
           带走 4/6 条：2 用户消息，1 调用，1 结果
"
    );
}

#[test]
fn a_message_that_was_not_streamed_is_shown_once_and_so_is_one_that_was() {
    let plain = [message("Done."), finished("Done.")];
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
    assert_eq!(shown(&plain, None, Language::En), expected);
    assert_eq!(shown(&streamed, None, Language::En), expected);
}

#[test]
fn an_output_that_nobody_has_said_is_shown() {
    let events = [started("Hi"), message("secret"), finished("(withheld)")];
    assert_eq!(
        shown(&events, None, Language::En),
        "\
You      Hi
Billing  secret
Billing  (withheld)
           Billing · 2 turns · 120 tokens in, 8 out · 1.25 s
"
    );
}

#[test]
fn what_does_not_go_well_is_shown_with_what_to_do() {
    let billing = || "Billing".to_owned();
    let events = [
        started("Hi"),
        Event::HandoffRefused {
            from: "Triage".to_owned(),
            to: billing(),
            tool: "transfer_to_billing".to_owned(),
            payload: json!({}),
            reason: "closed on Sundays".to_owned(),
        },
        Event::ToolOutput {
            agent: billing(),
            call_id: "1".to_owned(),
            tool: "find_charge".to_owned(),
            output: json!("timed out"),
            failed: true,
        },
        Event::Guardrail {
            guardrail: "no cards".to_owned(),
            agent: billing(),
            outcome: GuardrailOutcome::Tripped,
            info: json!("a card number"),
        },
        Event::Error {
            kind: "output_guardrail".to_owned(),
            message: "stopped".to_owned(),
            help: Some("say it differently".to_owned()),
            exit_code: 3,
            cost: Cost::default(),
        },
    ];
    assert_eq!(
        shown(&events, None, Language::En),
        "\
You      Hi
Triage   → Billing refused: closed on Sundays
           failed: timed out
Billing  guardrail \"no cards\" stopped the run: a card number
error: stopped
  help: say it differently
"
    );
}

#[test]
fn an_answer_that_was_stopped_keeps_what_was_said() {
    let stopped = Event::Stopped {
        agent: "Billing".to_owned(),
        output: "It is".to_owned(),
        cost: Cost::default(),
    };
    assert_eq!(
        shown(
            &[started("Hi"), delta("It is"), stopped],
            None,
            Language::En
        ),
        "\
You      Hi
Billing  It is
           stopped
           Billing · 0 turns · 0 tokens in, 0 out · 0.00 s
"
    );
}

#[test]
fn escape_sequences_of_a_model_or_a_tool_do_not_reach_the_terminal() {
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m";
    let events = [
        started(evil),
        delta(evil),
        message("other\u{1b}c"),
        Event::ToolCalled {
            agent: evil.to_owned(),
            call_id: evil.to_owned(),
            tool: evil.to_owned(),
            arguments: json!({ evil: evil }),
        },
        Event::Handoff {
            from: evil.to_owned(),
            to: evil.to_owned(),
            tool: evil.to_owned(),
            payload: json!({ evil: evil }),
            carried: None,
        },
        Event::Guardrail {
            guardrail: evil.to_owned(),
            agent: evil.to_owned(),
            outcome: GuardrailOutcome::Tripped,
            info: json!(evil),
        },
        finished(evil),
        Event::Error {
            kind: evil.to_owned(),
            message: evil.to_owned(),
            help: Some(evil.to_owned()),
            exit_code: 1,
            cost: Cost::default(),
        },
    ];
    for width in [None, Some(20), Some(80)] {
        let shown = shown(&events, width, Language::En);
        let raw: Vec<char> = shown
            .chars()
            .filter(|c| c.is_control() && *c != '\n')
            .collect();
        assert_eq!(raw, Vec::<char>::new(), "{shown}");
    }
}

#[test]
fn a_long_output_of_a_tool_is_cut_on_the_screen() {
    let output = Event::ToolOutput {
        agent: "Billing".to_owned(),
        call_id: "1".to_owned(),
        tool: "dump".to_owned(),
        output: json!("x".repeat(SHOWN + 7)),
        failed: false,
    };
    let expected = format!(
        "       = {}… (7 more characters; --json shows all)\n",
        "x".repeat(SHOWN)
    );
    assert_eq!(shown(&[output], None, Language::En), expected);
}
