//! A run that failed and is resumed does not repeat what was done.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::{
    GuardrailKind, HandoffGuardrail, HandoffRequest, HandoffVerdict, InputGuardrail, InputVerdict,
    OutputGuardrail, ToolGuardrail, ToolVerdict,
};
use switchboard_core::handoff::HandoffInputData;
use switchboard_core::hooks::{HookResult, RunHooks, Transfer};
use switchboard_core::run::HandoffPolicy;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, ErrorKind, FinalOutput, Handoff, Item, RunContext, Runner, Tool, ToolContext, handoff,
    tool,
};

use crate::{described, stored};

/// Fails the first time.
#[derive(Clone, Default)]
struct Once(Arc<AtomicUsize>);

impl Once {
    fn fail(&self) -> Result<(), &'static str> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => Err("not yet"),
            _ => Ok(()),
        }
    }
}

/// Hooks that log the notifications they get.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl RunHooks for Log {
    async fn on_agent_end(
        &self,
        _ctx: &RunContext,
        agent: &Agent,
        _output: &FinalOutput,
    ) -> HookResult {
        self.add(format!("end of {}", agent.name()));
        Ok(())
    }

    async fn on_tool_start(
        &self,
        _ctx: &RunContext,
        _agent: &Agent,
        tool: &Tool,
        _call: &ToolContext,
    ) -> HookResult {
        self.add(format!("start of {}", tool.name()));
        Ok(())
    }

    async fn on_handoff(&self, _ctx: &RunContext, transfer: &Transfer<'_>) -> HookResult {
        self.add(format!("to {}", transfer.to.name()));
        Ok(())
    }
}

/// Fails, is stored, and is resumed to its end.
async fn resumed(runner: &Runner, kind: ErrorKind) -> switchboard_core::RunResult {
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    let run = stored(error.run().unwrap());
    runner.resume(run).await.unwrap()
}

/// A filter that fails the first time.
fn flaky_filter() -> impl Fn(HandoffInputData) -> Result<HandoffInputData, &'static str> {
    let once = Once::default();
    move |data| once.fail().map(|()| data)
}

