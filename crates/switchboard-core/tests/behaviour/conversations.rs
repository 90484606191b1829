//! Conversations over several messages: what is stored, what models are shown, which agent answers.

mod branches;
mod compaction;
mod observed_store;
mod reading;
mod repeated_commits;
mod stopped;
mod teams;
mod writers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use switchboard_core::conversation::{
    Conversation, ConversationError, ConversationErrorKind, Conversations, EntryContent,
};
use switchboard_core::guardrail::{InputGuardrail, InputVerdict, OutputGuardrail, OutputVerdict};
use switchboard_core::items::Items;
use switchboard_core::run::{ActiveAgent, HistoryPolicy};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Error, ErrorKind, Input, Item, MemorySession, RunResult, Runner, Session, filters,
    handoff, tool,
};

use crate::{described, stored};

/// The items that the model was shown with each request.
fn shown(model: &ScriptedModel) -> Vec<Vec<String>> {
    let requests = model.requests();
    requests
        .iter()
        .map(|request| described(&request.input))
        .collect()
}

/// The kind of the conversation's error.
fn cause(error: &Error) -> Option<ConversationErrorKind> {
    let cause = error.cause()?.downcast_ref::<ConversationError>()?;
    Some(cause.kind())
}

/// The record in short: who, in which turn, what.
async fn record(conversation: &Conversation) -> Vec<String> {
    let entries = conversation.record(None).await.unwrap();
    let describe = |entry: &switchboard_core::conversation::Entry| {
        let agent = entry.agent.as_deref().unwrap_or("-");
        let what = match &entry.content {
            EntryContent::Item(item) => described(&vec![item.clone()].into()).remove(0),
            content => format!("{} {}", content.kind(), content.as_json()),
        };
        format!("{} {agent} {what}", entry.turn)
    };
    entries.iter().map(describe).collect()
}

/// A guardrail that refuses messages with a word.
fn refuses(name: &str, word: &'static str) -> InputGuardrail {
    InputGuardrail::new(name, move |_ctx, _agent, input: Input| {
        let has_word = input
            .items()
            .iter()
            .any(|item| item.as_json().contains(word));
        InputVerdict::trip_if(has_word, "a secret")
    })
}

fn transfer() -> ScriptedModel {
    ScriptedModel::new().call("transfer_to_billing", "{}")
}

#[tokio::test]
async fn what_a_filter_left_out_stays_left_out_while_the_agent_has_the_conversation() {
    let model = transfer()
        .say("Which bill?")
        .say("That one is paid.")
        .say("Bye.");
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(handoff(&billing).filter(filters::redact_pii()));
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&triage).model(model.clone()).session(&session);
    for words in ["My card is 4111 1111 1111 1111", "The one of May", "Thanks"] {
        runner.run(words).await.unwrap();
    }
    let last = &shown(&model)[3];
    assert_eq!(
        last,
        &[
            "user: My card is [CARD]",
            "call transfer_to_billing",
            "output of call_1: {\"assistant\": \"Billing\"}",
            "assistant: Which bill?",
            "user: The one of May",
            "assistant: That one is paid.",
            "user: Thanks",
        ]
    );
    // The record holds what was said.
    let said = record(&session).await;
    assert_eq!(said[0], "0 - user: My card is 4111 1111 1111 1111");
    assert_eq!(said[1], "1 Triage call transfer_to_billing");
    assert_eq!(said.last().unwrap(), "1 Billing assistant: Bye.");
    let view = session.view().await.unwrap();
    assert!(!view.iter().any(|item| item.as_json().contains("4111")));
}

#[tokio::test]
async fn a_later_agent_gets_what_its_own_handoff_decides() {
    let model = transfer()
        .say("Which bill?")
        .call("transfer_to_triage", "{}")
        .say("Back again.")
        .say("Still here.");
    let team = switchboard_core::Team::new()
        .agent(Agent::new("Triage").handoff(handoff("Billing").filter(filters::keep_last(1))))
        .agent(Agent::new("Billing").handoff("Triage"))
        .build()
        .unwrap();
    let session = Conversations::in_memory().get("c");
    let start: &Agent = &team["Triage"];
    let runner = Runner::new(start).model(model.clone()).session(&session);
    for words in ["My bill", "The one of May", "Hello?"] {
        runner.run(words).await.unwrap();
    }
    let requests = shown(&model);
    // Billing sees what its filter left; so does Triage, whose handoff changes nothing.
    assert_eq!(requests[1].len() + 2, requests[2].len());
    assert_eq!(requests[2][0], requests[4][0]);
    assert_eq!(requests[4].last().unwrap(), "user: Hello?");
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Triage"));
}

