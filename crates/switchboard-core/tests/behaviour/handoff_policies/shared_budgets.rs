//! Budgets that a run shares with the runs inside it: agents used as tools, also inside each other, side by side,
//! and resumed.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_core::approval::Decision;
use switchboard_core::callback::BoxError;
use switchboard_core::model::Usage;
use switchboard_core::run::{
    AtBudget, BranchAnswer, Budget, Budgets, FanOut, HandoffPolicy, Price, RunStatus,
    SeveralHandoffs,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Error, ErrorKind, Item, Model, ModelRequest, ModelResponse, RunConfig, RunResult,
    Runner, handoff, tool,
};

use crate::approvals::{Ran, decide_all};
use crate::stored;
use crate::stored_runs::assert_fits_schema;

/// A model whose answers depend on the agent that asks, and that lets others run before it answers. Each response
/// takes 10 tokens.
#[derive(Clone, Default)]
struct Office(Arc<Mutex<Vec<String>>>);

impl Office {
    /// The number of requests of each agent.
    fn requests(&self) -> BTreeMap<String, usize> {
        let mut requests = BTreeMap::new();
        for agent in &*self.0.lock().unwrap() {
            *requests.entry(agent.clone()).or_default() += 1;
        }
        requests
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Model for Office {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let agent = request.agent.clone().unwrap();
        let number = {
            let mut asked = self.0.lock().unwrap();
            asked.push(agent.to_string());
            asked.len()
        };
        tokio::task::yield_now().await;
        let outputs = request.input.iter().filter(|item| item.output().is_some());
        let call = |at: usize, tool: &str, arguments: &str| {
            Item::function_call(&format!("c{number}_{at}"), tool, arguments)
        };
        let question = r#"{"input":"?"}"#;
        let items = match (&*agent, outputs.count()) {
            ("Desk", 0) => vec![
                call(1, "ask_expert", question),
                call(2, "ask_expert", question),
            ],
            ("Triage", 0) => vec![
                call(1, "transfer_to_desk", "{}"),
                call(2, "transfer_to_expert", "{}"),
            ],
            ("Expert", 0) => vec![call(1, "look", "{}")],
            ("Expert", 1) => vec![call(1, "ask_clerk", question)],
            ("Clerk", 0) => vec![call(1, "look", "{}")],
            (name, _) => vec![Item::output_message("m", &format!("{name} is done."))],
        };
        let usage = Usage {
            requests: 1,
            input_tokens: 7,
            output_tokens: 3,
            ..Usage::default()
        };
        Ok(ModelResponse::new(items).usage(usage))
    }

    fn name(&self) -> &str {
        "office"
    }
}

/// A clerk, who looks twice; an expert, who looks and asks the clerk; and a desk, which asks the expert twice at
/// once: 1 + 2 * (3 + 2) + 1 requests.
fn desk(ran: &Ran, needs_approval: bool) -> Agent {
    Agent::new("Desk").tool(
        expert(ran, needs_approval)
            .as_tool("ask_expert")
            .max_turns(50),
    )
}

fn expert(ran: &Ran, needs_approval: bool) -> Agent {
    let look = || {
        let ran = ran.clone();
        let builder = tool::<()>("look");
        let builder = if needs_approval {
            builder.needs_approval()
        } else {
            builder
        };
        builder.run(move |ctx, (): ()| {
            ran.add(ctx.call_id());
            "found"
        })
    };
    let clerk: Agent = Agent::new("Clerk").tool(look());
    Agent::new("Expert")
        .tool(look())
        .tool(clerk.as_tool("ask_clerk"))
}

/// All requests of a run without budgets.
const ALL: usize = 12;

fn run_turns(turns: u32) -> Budgets {
    Budgets::new().run(Budget::new().turns(turns))
}

fn kind(outcome: &Result<RunResult, Error>) -> Result<String, ErrorKind> {
    match outcome {
        Ok(result) => Ok(result.final_text().into_owned()),
        Err(error) => Err(error.kind()),
    }
}

#[tokio::test]
async fn agents_inside_each_other_and_side_by_side_never_exceed_the_turns_of_the_run() {
    for turns in 0..=ALL + 1 {
        let model = Office::default();
        let runner = Runner::new(&desk(&Ran::default(), false))
            .model(model.clone())
            .budgets(run_turns(turns as u32));

        let outcome = runner.run("Hi").await;

        assert!(model.count() <= turns, "{} of {turns}", model.count());
        if turns >= ALL {
            assert_eq!(kind(&outcome), Ok("Desk is done.".to_owned()));
            assert_eq!(model.count(), ALL);
        } else {
            // All turns are used: what fails inside is told to the desk, which has none left either.
            assert_eq!(kind(&outcome), Err(ErrorKind::Budget));
            assert_eq!(model.count(), turns);
        }
    }
}

#[tokio::test]
async fn tokens_and_costs_are_exceeded_by_the_requests_under_way_at_most() {
    let price = Price::per_million(0.0, 1_000_000.0);
    for limit in 1..=ALL {
        let tokens = Budgets::new().run(Budget::new().tokens(10 * limit as u64));
        let cost = Budgets::new()
            .run(Budget::new().cost(3.0 * limit as f64))
            .price("office", price);
        for budgets in [tokens, cost] {
            let model = Office::default();
            let runner = Runner::new(&desk(&Ran::default(), false))
                .model(model.clone())
                .budgets(budgets.clone());
            let one_by_one = runner.clone().tool_concurrency(NonZeroUsize::MIN);
            let _ = runner.run("Hi").await;
            assert!(model.count() <= limit + 1, "{budgets:?}");
            let before = model.count();
            let _ = one_by_one.run("Hi").await;
            assert!(model.count() - before <= limit, "{budgets:?}");
        }
    }
}

#[tokio::test]
async fn an_estimate_of_the_input_counts_the_requests_under_way() {
    // Both experts would be within the budget alone.
    let budgets = Budgets::new()
        .run(Budget::new().tokens(60))
        .estimate_input();
    let model = Office::default();
    let runner = Runner::new(&desk(&Ran::default(), false))
        .model(model.clone())
        .budgets(budgets);
    let result = runner.run("Hi").await;
    assert_eq!(kind(&result), Err(ErrorKind::Budget));
    let usage = *result.unwrap_err().run().unwrap().usage();
    assert!(usage.total_tokens() <= 60, "{usage:?}");
}

#[tokio::test]
async fn the_budget_of_an_agent_holds_over_all_its_calls() {
    for (agent, turns) in [("Expert", 4), ("Clerk", 1), ("Clerk", 3)] {
        let budgets = Budgets::new().agent(agent, Budget::new().turns(turns));
        let model = Office::default();
        let runner = Runner::new(&desk(&Ran::default(), false))
            .model(model.clone())
            .budgets(budgets);
        // The agent that asks is told, and goes on.
        let result = runner.run("Hi").await.unwrap();
        assert_eq!(result.final_text(), "Desk is done.");
        assert_eq!(model.requests()[agent], turns as usize, "{agent}");
    }
}

#[tokio::test]
async fn a_budget_inside_is_left_by_the_run_whose_budget_it_is() {
    let night: Agent = Agent::new("Night");
    let desk = desk(&Ran::default(), false).handoff(&night);
    for (at_limit, output, requests) in [
        // The experts end with what they have, and then the desk does.
        (AtBudget::Finish("Later.".into()), "Later.", 3),
        (AtBudget::HandTo("Night".into()), "Night is done.", 4),
    ] {
        let model = Office::default();
        let runner = Runner::new(&desk)
            .model(model.clone())
            .budgets(run_turns(3).at_limit(at_limit));
        let result = runner.run("Hi").await.unwrap();
        assert_eq!(result.final_text(), output);
        assert_eq!(model.count(), requests);
    }
}

#[tokio::test]
async fn an_agent_tool_with_budgets_of_its_own_keeps_to_those_of_the_run_too() {
    let settings = |budgets: Budgets| RunConfig {
        budgets: Some(Arc::new(budgets)),
        ..RunConfig::default()
    };
    for (own, of_run, experts) in [(10, 3, 2), (1, 50, 2), (2, 50, 4)] {
        let model = Office::default();
        let expert = expert(&Ran::default(), false).model(model.clone());
        let ask = expert
            .as_tool("ask_expert")
            .config(settings(run_turns(own)));
        let desk: Agent = Agent::new("Desk").model(model.clone()).tool(ask);
        let _ = Runner::new(&desk)
            .budgets(run_turns(of_run))
            .run("Hi")
            .await;
        assert_eq!(model.requests()["Expert"], experts, "{own} {of_run}");
    }
}

#[tokio::test]
async fn a_run_that_waits_inside_and_is_restored_from_text_goes_on_with_what_is_left() {
    for turns in 3..=ALL + 1 {
        let model = Office::default();
        let ran = Ran::default();
        let runner = || {
            Runner::new(&desk(&ran, true))
                .model(model.clone())
                .budgets(run_turns(turns as u32))
        };
        let mut outcome = runner().run("Hi").await;
        let mut waits = 0;
        while let Ok(result) = &outcome
            && result.status() == RunStatus::Interrupted
        {
            waits += 1;
            assert!(waits < 20, "the run does not end");
            let mut run = stored(result.run());
            // One call at a time, each in a new process, in effect.
            let waiting = run.interruptions();
            run.decide(&waiting[0], Decision::approve()).unwrap();
            outcome = runner().resume(run).await;
        }
        assert!(model.count() <= turns, "{} of {turns}", model.count());
        let expected = if turns >= ALL {
            Ok("Desk is done.".to_owned())
        } else {
            Err(ErrorKind::Budget)
        };
        assert_eq!(kind(&outcome), expected, "{turns}");
        let mut effects = ran.take();
        let count = effects.len();
        effects.sort();
        effects.dedup();
        assert_eq!(effects.len(), count, "{effects:?}");
    }
}

#[tokio::test]
async fn a_run_whose_budget_was_used_up_inside_goes_on_there_with_a_larger_one() {
    for turns in 0..ALL {
        let model = Office::default();
        let ran = Ran::default();
        let ask = expert(&ran, false).as_tool("ask_expert").fail_run();
        let desk: Agent = Agent::new("Desk").tool(ask);
        let runner = Runner::new(&desk).model(model.clone());
        let small = runner.clone().budgets(run_turns(turns as u32));
        let error = small.run("Hi").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Budget);
        let large = runner.budgets(run_turns(2 * ALL as u32));
        let result = large.resume(stored(error.run().unwrap())).await.unwrap();
        assert_eq!(result.final_text(), "Desk is done.");
        let mut effects = ran.take();
        let count = effects.len();
        effects.sort();
        effects.dedup();
        assert_eq!(effects.len(), count, "{effects:?} after {turns}");
    }
}

