//! Budgets and prices: what a file sets, and what becomes of a run that has used one up.

use std::time::Duration;

use switchboard_core::model::Usage;
use switchboard_core::run::{AtBudget, Budget, Budgets, Price};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Error, ErrorKind, Item, ModelResponse, RunResult};
use switchboard_teamfile::{Context, TeamFile};

fn parse(text: &str) -> TeamFile {
    TeamFile::parse(text, "team.toml").unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn the_budgets_of_a_file_are_those_of_its_runs() {
    let file = parse(
        r#"
        model = "local"
        [models.local]
        name = "llama3.1"
        base_url = "http://localhost:1/v1"
        [prices]
        local = { input = 1.25, output = 10, cached = 0.125 }
        "openai/gpt-5.2" = { input = 2, output = 3.5 }
        [run]
        budget = { turns = 8, tokens = 50000, cost = 0.5, seconds = 1.5 }
        at_budget = { hand_to = "B" }
        estimate_input = true
        [agents.A]
        budget = { turns = 3 }
        handoffs = [{ to = "B", budget = { cost = 0.1 } }]
        [agents.B]
        description = "B."
        model = "openai/gpt-5.2"
        "#,
    );
    let expected = Budgets::new()
        .run(
            Budget::new()
                .turns(8)
                .tokens(50_000)
                .cost(0.5)
                .time(Duration::from_millis(1500)),
        )
        .agent("A", Budget::new().turns(3))
        .edge("A", "B", Budget::new().cost(0.1))
        .price("offline", Price::per_million(0.0, 0.0))
        .price("llama3.1", Price::per_million(1.25, 10.0).cached(0.125))
        .price("gpt-5.2", Price::per_million(2.0, 3.5))
        .estimate_input()
        .at_limit(AtBudget::HandTo("B".into()));
    let vars = |name: &str| (name == "OPENAI_API_KEY").then(|| "x".to_owned());
    let team = file.open_options().vars(vars).open();
    let team = team.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(team.config().budgets.as_deref(), Some(&expected));
    let team = parse("[agents.A]\n").open().unwrap();
    assert_eq!(team.config().budgets, None);
}

const TEAM: &str = r#"
    [agents.Triage]
    handoffs = ["Research"]
    [agents.Research]
    description = "Finds it."
    tools = ["search"]
    [agents.Desk]
    description = "Takes messages."
    [tools.search]
    description = "Searches."
    records = { file = "facts.toml", by = "word" }
    parameters = { properties = { word = { type = "string" } }, required = ["word"] }
"#;

/// Runs a team whose research takes 1,000 tokens in each turn.
async fn research(text: &str) -> Result<RunResult<Context>, Error> {
    let files = [("team.toml", text), ("facts.toml", "x = 1\n")];
    let file = TeamFile::from_embedded(&files).unwrap_or_else(|problems| panic!("{problems}"));
    let first = ScriptedModel::new().call("transfer_to_research", "{}");
    let model = (0..4).fold(first, |model, turn| {
        let search = Item::function_call(&format!("c{turn}"), "search", r#"{"word":"x"}"#);
        let usage = Usage {
            requests: 1,
            input_tokens: 900,
            output_tokens: 100,
            ..Usage::default()
        };
        model.respond_with(ModelResponse::new([search]).usage(usage))
    });
    let model = model.say("Found.");
    let team = file.open_options().model_handle(model).open();
    let team = team.unwrap_or_else(|problems| panic!("{problems}"));
    team.runner().run("Find it").await
}

#[tokio::test]
async fn a_budget_that_is_used_up_ends_the_run_as_the_file_says() {
    let result = research(TEAM).await.unwrap();
    assert_eq!(result.final_text(), "Found.");
    for (budget, requests) in [
        ("[run]\nbudget.turns = 3", 3),
        ("[run]\nbudget.tokens = 2000", 3),
        (
            "[run]\nbudget.cost = 0.001\n[prices]\nscripted = { input = 1, output = 1 }",
            2,
        ),
    ] {
        let error = research(&format!("{TEAM}{budget}")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Budget, "{budget}: {error}");
        assert_eq!(error.run().unwrap().usage().requests, requests, "{budget}");
    }
    let of_agent = TEAM.replace("tools = ", "budget.turns = 2\n    tools = ");
    let error = research(&of_agent).await.unwrap_err();
    assert_eq!(error.run().unwrap().usage().requests, 3);
    let of_edge = TEAM.replace("[\"Research\"]", "[{ to = 'Research', budget.turns = 1 }]");
    let error = research(&of_edge).await.unwrap_err();
    assert_eq!(error.run().unwrap().usage().requests, 2);

    let finish = format!("{TEAM}[run]\nbudget.turns = 3\nat_budget = {{ finish = 'Later.' }}");
    let result = research(&finish).await.unwrap();
    assert_eq!(result.final_text(), "Later.");
    let hand_to = format!("{TEAM}[run]\nbudget.turns = 5\nat_budget = {{ hand_to = 'Desk' }}");
    let result = research(&hand_to).await.unwrap();
    assert_eq!(result.last_agent().name(), "Desk");
    assert_eq!(result.final_text(), "Found.");
}

#[test]
fn another_model_needs_a_price_too() {
    let file = parse("[run]\nbudget.cost = 1\n[agents.A]\n");
    assert!(file.open().is_ok());
    let model = ScriptedModel::new();
    let problems = file.open_options().model_handle(model).open().unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!(problem.code, "no-price");
    assert_eq!(
        problem.message,
        "a budget limits the cost, and \"scripted\" has no price"
    );
    let vars = |name: &str| (name == "OPENAI_API_KEY").then(|| "x".to_owned());
    let named = file.open_options().vars(vars).model("openai/gpt-5.2");
    assert!(named.open().is_err());
    assert!(file.open_options().model("offline").open().is_ok());
}
