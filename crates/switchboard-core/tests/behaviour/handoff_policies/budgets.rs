//! Budgets of runs, agents and handoffs.

use std::time::Duration;

use switchboard_core::model::Usage;
use switchboard_core::run::{AtBudget, Budget, Budgets, Price};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Item, ModelResponse, Runner, tool};

use crate::stored;

/// An agent that calls a tool again and again, and one that it can hand off to.
fn triage() -> Agent {
    let billing: Agent = Agent::new("Billing").tool(tool("look").run(|_ctx, (): ()| "found"));
    Agent::new("Triage")
        .tool(tool("look").run(|_ctx, (): ()| "found"))
        .handoff(&billing)
}

fn response(items: Vec<Item>) -> ModelResponse {
    ModelResponse::new(items).usage(Usage {
        requests: 1,
        input_tokens: 100,
        output_tokens: 50,
        ..Usage::default()
    })
}

/// A model that looks `looks` times, hands off, looks as often again, and answers.
fn model(looks: usize) -> ScriptedModel {
    let call = |id: String, name: &str| response(vec![Item::function_call(&id, name, "{}")]);
    let look = |model: ScriptedModel, of: &str| {
        (0..looks).fold(model, |model, number| {
            model.respond_with(call(format!("{of}{number}"), "look"))
        })
    };
    let model = look(ScriptedModel::new(), "a");
    let model = model.respond_with(call("t".to_owned(), "transfer_to_billing"));
    let answer = response(vec![Item::output_message("m", "Done.")]);
    look(model, "b").respond_with(answer)
}

async fn asked(budgets: Budgets) -> (usize, Result<String, ErrorKind>) {
    let model = model(2);
    let runner = Runner::new(&triage()).model(model.clone()).budgets(budgets);
    let outcome = runner.run("x").await;
    let outcome = outcome.map(|result| result.final_text().into_owned());
    (
        model.requests().len(),
        outcome.map_err(|error| error.kind()),
    )
}

#[tokio::test]
async fn no_model_is_asked_beyond_a_budget() {
    let price = Price::per_million(1.0, 2.0);
    for (budgets, requests) in [
        (Budgets::new().run(Budget::new().turns(3)), 3),
        (Budgets::new().run(Budget::new().tokens(301)), 3),
        (Budgets::new().run(Budget::new().tokens(300)), 2),
        (Budgets::new().agent("Triage", Budget::new().turns(2)), 2),
        (Budgets::new().agent("Billing", Budget::new().turns(1)), 4),
        (
            Budgets::new().edge("Triage", "Billing", Budget::new().tokens(150)),
            4,
        ),
        (
            Budgets::new()
                .run(Budget::new().cost(0.0004))
                .price("scripted", price),
            2,
        ),
    ] {
        let (asked, outcome) = asked(budgets.clone()).await;
        assert_eq!(
            (asked, outcome),
            (requests, Err(ErrorKind::Budget)),
            "{budgets:?}"
        );
    }
    let ample = Budgets::new()
        .run(
            Budget::new()
                .turns(6)
                .tokens(901)
                .time(Duration::from_secs(60)),
        )
        .edge("Billing", "Triage", Budget::new().turns(0));
    assert_eq!(asked(ample).await, (6, Ok("Done.".to_owned())));
}

#[tokio::test]
async fn a_cost_without_a_price_is_an_error_before_the_first_request() {
    let budgets = Budgets::new().run(Budget::new().cost(1.0));
    assert_eq!(asked(budgets).await, (0, Err(ErrorKind::Configuration)));
}

#[tokio::test]
async fn a_run_goes_on_with_a_larger_budget() {
    let model = model(2);
    let runner = Runner::new(&triage()).model(model.clone());
    let small = runner
        .clone()
        .budgets(Budgets::new().run(Budget::new().turns(3)));
    let error = small.run("x").await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the budget of 3 turns of the run"),
        "{error}"
    );
    let run = stored(error.run().unwrap());
    let large = runner.budgets(Budgets::new().run(Budget::new().turns(6)));
    assert_eq!(large.resume(run).await.unwrap().final_text(), "Done.");
    assert_eq!(model.requests().len(), 6);
}