#[tokio::test]
async fn agents_side_by_side_share_the_budgets_with_the_agents_that_they_ask() {
    let lines = |answers: Vec<BranchAnswer>| {
        let answers = answers.iter().map(|made| made.text().into_owned());
        answers.collect::<Vec<_>>().join(" ")
    };
    let fan_out = FanOut::joined(move |answers| async move { lines(answers) });
    for turns in 1..=20 {
        let ran = Ran::default();
        let triage: Agent = Agent::new("Triage")
            .handoff(desk(&ran, false))
            .handoff(expert(&ran, false));
        let model = Office::default();
        let runner = Runner::new(&triage)
            .model(model.clone())
            .max_turns(None)
            .handoff_policy(
                HandoffPolicy::production().several(SeveralHandoffs::FanOut(fan_out.clone())),
            )
            .budgets(run_turns(turns));
        let _ = runner.run("Hi").await;
        assert!(
            model.count() <= turns as usize,
            "{} of {turns}",
            model.count()
        );
    }
}

#[tokio::test]
async fn the_budget_of_a_handoff_inside_agent_tools_counts_all_of_them() {
    // Each call of the agent tool hands over once, and the budget of that handoff is for all.
    let clerk: Agent = Agent::new("Clerk").tool(tool("look").run(|_ctx, (): ()| "found"));
    let model = Office::default();
    let transfer = || [Item::function_call("t", "transfer_to_clerk", "{}")];
    let twice = ScriptedModel::new().reply(transfer()).reply(transfer());
    let expert: Agent = Agent::new("Expert")
        .model(twice)
        .handoff(handoff(clerk.model(model.clone())));
    let desk: Agent = Agent::new("Desk")
        .model(model.clone())
        .tool(expert.as_tool("ask_expert"));
    let budgets = Budgets::new().edge("Expert", "Clerk", Budget::new().turns(1));
    let runner = Runner::new(&desk)
        .tool_concurrency(NonZeroUsize::MIN)
        .budgets(budgets);
    let result = runner.run("Hi").await.unwrap();
    assert_eq!(result.final_text(), "Desk is done.");
    assert_eq!(model.requests()["Clerk"], 1);
}

