//! Guardrails that put something else in place of what they look at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, BoxError, ErrorKind, FinalOutput, HandoffGuardrail, HandoffInputData, HandoffRequest,
    Input, InputGuardrail, InputVerdict, Item, MemorySession, Model, ModelRequest, ModelResponse,
    OutputGuardrail, OutputVerdict, Runner, ToolContext, ToolGuardrail, ToolOutput,
    ToolUseBehavior, ToolVerdict, handoff, tool,
};

use crate::told;

/// Puts `to` in place of `from`, later the more it yields.
fn swap(from: &'static str, to: &'static str, yields: usize) -> InputGuardrail {
    InputGuardrail::replacing(from, move |_ctx, _agent, input: Input| async move {
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        input.last_words().map(|words| words.replace(from, to))
    })
}

#[tokio::test]
async fn guardrails_replace_in_their_order_each_what_the_last_one_made() {
    let agent: Agent = Agent::new("A")
        .input_guardrail(InputGuardrail::new(
            "sees_the_last",
            |_ctx, _agent, input| input.last_words().as_deref() != Some("three"),
        ))
        .input_guardrail(swap("one", "two", 5))
        .input_guardrail(swap("two", "three", 0));
    let model = ScriptedModel::new().say("ok").say("ok");
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    let result = runner.run("one").await.unwrap();
    assert_eq!(told(&model.requests()[0].input), ["user: three"]);
    assert_eq!(told(&session.items()), ["user: three", "assistant: ok"]);
    let found = result.input_guardrail_results();
    let replaced: Vec<_> = found.iter().map(|r| r.replaced_by.clone()).collect();
    assert_eq!(replaced, [Some("two".into()), Some("three".into()), None]);
    // What the session has is not what the user says now.
    runner.run("two").await.unwrap();
    assert_eq!(
        told(&model.requests()[1].input),
        ["user: three", "assistant: ok", "user: three"]
    );
    assert_eq!(session.items().len(), 4);
}

#[tokio::test]
async fn other_parts_of_a_message_stay_when_its_words_are_replaced() {
    let agent: Agent = Agent::new("A").input_guardrail(swap("fool", "friend", 0));
    let said = r#"{"role":"user","content":[{"type":"input_image","image_url":"u"},
        {"type":"input_text","text":"fool","x":1},{"type":"input_text","text":"!"}]}"#;
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&agent).model(model.clone());
    runner.run(Item::from_json(said).unwrap()).await.unwrap();
    assert_eq!(
        model.requests()[0].input.iter().next().unwrap().as_json(),
        r#"{"role":"user","content":[{"type":"input_image","image_url":"u"},{"type":"input_text","text":"friend!","x":1}]}"#
    );
}

#[tokio::test]
async fn a_session_gets_the_replaced_words_when_another_guardrail_trips_and_none_when_one_fails() {
    let session = MemorySession::new();
    let tripping: Agent = Agent::new("A")
        .input_guardrail(InputGuardrail::new("never", |_ctx, _agent, _input| true))
        .input_guardrail(swap("4111", "[CARD]", 0));
    let runner = Runner::new(&tripping).session(&session);
    let error = runner.run("pay with 4111").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert_eq!(told(&session.items()), ["user: pay with [CARD]"]);

    let session = MemorySession::new();
    let is_up = Arc::new(AtomicBool::new(false));
    let up = is_up.clone();
    let failing: Agent = Agent::new("A")
        .input_guardrail(swap("4111", "[CARD]", 0))
        .input_guardrail(InputGuardrail::replacing(
            "down",
            move |_ctx, _agent, _input| {
                if up.load(Ordering::SeqCst) {
                    Ok(InputVerdict::Allow)
                } else {
                    Err("the service is down")
                }
            },
        ));
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&failing).model(model).session(&session);
    let error = runner.run("pay with 4111").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    assert!(
        session.items().is_empty(),
        "unchecked words must not be kept"
    );
    is_up.store(true, Ordering::SeqCst);
    runner.resume(error.into_run().unwrap()).await.unwrap();
    assert_eq!(
        told(&session.items()),
        ["user: pay with [CARD]", "assistant: ok"]
    );
}

/// Fails the first time it is asked.
struct FailsOnce(AtomicUsize);

impl Model for FailsOnce {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => Err("no route to host".into()),
            _ => Ok(ModelResponse::new([Item::output_message("m", "ok")])),
        }
    }
}