#[tokio::test]
async fn at_the_limit_the_run_finishes_or_another_agent_goes_on() {
    let finish = AtBudget::Finish("Later.".into());
    let one = Budgets::new().run(Budget::new().turns(2));
    assert_eq!(
        asked(one.clone().at_limit(finish.clone())).await,
        (2, Ok("Later.".to_owned()))
    );

    // With what there is.
    let said = ScriptedModel::new()
        .respond_with(response(vec![
            Item::output_message("m1", "I look it up."),
            Item::function_call("c1", "look", "{}"),
        ]))
        .call("look", "{}");
    let runner = Runner::new(&triage())
        .model(said)
        .budgets(one.clone().at_limit(finish));
    assert_eq!(runner.run("x").await.unwrap().final_text(), "I look it up.");

    let model = model(2);
    let budgets = one.at_limit(AtBudget::HandTo("Billing".into()));
    let runner = Runner::new(&triage()).model(model.clone()).budgets(budgets);
    let result = runner.run("x").await;
    // Billing is asked what Triage would have been: it has no such handoff, and is told.
    let result = result.unwrap();
    assert_eq!(result.last_agent().name(), "Billing");
    assert_eq!(model.requests_of("Triage").len(), 2);
    assert_eq!(&*result.handoffs()[0].to, "Billing");
}

#[tokio::test]
async fn a_model_call_is_cancelled_when_the_time_is_up() {
    let model = ScriptedModel::new()
        .delay(Duration::from_secs(600))
        .say("Late.");
    let budgets = Budgets::new().run(Budget::new().time(Duration::from_millis(20)));
    let runner = Runner::new(&triage()).model(model).budgets(budgets);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Budget);
    assert!(error.to_string().contains("20ms"), "{error}");
}

#[tokio::test]
async fn a_request_whose_input_alone_exceeds_what_is_left_is_not_sent() {
    let price = Price::per_million(1_000.0, 0.0);
    let long = "word ".repeat(400);
    for (budgets, is_sent) in [
        (Budgets::new().run(Budget::new().tokens(400)), false),
        (Budgets::new().run(Budget::new().tokens(4_000)), true),
        (
            Budgets::new()
                .agent("Triage", Budget::new().cost(0.4))
                .price("scripted", price),
            false,
        ),
        (
            Budgets::new()
                .agent("Triage", Budget::new().cost(4.0))
                .price("scripted", price),
            true,
        ),
        // What the provider has cached costs next to nothing.
        (
            Budgets::new()
                .agent("Triage", Budget::new().cost(0.4))
                .price("scripted", price.cached(1.0)),
            true,
        ),
    ] {
        for estimates in [true, false] {
            let budgets = if estimates {
                budgets.clone().estimate_input()
            } else {
                budgets.clone()
            };
            let model = ScriptedModel::new().say("Done.");
            let runner = Runner::new(&triage()).model(model.clone()).budgets(budgets);
            let outcome = runner.run(&*long).await;
            let is_sent = is_sent || !estimates;
            assert_eq!(model.requests().len(), usize::from(is_sent));
            match outcome {
                Ok(_) => assert!(is_sent),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Budget);
                    assert!(error.to_string().contains("too little left"), "{error}");
                }
            }
        }
    }
}

#[tokio::test]
async fn the_estimate_counts_what_was_used_and_has_the_same_consequences() {
    // 150 tokens were used, and the rest does not suffice for the next request.
    let budgets = Budgets::new()
        .run(Budget::new().tokens(160))
        .estimate_input()
        .at_limit(AtBudget::Finish("Later.".into()));
    assert_eq!(asked(budgets).await, (1, Ok("Later.".to_owned())));
}
