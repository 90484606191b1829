//! Results: continuing from them, and the last response.

use switchboard_core::handoff::HandoffInputData;
use switchboard_core::items::{RunItem, RunItemKind};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, ModelResponse, RunResult, Runner, handoff, tool};

use crate::{described, stored};

fn script() -> ScriptedModel {
    let call = Item::function_call("h", "transfer_to_delegate", "{}");
    ScriptedModel::new()
        .respond_with(ModelResponse::new([
            Item::output_message("m", "triage summary"),
            call,
        ]))
        .call("lookup", "{}")
        .say("resolution")
}

fn delegate() -> Agent {
    Agent::new("Delegate").tool(tool("lookup").run(|_ctx, (): ()| "sunny"))
}

fn ends(items: &[String]) -> &[String] {
    &items[items.len() - 3..]
}

#[tokio::test]
async fn after_a_nested_handoff_the_normalised_list_has_only_the_last_agents_calls() {
    let triage = Agent::new("Triage").handoff(delegate());
    let runner = Runner::new(&triage)
        .model(script())
        .nest_handoff_history(true);
    let result = runner.run("user question").await.unwrap();
    let all = described(&result.to_input_list());
    let normalised = described(&result.to_normalized_input_list());
    assert!(all.contains(&"call transfer_to_delegate".to_owned()));
    assert!(!normalised.contains(&"call transfer_to_delegate".to_owned()));
    let last = ends(&normalised);
    assert_eq!(last[0], "call lookup");
    assert!(last[1].ends_with(": sunny"), "{last:?}");
    assert_eq!(last[2], "assistant: resolution");
    assert_eq!(normalised.len() + 2, all.len(), "{all:#?} {normalised:#?}");
    let run = stored(result.run());
    assert_eq!(described(&run.to_normalized_input_list()), normalised);
}

#[tokio::test]
async fn after_a_filter_the_normalised_list_has_what_it_left() {
    let edge = handoff(delegate()).filter_fn(|data: HandoffInputData| {
        let is_message = |item: &&RunItem| *item.kind() == RunItemKind::MessageOutput;
        let messages: Vec<RunItem> = data
            .new_items()
            .iter()
            .filter(is_message)
            .cloned()
            .collect();
        data.with_input_items(messages)
    });
    let triage = Agent::new("Triage").handoff(edge);
    let runner = Runner::new(&triage).model(script());
    let result = runner.run("user question").await.unwrap();
    assert_eq!(result.to_input_list().len(), 7);
    let normalised = described(&result.to_normalized_input_list());
    assert_eq!(
        normalised[..3],
        [
            "user: user question",
            "assistant: triage summary",
            "call lookup"
        ]
    );
    assert_eq!(normalised.len(), 5);
}

#[tokio::test]
async fn where_nothing_was_rewritten_both_lists_are_the_same() {
    let triage = Agent::new("Triage").handoff(delegate());
    let runner = Runner::new(&triage).model(script());
    let result = runner.run("user question").await.unwrap();
    let all = result.to_input_list();
    assert_eq!(all.len(), 7);
    assert_eq!(
        described(&result.to_normalized_input_list()),
        described(&all)
    );
}

#[tokio::test]
async fn the_last_response_has_an_identifier_if_the_provider_gives_one() {
    let id_of = async |ids: &[Option<&str>]| {
        let mut script = ScriptedModel::new();
        for (at, id) in ids.iter().enumerate() {
            let item = if at + 1 < ids.len() {
                Item::function_call(&format!("c{at}"), "lookup", "{}")
            } else {
                Item::output_message("m", "Done.")
            };
            let mut response = ModelResponse::new([item]);
            response.response_id = id.map(Into::into);
            script = script.respond_with(response);
        }
        let agent = delegate().model(script);
        let result: RunResult = Runner::new(&agent).run("x").await.unwrap();
        result.last_response_id().map(ToOwned::to_owned)
    };
    assert_eq!(
        id_of(&[Some("r1"), Some("r2")]).await.as_deref(),
        Some("r2")
    );
    assert_eq!(id_of(&[Some("r1"), None]).await, None);
}
