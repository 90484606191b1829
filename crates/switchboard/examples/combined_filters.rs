//! Filters combined: `then` applies one after another, `when` applies one only if a condition
//! holds, and a function is a filter too. Two runs print what the next agent's model saw: a
//! colleague in the same company, and a partner outside.
//!
//! `cargo run --example combined_filters`

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::filters::{self, Filter};
use switchboard::handoff::HandoffInputData;
use switchboard::testing::{ScriptedModel, describe_item};
use switchboard::{Agent, Item, Runner, handoff, tool};

/// The application's state: the recipient of the conversation.
struct App {
    recipient: Recipient,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Recipient {
    Colleague,
    Partner,
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    order: u32,
}

fn goes_outside(data: &HandoffInputData<App>) -> bool {
    data.run_context().recipient == Recipient::Partner
}

/// A filter of the application: hides the items of this turn, such as the handoff, from the next
/// agent.
fn forget_this_turn(data: HandoffInputData<App>) -> HandoffInputData<App> {
    data.with_input_items([])
}

/// The filter of every handoff of this application.
fn house_rules() -> Filter<App> {
    filters::drop_reasoning()
        .then(forget_this_turn)
        .then(filters::when(goes_outside, for_partners()))
}

/// The filter for partners, which removes what must stay in the company.
fn for_partners() -> Filter<App> {
    filters::remove_all_tools()
        .then(filters::redact_pii())
        .then(filters::note(
            |_data: &HandoffInputData<App>| "This conversation comes from another company.",
        ))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shipping = Agent::<App>::new("Shipping")
        .instructions("You know where parcels are.")
        .handoff_description("Parcels and deliveries.");
    let shop = Agent::new("Shop")
        .instructions("Look the order up, then pass the customer on.")
        .tool(
            tool::<App>("find_order")
                .description("Finds an order by its number.")
                .run(|_ctx, order: Order| format!("order {} left on Monday", order.order)),
        )
        .handoff(handoff(&shipping).filter(house_rules()));

    for recipient in [Recipient::Colleague, Recipient::Partner] {
        let reasoning = Item::from_json(
            r#"{"type": "reasoning", "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "They want order 77."}]}"#,
        )?;
        let find_order = Item::function_call("call_1", "find_order", r#"{"order": 77}"#);
        let transfer = Item::function_call("call_2", "transfer_to_shipping", "{}");
        let model = ScriptedModel::new()
            .reply([reasoning, find_order])
            .reply([transfer])
            .say("Your parcel arrives tomorrow.");
        let result = Runner::new(&shop)
            .context(App { recipient })
            .model(model.clone())
            .run("Where is order 77? Write to ann@example.com.")
            .await?;

        println!("To a {recipient:?}:");
        for request in model.requests().iter().skip(1) {
            let agent = request.agent.as_deref().unwrap_or_default();
            println!("  {agent} saw:");
            for item in &request.input {
                println!("    {}", describe_item(item));
            }
        }
        println!("  {}: {}", result.last_agent().name(), result.final_text());
    }
    Ok(())
}