#[tokio::test]
async fn a_note_and_a_nested_history_stay_and_do_not_pile_up() {
    let model = transfer()
        .say("Which bill?")
        .call("back", "{}")
        .call("transfer_to_billing", "{}")
        .say("Done.")
        .say("Bye.");
    let team =
        switchboard_core::Team::new()
            .agent(Agent::new("Triage").handoff(
                handoff("Billing").filter(filters::note(|_data| "The customer is a friend.")),
            ))
            .agent(Agent::new("Billing").handoff(handoff("Triage").tool_name("back")))
            .build()
            .unwrap();
    let session = Conversations::in_memory().get("c");
    let start: &Agent = &team["Triage"];
    let runner = Runner::new(start).model(model.clone()).session(&session);
    for words in ["My bill", "The one of May", "Thanks"] {
        runner.run(words).await.unwrap();
    }
    let note = "developer: The customer is a friend.";
    for (index, request) in shown(&model).iter().enumerate().skip(1) {
        let notes = request.iter().filter(|item| *item == note).count();
        assert_eq!(notes, 1, "request {index}: {request:?}");
    }
    assert_eq!(shown(&model)[5][0], note);
}

#[tokio::test]
async fn a_refused_message_is_neither_shown_nor_stored_and_leaves_a_mark() {
    let model = ScriptedModel::new().say("Hello!");
    let agent: Agent = Agent::new("A").input_guardrail(refuses("no_secrets", "hunter2"));
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    let error = runner.run("my password is hunter2").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    // The guardrail looks at the whole history, and it is not refused again.
    runner.run("Hi").await.unwrap();
    assert_eq!(shown(&model), [["user: Hi"]]);
    let mark = r#"0 A refused {"on":"input","guardrail":"no_secrets"}"#;
    assert_eq!(
        record(&session).await,
        [mark, "0 - user: Hi", "1 A assistant: Hello!"]
    );
    let exported = serde_json::to_string(&session.export().await.unwrap()).unwrap();
    assert!(!exported.contains("hunter2"));
}

#[tokio::test]
async fn a_refused_message_is_kept_apart_for_review_if_asked_for() {
    let model = ScriptedModel::new().say("Hello!");
    let agent: Agent = Agent::new("A").input_guardrail(refuses("no_secrets", "hunter2"));
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&agent)
        .model(model.clone())
        .session(&session)
        .keep_refused(true);
    runner.run("my password is hunter2").await.unwrap_err();
    runner.run("Hi").await.unwrap();
    assert_eq!(shown(&model), [["user: Hi"]]);
    assert_eq!(
        record(&session).await[0],
        r#"0 A refused {"on":"input","guardrail":"no_secrets","items":[{"content":"my password is hunter2","role":"user"}]}"#
    );
}