#[tokio::test]
async fn input_that_passed_is_not_checked_again_when_the_model_fails() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let longer = InputGuardrail::replacing("longer", move |_ctx, _agent, input: Input| {
        counted.fetch_add(1, Ordering::SeqCst);
        input.last_words().map(|words| format!("{words}!"))
    });
    let agent: Agent = Agent::new("A").input_guardrail(longer);
    let runner = Runner::new(&agent).model(FailsOnce(AtomicUsize::new(0)));
    let error = runner.run("x").await.unwrap_err();
    let run = error.into_run().unwrap();
    let run = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
    let result = runner.resume(run).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(told(&result.to_input_list())[0], "user: x!");
    assert_eq!(result.input_guardrail_results().len(), 1);
}

/// Puts `to` in place of `from` in the output.
fn mask(from: &'static str, to: &'static str) -> OutputGuardrail {
    OutputGuardrail::replacing(from, move |_ctx, _agent, output: FinalOutput| {
        if output.text().contains(from) {
            OutputVerdict::replace(output.text().replace(from, to))
        } else {
            OutputVerdict::Allow
        }
    })
}

#[tokio::test]
async fn outputs_are_replaced_in_order_and_then_checked() {
    let agent: Agent = Agent::new("A")
        .output_guardrail(OutputGuardrail::new(
            "checked",
            |_ctx, _agent, output: FinalOutput| output.text().contains("secret"),
        ))
        .output_guardrail(mask("secret", "hidden"))
        .output_guardrail(mask("hidden", "gone"));
    let session = MemorySession::new();
    let model = ScriptedModel::new().say("the secret");
    let runner = Runner::new(&agent).model(model).session(&session);
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.final_text(), "the gone");
    assert_eq!(told(&session.items()), ["user: x", "assistant: the gone"]);
    assert!(!format!("{:?}", result.new_items()).contains("secret"));
}

#[tokio::test]
async fn a_replaced_output_is_of_the_agents_type_or_an_error() {
    let run = |instead: &'static str| async move {
        let agent: Agent =
            Agent::new("A")
                .output::<Vec<u32>>()
                .output_guardrail(OutputGuardrail::replacing(
                    "other",
                    move |_ctx, _agent, _output| OutputVerdict::replace(instead),
                ));
        let model = ScriptedModel::new().say(r#"{"response":[1,2]}"#);
        Runner::new(&agent).model(model).run("x").await
    };
    let result = run("[3]").await.unwrap();
    assert_eq!(result.final_output_as::<Vec<u32>>().unwrap(), [3]);
    assert_eq!(
        told(&result.to_input_list())[1],
        r#"assistant: {"response":[3]}"#
    );
    let error = run("nothing").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    assert!(error.to_string().contains("other"), "{error}");
}