#[tokio::test]
async fn usage_that_a_tool_adds_is_no_turn() {
    let add = tool::<()>("look").run(|ctx, (): ()| {
        ctx.add_usage(Usage {
            requests: 5,
            input_tokens: 5,
            ..Usage::default()
        });
        "found"
    });
    let clerk: Agent = Agent::new("Clerk").tool(add);
    let runner = |budgets: Budgets| {
        Runner::new(&clerk)
            .model(Office::default())
            .budgets(budgets)
    };
    let result = runner(run_turns(2)).run("Hi").await.unwrap();
    assert_eq!(result.final_text(), "Clerk is done.");
    // Its tokens count.
    let tokens = Budgets::new().run(Budget::new().tokens(15));
    assert_eq!(
        kind(&runner(tokens).run("Hi").await),
        Err(ErrorKind::Budget)
    );
}

#[tokio::test]
async fn the_time_of_tools_counts_and_a_model_inside_them_is_cancelled_when_it_is_up() {
    // A tool takes the time of the agent and of the run.
    for budgets in [
        Budgets::new().run(Budget::new().time(Duration::from_millis(5))),
        Budgets::new().agent("Clerk", Budget::new().time(Duration::from_millis(5))),
    ] {
        let look = tool("look").run(|_ctx, (): ()| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            "found"
        });
        let clerk: Agent = Agent::new("Clerk").tool(look);
        let runner = Runner::new(&clerk)
            .model(Office::default())
            .budgets(budgets.clone());
        assert_eq!(
            kind(&runner.run("Hi").await),
            Err(ErrorKind::Budget),
            "{budgets:?}"
        );
    }
    // A model inside never answers. The budget of the agent that asks holds for it as well.
    let time = || Budget::new().time(Duration::from_millis(30));
    for (budgets, outcome) in [
        (Budgets::new().run(time()), Err(ErrorKind::Budget)),
        (Budgets::new().agent("Desk", time()), Err(ErrorKind::Budget)),
        (
            Budgets::new().agent("Expert", time()),
            Ok("Desk is done.".to_owned()),
        ),
    ] {
        let silent = ScriptedModel::new()
            .delay(Duration::from_secs(600))
            .say("Late.")
            .delay(Duration::from_secs(600))
            .say("Late.");
        let expert: Agent = Agent::new("Expert").model(silent);
        let desk: Agent = Agent::new("Desk")
            .model(Office::default())
            .tool(expert.as_tool("ask_expert"));
        let runner = Runner::new(&desk).budgets(budgets.clone());
        assert_eq!(kind(&runner.run("Hi").await), outcome, "{budgets:?}");
    }
}