#[tokio::test]
async fn code_that_picked_an_agent_is_not_asked_again() {
    let (day, night): (Agent, Agent) = (Agent::new("Day"), Agent::new("Night"));
    for is_known in [true, false] {
        let (by_day, by_night) = (day.clone(), night.clone());
        let picks = Arc::new(AtomicUsize::new(0));
        let counted = picks.clone();
        let pick = move |_ctx, _args| match counted.fetch_add(1, Ordering::SeqCst) {
            0 => by_day.clone(),
            _ => by_night.clone(),
        };
        let mut edge = Handoff::custom("Shift", pick).filter(flaky_filter());
        if is_known {
            edge = edge.candidate(&day).candidate(&night);
        }
        let log = Log::default();
        let desk = Agent::new("Desk").handoff(edge);
        let model = ScriptedModel::new()
            .call("transfer_to_shift", "{}")
            .say("ok");
        let runner = Runner::new(&desk).model(model).hooks(log.clone());
        let error = runner.run("x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UserCode);
        let outcome = runner.resume(stored(error.run().unwrap())).await;
        if is_known {
            assert_eq!(outcome.unwrap().last_agent().name(), "Day");
            assert_eq!(picks.load(Ordering::SeqCst), 1);
            assert_eq!(log.all(), ["to Day", "end of Day"]);
        } else {
            let error = outcome.unwrap_err();
            assert!(error.is_configuration(), "{error}");
            assert!(error.to_string().contains("candidate"), "{error}");
            assert_eq!(log.all(), ["to Day"]);
        }
    }
}

/// Hooks that fail at the first handoff.
#[derive(Default)]
struct FailsAtHandoff(Once);

impl RunHooks for FailsAtHandoff {
    async fn on_handoff(&self, _ctx: &RunContext, _transfer: &Transfer<'_>) -> HookResult {
        Ok(self.0.fail()?)
    }
}

#[tokio::test]
async fn a_handoff_that_its_guardrails_allowed_passes_on_what_they_saw_when_it_is_resumed() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (called, filtered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (calls, passes, shown) = (called.clone(), filtered.clone(), seen.clone());
    let once = HandoffGuardrail::new("once", move |check: HandoffRequest| {
        let mut shown = shown.lock().unwrap();
        shown.push(described(&check.data.history_items()));
        HandoffVerdict::refuse_if(shown.len() > 1, "too late")
    });
    let boss: Agent = Agent::new("Boss");
    let edge = handoff(&boss)
        .on_handoff(move |_ctx| {
            calls.fetch_add(1, Ordering::SeqCst);
        })
        .filter_fn(move |data: HandoffInputData| {
            let pass = passes.fetch_add(1, Ordering::SeqCst) + 1;
            data.with_input_history(vec![Item::user(format!("pass {pass}"))])
                .with_input_items([])
        })
        .guardrail(once);
    let clerk = Agent::new("Clerk").handoff(edge);
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .say("ok");
    let runner = Runner::new(&clerk)
        .model(model.clone())
        .hooks(FailsAtHandoff::default());
    let result = resumed(&runner, ErrorKind::UserCode).await;
    assert_eq!(result.last_agent().name(), "Boss");
    assert_eq!(*seen.lock().unwrap(), [["user: pass 1"]]);
    assert_eq!(described(&model.requests()[1].input), ["user: pass 1"]);
    let ran = |count: &AtomicUsize| count.load(Ordering::SeqCst);
    assert_eq!((ran(&called), ran(&filtered)), (1, 1));
    assert_eq!(result.guardrail_results(GuardrailKind::Handoff).len(), 1);
}

#[tokio::test]
async fn guardrails_that_have_not_seen_a_handoff_are_asked_when_it_is_resumed() {
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(&boss);
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .say("I keep it.");
    let runner = Runner::new(&clerk)
        .model(model.clone())
        .hooks(FailsAtHandoff::default());
    let error = runner.run("x").await.unwrap_err();
    let never = HandoffGuardrail::new("never", |_check: HandoffRequest| {
        HandoffVerdict::refuse("Not to the boss.")
    });
    let guarded = runner.handoff_guardrail(never);
    let result = guarded.resume(stored(error.run().unwrap())).await.unwrap();
    assert_eq!(result.last_agent().name(), "Clerk");
    assert_eq!(
        described(&model.requests()[1].input)[2..],
        ["output of call_1: Not to the boss."]
    );
}

#[tokio::test]
async fn hooks_are_notified_once_of_the_end_of_an_agent() {
    let once = Once::default();
    let flaky = OutputGuardrail::new("flaky", move |_ctx, _agent, _output| once.fail());
    let agent: Agent = Agent::new("A").output_guardrail(flaky);
    let log = Log::default();
    let runner = Runner::new(&agent)
        .model(ScriptedModel::new().say("ok"))
        .hooks(log.clone());
    resumed(&runner, ErrorKind::UserCode).await;
    assert_eq!(log.all(), ["end of A"]);
}

#[tokio::test]
async fn hooks_are_notified_once_of_the_start_of_a_tool() {
    for calls in [vec![("t", "{}")], vec![("t", "{}"), ("u", "{}")]] {
        let once = Once::default();
        let flaky = ToolGuardrail::on_call("flaky", move |_ctx: ToolContext| {
            once.fail().map(|()| ToolVerdict::Allow)
        });
        let agent: Agent = Agent::new("A")
            .tool(tool("t").guardrail(flaky).run(|_ctx, (): ()| "1"))
            .tool(tool("u").run(|_ctx, (): ()| "2"));
        let log = Log::default();
        let mut expected: Vec<String> = calls
            .iter()
            .map(|(tool, _)| format!("start of {tool}"))
            .collect();
        expected.push("end of A".to_owned());
        let runner = Runner::new(&agent)
            .model(ScriptedModel::new().calls(calls).say("ok"))
            .hooks(log.clone());
        resumed(&runner, ErrorKind::UserCode).await;
        assert_eq!(log.all(), expected);
    }
}

#[tokio::test]
async fn guardrails_beside_a_model_that_fails_are_asked_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let beside = InputGuardrail::beside_model("beside", move |_ctx, _agent, _input| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let agent: Agent = Agent::new("A").input_guardrail(beside);
    let model = ScriptedModel::new().fail("overloaded").say("ok");
    let runner = Runner::new(&agent).model(model);
    let result = resumed(&runner, ErrorKind::Model).await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(result.guardrail_results(GuardrailKind::Input).len(), 1);
}

#[tokio::test]
async fn a_guardrail_beside_the_model_that_tripped_and_then_passes_is_listed_as_it_is() {
    let once = Once::default();
    let trips = InputGuardrail::beside_model("trips", move |_ctx, _agent, _input| {
        InputVerdict::trip_if(once.fail().is_err(), Value::Null)
    });
    let before = InputGuardrail::new("before", |_ctx, _agent, _input| ());
    let agent: Agent = Agent::new("A")
        .input_guardrail(before)
        .input_guardrail(trips);
    let runner = Runner::new(&agent).model(ScriptedModel::new().say("ok").say("ok"));
    let result = resumed(&runner, ErrorKind::InputGuardrail).await;
    let found = result.guardrail_results(GuardrailKind::Input).iter();
    let found: Vec<_> = found
        .map(|found| (&*found.guardrail, found.tripped()))
        .collect();
    assert_eq!(found, [("before", false), ("trips", false)]);
}

#[tokio::test]
async fn a_handoff_that_fails_before_its_callback_is_checked_again_and_listed_once() {
    let once = Once::default();
    let boss: Agent = Agent::new("Boss");
    let allow = HandoffGuardrail::new("allow", |_check: HandoffRequest| ());
    let edge = handoff(&boss)
        .on_handoff(move |_ctx| Ok::<(), BoxError>(once.fail()?))
        .guardrail(allow);
    let clerk = Agent::new("Clerk").handoff(edge);
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .say("ok");
    let runner = Runner::new(&clerk)
        .handoff_policy(HandoffPolicy::reference())
        .model(model);
    let result = resumed(&runner, ErrorKind::UserCode).await;
    assert_eq!(result.guardrail_results(GuardrailKind::Handoff).len(), 1);
}