#[tokio::test]
async fn a_refused_answer_is_neither_shown_nor_stored() {
    let model = ScriptedModel::new()
        .say("The codename is Falcon.")
        .say("Hello!");
    let secret = OutputGuardrail::new("codename", |_ctx, _agent, output| {
        OutputVerdict::trip_if(output.text().contains("Falcon"), Value::Null)
    });
    let agent: Agent = Agent::new("A").output_guardrail(secret);
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    let error = runner.run("What is the codename?").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputGuardrail);
    runner.run("Hi").await.unwrap();
    assert_eq!(shown(&model)[1], ["user: Hi"]);
    let exported = serde_json::to_string(&session.export().await.unwrap()).unwrap();
    assert!(!exported.contains("Falcon"));
    assert!(exported.contains(r#"{"on":"output","guardrail":"codename"}"#));
}

#[tokio::test]
async fn a_message_that_failed_is_sent_once_when_it_is_tried_again() {
    let model = ScriptedModel::new()
        .fail("no route")
        .fail("no route")
        .say("Hello!");
    let agent: Agent = Agent::new("A");
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    runner.run("Hi").await.unwrap_err();
    runner.run("Hi").await.unwrap_err();
    runner.run("Hi").await.unwrap();
    assert_eq!(shown(&model), [["user: Hi"]; 3]);
    assert_eq!(
        described(&session.items()),
        ["user: Hi", "assistant: Hello!"]
    );
}

#[tokio::test]
async fn a_run_that_fails_after_a_handoff_leaves_the_conversation_with_the_new_agent() {
    let model = transfer().fail("no route").say("Which bill?");
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(&billing);
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&triage).model(model.clone()).session(&session);
    let error = runner.run("My bill").await.unwrap_err();
    assert_eq!(session.agent().await.unwrap().as_deref(), Some("Billing"));
    // The run can be resumed, also after it was stored, and everything is there once.
    let run = stored(&error.into_run().unwrap());
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.last_agent().name(), "Billing");
    assert_eq!(
        record(&session).await,
        [
            "0 - user: My bill",
            "1 Triage call transfer_to_billing",
            "1 Triage output of call_1: {\"assistant\": \"Billing\"}",
            "2 Billing assistant: Which bill?",
        ]
    );
}

#[tokio::test]
async fn what_tools_did_in_a_turn_that_failed_is_kept() {
    let model = ScriptedModel::new()
        .calls([("pay", "{}"), ("broken", "{}")])
        .say("It was paid.");
    let is_down = Arc::new(AtomicBool::new(true));
    let down = is_down.clone();
    let broken = tool("broken").fail_run().run(move |_ctx, (): ()| {
        if down.load(Ordering::SeqCst) {
            Err("down")
        } else {
            Ok("up")
        }
    });
    let agent: Agent = Agent::new("A")
        .tool(tool("pay").run(|_ctx, (): ()| "paid"))
        .tool(broken);
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    let error = runner.run("Pay").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tool);
    assert_eq!(
        described(&session.items()),
        ["user: Pay", "call pay", "output of call_1: paid"]
    );
    is_down.store(false, Ordering::SeqCst);
    runner
        .resume(stored(&error.into_run().unwrap()))
        .await
        .unwrap();
    assert_eq!(
        described(&session.items()),
        [
            "user: Pay",
            "call pay",
            "output of call_1: paid",
            "call broken",
            "output of call_2: up",
            "assistant: It was paid.",
        ]
    );
}

#[tokio::test]
async fn the_guardrails_of_the_first_agent_guard_every_message() {
    let model = transfer().say("Which bill?");
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage")
        .handoff(&billing)
        .input_guardrail(refuses("no_secrets", "hunter2"));
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&triage).model(model.clone()).session(&session);
    runner.run("My bill").await.unwrap();
    let error = runner.run("my password is hunter2").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn a_conversation_returns_to_the_first_agent_where_the_policy_says_so() {
    async fn agents_of(triage: &Agent, runner_policy: ActiveAgent) -> Vec<String> {
        let model = transfer().say("Which bill?").say("Hello.");
        let session = Conversations::in_memory().get("c");
        let runner = Runner::new(triage)
            .model(model)
            .session(&session)
            .active_agent(runner_policy);
        let mut agents = Vec::new();
        for words in ["My bill", "Hi"] {
            let result: RunResult = runner.run(words).await.unwrap();
            agents.push(result.last_agent().name().to_owned());
        }
        agents
    }
    let plain: Agent = Agent::new("Triage").handoff(Agent::new("Billing"));
    assert_eq!(
        agents_of(&plain, ActiveAgent::Stay).await,
        ["Billing", "Billing"]
    );
    let returned = agents_of(&plain, ActiveAgent::ReturnToStart).await;
    assert_eq!(returned, ["Billing", "Triage"]);
    let returning = Agent::new("Billing").active_agent(ActiveAgent::ReturnToStart);
    let triage: Agent = Agent::new("Triage").handoff(&returning);
    assert_eq!(
        agents_of(&triage, ActiveAgent::Stay).await,
        ["Billing", "Triage"]
    );
}