#[tokio::test]
async fn words_in_place_of_a_typed_output_are_its_value_or_its_json() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Answer {
        Yes,
        No,
    }
    let always = |instead: &'static str| {
        OutputGuardrail::replacing("other", move |_ctx, _agent, _output| {
            OutputVerdict::replace(instead)
        })
    };
    let text: Agent = Agent::new("A").output::<String>();
    let choice: Agent = Agent::new("A").output::<Answer>();
    let number: Agent = Agent::new("A").output::<u32>();
    for (agent, said, instead, expected) in [
        (&text, r#""yes""#, "no", r#"{"response":"no"}"#),
        (&text, r#""yes""#, "[3]", r#"{"response":"[3]"}"#),
        (&choice, r#""yes""#, "no", r#"{"response":"no"}"#),
        (&choice, r#""yes""#, r#""no""#, r#"{"response":"no"}"#),
        (&number, "1", "3", r#"{"response":3}"#),
    ] {
        let agent = agent.clone().output_guardrail(always(instead));
        let model = ScriptedModel::new().say(&format!(r#"{{"response":{said}}}"#));
        let result = Runner::new(&agent).model(model).run("x").await.unwrap();
        assert_eq!(
            told(&result.to_input_list())[1],
            format!("assistant: {expected}")
        );
    }
}

#[tokio::test]
async fn the_reasoning_behind_a_replaced_output_does_not_stay() {
    let reasoning = |id: &str, text: &str| {
        let json = format!(
            r#"{{"type":"reasoning","id":"{id}","summary":[{{"type":"summary_text","text":"{text}"}}]}}"#
        );
        Item::from_json(json).unwrap()
    };
    let search =
        Item::from_json(r#"{"type":"web_search_call","id":"w","status":"completed"}"#).unwrap();
    let agent: Agent = Agent::new("A").output_guardrail(mask("secret", "hidden"));
    let session = MemorySession::new();
    let model = ScriptedModel::new().reply([
        reasoning("r1", "look it up"),
        search,
        reasoning("r2", "tell the secret"),
        Item::output_message("m", "the secret"),
    ]);
    let runner = Runner::new(&agent).model(model).session(&session);
    let result = runner.run("x").await.unwrap();
    let kept = |items: &[String]| {
        assert!(
            items.iter().any(|item| item.contains("look it up")),
            "{items:?}"
        );
        assert!(
            !items.iter().any(|item| item.contains("secret")),
            "{items:?}"
        );
        assert_eq!(items.len(), 4);
    };
    kept(&told(&session.items()));
    kept(&told(&result.to_input_list()));
}

#[tokio::test]
async fn a_replaced_output_of_a_tool_does_not_stay_in_the_record() {
    let agent: Agent = Agent::new("A")
        .tool(tool("read").run(|_ctx, (): ()| "the secret"))
        .tool(tool("time").run(|_ctx, (): ()| "noon"))
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        .output_guardrail(mask("secret", "hidden"));
    let session = MemorySession::new();
    let model = ScriptedModel::new().calls([("read", "{}"), ("time", "{}")]);
    let runner = Runner::new(&agent).model(model).session(&session);
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.final_text(), "the hidden");
    assert_eq!(
        told(&session.items()),
        [
            "user: x",
            "call read",
            "call time",
            "output of call_1: the hidden",
            "output of call_2: noon"
        ]
    );

    // Where it is not known which tool said it, nothing they said stays.
    let decide = ToolUseBehavior::decide(|_ctx, _results| Some(FinalOutput::from("all secret")));
    let agent = agent.tool_use_behavior(decide);
    let model = ScriptedModel::new().call("read", "{}");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    assert_eq!(result.final_text(), "all hidden");
    assert_eq!(
        told(&result.to_input_list())[2],
        "output of call_1: Output withheld by an output guardrail."
    );
}

#[tokio::test]
async fn guardrails_of_the_agent_and_of_the_run_see_every_tool() {
    let audit = |name: &'static str| {
        ToolGuardrail::on_output(name, move |ctx: ToolContext, output: ToolOutput| {
            ToolVerdict::replace(format!("{} {name}({})", output.text(), ctx.tool()))
        })
    };
    let no_b = ToolGuardrail::on_call("no_b", |ctx: ToolContext| {
        (ctx.tool() == "b").then(|| ToolOutput::from("Not b."))
    });
    let agent: Agent = Agent::new("A")
        .tool(tool("a").guardrail(audit("own")).run(|_ctx, (): ()| "1"))
        .tool(tool("b").run(|_ctx, (): ()| "2"))
        .tool_guardrail(audit("agent"));
    let model = ScriptedModel::new()
        .calls([("a", "{}"), ("b", "{}")])
        .say("ok");
    let runner = Runner::new(&agent)
        .model(model.clone())
        .tool_guardrail(no_b)
        .tool_guardrail(audit("run"));
    runner.run("x").await.unwrap();
    assert_eq!(
        told(&model.requests()[1].input)[3..],
        [
            "output of call_1: 1 own(a) agent(a) run(a)",
            "output of call_2: Not b."
        ]
    );
}

#[tokio::test]
async fn a_tool_whose_output_did_not_pass_does_not_run_again() {
    let (ran, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, checked) = (ran.clone(), asked.clone());
    let flaky = ToolGuardrail::on_output("flaky", move |_ctx: ToolContext, _output| match checked
        .fetch_add(1, Ordering::SeqCst)
    {
        0 => Err("the service is down"),
        _ => Ok(ToolVerdict::Allow),
    });
    let slow_ran = ran.clone();
    let agent: Agent = Agent::new("A")
        .tool(tool("charge").guardrail(flaky).run(move |_ctx, (): ()| {
            counted.fetch_add(1, Ordering::SeqCst);
            "charged"
        }))
        .tool(tool("slow").run(move |_ctx, (): ()| {
            let ran = slow_ran.clone();
            async move {
                tokio::task::yield_now().await;
                ran.fetch_add(10, Ordering::SeqCst);
                "done"
            }
        }));
    for script in [
        vec![("charge", "{}")],
        vec![("charge", "{}"), ("slow", "{}")],
    ] {
        let calls = script.len();
        ran.store(0, Ordering::SeqCst);
        asked.store(0, Ordering::SeqCst);
        let model = ScriptedModel::new().calls(script).say("ok");
        let runner = Runner::new(&agent).model(model);
        let error = runner.run("x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UserCode);
        let stored = serde_json::to_string(&error.into_run().unwrap()).unwrap();
        let result = runner.resume(serde_json::from_str(&stored).unwrap()).await;
        let made = told(&result.unwrap().to_input_list());
        assert!(
            made.contains(&"output of call_1: charged".to_owned()),
            "{made:?}"
        );
        let expected = if calls == 1 { 1 } else { 11 };
        assert_eq!(ran.load(Ordering::SeqCst), expected, "each ran once");
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn tools_that_have_not_begun_when_one_fails_wait_for_the_resumed_run() {
    let began = Arc::new(AtomicUsize::new(0));
    let counted = began.clone();
    let trips = ToolGuardrail::on_output("trips", |_ctx: ToolContext, _output| {
        ToolVerdict::trip("no")
    });
    let agent: Agent = Agent::new("A")
        .tool(tool("first").guardrail(trips).run(|_ctx, (): ()| "1"))
        .tool(tool("second").run(move |_ctx, (): ()| {
            counted.fetch_add(1, Ordering::SeqCst);
            "2"
        }));
    let model = ScriptedModel::new().calls([("first", "{}"), ("second", "{}")]);
    let runner = Runner::new(&agent)
        .model(model)
        .tool_concurrency(std::num::NonZeroUsize::MIN);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ToolGuardrail);
    assert_eq!(began.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn what_a_guarded_edge_carries_over_is_what_was_checked() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "read by serde and schemars only")]
    struct Case {
        number: u32,
    }
    struct App {
        filtered: AtomicUsize,
    }
    let billing = Agent::<App>::new("Billing");
    let count = |data: HandoffInputData<App>| {
        data.run_context().filtered.fetch_add(1, Ordering::SeqCst);
        let note = format!("case {}", data.payload().unwrap()["number"]);
        data.with_input_history(vec![Item::user(note)])
    };
    let guardrail = HandoffGuardrail::new("seen", |check: HandoffRequest<App>| {
        assert_eq!(told(&check.data.history_items()), ["user: case 7"]);
    });
    let triage = Agent::<App>::new("Triage").handoff(
        handoff(&billing)
            .payload::<Case>()
            .on_handoff(|_ctx, _case: Case| ())
            .filter_fn(count)
            .guardrail(guardrail),
    );
    let app = Arc::new(App {
        filtered: AtomicUsize::new(0),
    });
    let model = ScriptedModel::new()
        .call("transfer_to_billing", r#"{"number": 7}"#)
        .say("ok");
    let runner = Runner::new(&triage)
        .model(model.clone())
        .context(app.clone());
    runner.run("x").await.unwrap();
    assert_eq!(app.filtered.load(Ordering::SeqCst), 1);
    assert_eq!(told(&model.requests()[1].input)[0], "user: case 7");
}

#[tokio::test]
async fn words_alone_replace_an_input_an_output_and_what_a_tool_is_asked_and_answers() {
    let agent: Agent = Agent::new("A")
        .input_guardrail(InputGuardrail::replacing(
            "input",
            |_ctx, _agent, _input| Some("Hello"),
        ))
        .output_guardrail(OutputGuardrail::replacing(
            "output",
            |_ctx, _agent, output: FinalOutput| Some(format!("{}!", output.text())),
        ))
        .tool_guardrail(ToolGuardrail::<()>::on_call("call", |ctx| {
            (ctx.tool() == "shut").then_some("Shut.")
        }))
        .tool_guardrail(ToolGuardrail::on_output("answer", |_ctx, output| {
            Some(format!("<{}>", output.text()))
        }))
        .tool(tool("shut").run(|_ctx, (): ()| "never"))
        .tool(tool("open").run(|_ctx, (): ()| "1"));
    let model = ScriptedModel::new()
        .call("shut", "{}")
        .call("open", "{}")
        .say("Bye");
    let runner = Runner::new(&agent).model(model.clone());
    assert_eq!(runner.run("x").await.unwrap().final_text(), "Bye!");
    let seen = told(&model.requests()[2].input);
    assert_eq!(seen[0], "user: Hello");
    assert!(seen[2].ends_with(": Shut."), "{seen:?}");
    assert!(seen[4].ends_with(": <1>"), "{seen:?}");
}