#[tokio::test]
async fn the_time_of_an_agent_is_kept_over_its_calls_and_in_the_stored_run() {
    // The first call takes the time of the expert; the second is told so, in another process.
    let ran = Ran::default();
    let slow = |ran: &Ran| {
        let ran = ran.clone();
        tool("look").run(move |_ctx, (): ()| {
            let ran = ran.clone();
            async move {
                ran.add("look");
                tokio::time::sleep(Duration::from_millis(400)).await;
                "found"
            }
        })
    };
    let pause = || tool::<()>("pause").needs_approval().run(|_ctx, (): ()| "");
    let ask = |id: &str| Item::function_call(id, "ask_expert", r#"{"input":"?"}"#);
    let desk_model = ScriptedModel::new()
        .reply([ask("a")])
        .reply([Item::function_call("p", "pause", "{}")])
        .reply([ask("b")])
        .say("Enough.");
    let office = Office::default();
    let runner = || {
        let expert: Agent = Agent::new("Expert").model(office.clone()).tool(slow(&ran));
        let desk: Agent = Agent::new("Desk")
            .model(desk_model.clone())
            .tool(expert.as_tool("ask_expert"))
            .tool(pause());
        let budget = Budget::new().time(Duration::from_millis(200));
        Runner::new(&desk).budgets(Budgets::new().agent("Expert", budget))
    };
    let result = runner().run("Hi").await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
    assert_fits_schema(result.run());
    let mut run = stored(result.run());
    decide_all(&mut run, &Decision::approve());
    let result = runner().resume(run).await.unwrap();
    assert_eq!(result.final_text(), "Enough.");
    assert_eq!(ran.take(), ["look"]);
    assert_eq!(office.requests()["Expert"], 1);
}