#[tokio::test]
async fn an_agent_or_a_team_that_does_not_fit_is_refused_with_ways_out() {
    let session = Conversations::in_memory().get("c");
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(&billing);
    let model = transfer().say("Which bill?");
    let runner = Runner::new(&triage).model(model).session(&session);
    runner.run("My bill").await.unwrap();

    // The agent was renamed.
    let invoices: Agent = Agent::new("Invoices");
    let changed = Agent::new("Triage").handoff(&invoices);
    let model = ScriptedModel::new()
        .say("Hello.")
        .say("Hello.")
        .say("Hello.");
    let runner = Runner::new(&changed).model(model.clone()).session(&session);
    let error = runner.run("Hi").await.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::UnknownAgent));
    assert!(
        error.to_string().contains("leads to: Triage, Invoices"),
        "{error}"
    );
    let renamed = runner.clone().stored_agent("Billing", "Invoices");
    let result = renamed.run("Hi").await.unwrap();
    assert_eq!(result.last_agent().name(), "Invoices");

    // Another team.
    let other: Agent = Agent::new("Concierge");
    let runner = Runner::new(&other).model(model.clone()).session(&session);
    let error = runner.run("Hi").await.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::OtherTeam));
    assert_eq!(
        error.to_string(),
        "agent \"Concierge\": the session cannot be used; nothing was run: the conversation \"c\" is \
         with the team of Invoices, Triage, and this one is of Concierge. Use a conversation of \
         another name or a copy of it; or go on with it by Runner::take_over_conversations"
    );
    let result = runner
        .take_over_conversations(true)
        .run("Hi")
        .await
        .unwrap();
    assert_eq!(result.last_agent().name(), "Concierge");

    // Teams with names are told apart by them.
    let named = Runner::new(&other)
        .model(model)
        .session(&session)
        .team_name("Hotel");
    named.run("Hi").await.unwrap();
    let error = named.team_name("Bank").run("Hi").await.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::OtherTeam));
}

#[tokio::test]
async fn with_the_policy_of_the_reference_a_session_is_a_list_of_items() {
    let model = transfer()
        .say("Which bill?")
        .call("transfer_to_billing", "{}")
        .say("Ok.");
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(handoff(&billing).filter(filters::redact_pii()));
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&triage)
        .model(model.clone())
        .session(&session)
        .history(HistoryPolicy::Reference);
    runner.run("My card is 4111 1111 1111 1111").await.unwrap();
    runner.run("The one of May").await.unwrap();
    let requests = shown(&model);
    assert_eq!(requests[2][0], "user: My card is 4111 1111 1111 1111");
    assert_eq!(requests[2].len(), 5);
    assert_eq!(session.agent().await.unwrap(), None);
}

/// A session with the four methods only.
#[derive(Debug, Clone, Default)]
struct PlainSession(MemorySession);

impl Session for PlainSession {
    async fn load(
        &self,
        limit: Option<usize>,
    ) -> Result<Items, switchboard_core::callback::BoxError> {
        self.0.load(limit).await
    }

    async fn append(&self, items: &[Item]) -> Result<(), switchboard_core::callback::BoxError> {
        self.0.append(items).await
    }

    async fn pop(&self) -> Result<Option<Item>, switchboard_core::callback::BoxError> {
        self.0.pop().await
    }

    async fn clear(&self) -> Result<(), switchboard_core::callback::BoxError> {
        self.0.clear().await
    }
}

#[tokio::test]
async fn a_session_of_the_users_own_works_as_in_the_reference_with_a_warning() {
    let warnings = crate::filters::invalid_output::Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let model = transfer().say("Which bill?").say("Hello.");
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(handoff(&billing).filter(filters::redact_pii()));
    let session = PlainSession::default();
    let runner = Runner::new(&triage).model(model.clone()).session(&session);
    runner.run("My card is 4111 1111 1111 1111").await.unwrap();
    runner.run("Hi").await.unwrap();
    assert_eq!(shown(&model)[2][0], "user: My card is 4111 1111 1111 1111");
    let warnings = warnings.0.lock().unwrap().clone();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("the session stores items only"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_turn_is_one_commit() {
    let model = transfer().say("Which bill?");
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(&billing);
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&triage).model(model).session(&session);
    runner.run("My bill").await.unwrap();
    let entries = session.entries(0..100).await.unwrap();
    let commits: Vec<u32> = entries.iter().map(|entry| entry.commit).collect();
    assert_eq!(commits, [1, 1, 1, 1, 2]);
    let head = session.head().await.unwrap().unwrap();
    let details: Value = serde_json::from_str(head.details.as_deref().unwrap()).unwrap();
    assert_eq!(
        details,
        json!({"team": {"start": "Triage", "agents": ["Billing", "Triage"]}})
    );
}

#[tokio::test]
async fn teams_that_only_begin_alike_are_other_teams() {
    let session = Conversations::in_memory().get("c");
    let agent = |other: &str| Agent::new("Triage").handoff(Agent::new(other));
    let model = ScriptedModel::new().say("Hello.").say("Hello.");
    let run = async |triage: Agent| {
        let runner = Runner::new(&triage).model(model.clone()).session(&session);
        runner.run("Hi").await
    };
    run(agent("Billing")).await.unwrap();
    let error = run(agent("Rooms")).await.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::OtherTeam));
    // A copy belongs to whoever goes on with it.
    let copy = session.fork("copy", None).await.unwrap();
    let rooms = agent("Rooms");
    let runner = Runner::new(&rooms).model(model.clone()).session(&copy);
    runner.run("Hi").await.unwrap();
}

#[tokio::test]
async fn an_agent_that_code_picked_and_cannot_be_found_again_does_not_keep_the_conversation() {
    use switchboard_core::Handoff;
    let hidden: Agent = Agent::new("Hidden");
    let picked = hidden.clone();
    let handoff = Handoff::custom("Hidden", move |_ctx, _arguments| {
        let agent = picked.clone();
        async move { Ok::<_, String>(agent) }
    });
    let triage = Agent::new("Triage").handoff(handoff);
    let model = ScriptedModel::new()
        .call("transfer_to_hidden", "{}")
        .say("Boo.")
        .say("Hello.");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&triage).model(model).session(&session);
    assert_eq!(
        runner.run("Hi").await.unwrap().last_agent().name(),
        "Hidden"
    );
    assert_eq!(
        runner.run("Hi").await.unwrap().last_agent().name(),
        "Triage"
    );
}

#[tokio::test]
async fn what_a_guardrail_refused_of_an_answer_is_what_is_kept_for_review() {
    let secret = OutputGuardrail::new("codename", |_ctx, _agent, output| {
        OutputVerdict::trip_if(output.text().contains("Falcon"), Value::Null)
    });
    for judges_parts in [false, true] {
        let secret = if judges_parts {
            secret.clone().judging_parts()
        } else {
            secret.clone()
        };
        let agent: Agent = Agent::new("A").output_guardrail(secret);
        let session = Conversations::in_memory().get("c");
        let runner = Runner::new(&agent)
            .model(ScriptedModel::new().say("It is Falcon."))
            .session(&session)
            .keep_refused(true);
        let error = runner.stream("What?").finish().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutputGuardrail);
        let kept = record(&session).await;
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert!(
            kept[0].contains("It is Falcon.") && !kept[0].contains("What?"),
            "{kept:?}"
        );
    }
}

#[tokio::test]
async fn calls_of_an_agent_tool_that_share_a_session_wait_for_each_other() {
    let expert_model = ScriptedModel::new()
        .delay(std::time::Duration::from_millis(5))
        .say("One.")
        .delay(std::time::Duration::from_millis(5))
        .say("Two.");
    let expert: Agent = Agent::new("Expert").model(expert_model);
    let session = MemorySession::new();
    let model = ScriptedModel::new()
        .calls([("ask", r#"{"input":"a"}"#), ("ask", r#"{"input":"b"}"#)])
        .say("Done.");
    let ask = expert.as_tool("ask").session(&session);
    let agent: Agent = Agent::new("A").tool(ask).model(model.clone());
    Runner::new(&agent).run("Hi").await.unwrap();
    let answers = shown(&model).pop().unwrap();
    assert!(
        answers.iter().any(|item| item.ends_with(": Two.")),
        "{answers:?}"
    );
    assert_eq!(session.items().len(), 4);
}
