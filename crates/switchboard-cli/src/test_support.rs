//! A team for tests, made without a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use switchboard_core::{Agent, Knowledge, ModelHandle, RunConfig, Team, handoff, tool};
use switchboard_models::OfflineModel;
use switchboard_teamfile::Context;

use crate::conversation::{Conversation, Desk};
use crate::event::{Event, Line};
use crate::session::Kept;
use crate::signals::Signals;

/// A support desk on the offline model.
pub(crate) fn desk() -> Desk {
    desk_on(OfflineModel::new())
}

/// A support desk on this model.
pub(crate) fn desk_on(model: impl Into<ModelHandle>) -> Desk {
    let billing = Agent::new("Billing")
        .instructions("You answer questions about bills.")
        .handoff_description("Bills, invoices, charges, payments and refunds.")
        .knowledge(Knowledge::new(
            "Charged twice, double charge",
            "A second charge is reversed within three working days.",
        ))
        .handoff("Manager");
    let shipping = Agent::new("Shipping")
        .instructions("You answer questions about parcels.")
        .handoff_description("Parcels, delivery and tracking of orders.")
        .tool(
            tool::<Context>("track_order")
                .description("Says where an order or parcel is.")
                .run_raw(
                    &json!({
                        "type": "object",
                        "properties": {"order_id": {"type": "string", "description": "The order's number, such as ORD-123."}},
                        "required": ["order_id"],
                        "additionalProperties": false,
                    }),
                    |ctx| format!("On its way: {}", ctx.arguments()),
                ),
        );
    let manager = Agent::new("Manager")
        .instructions("You take over from the desk.")
        .handoff_description("A manager or a person, for complaints.")
        .knowledge(Knowledge::new(
            "manager, complaint, person",
            "I have your case and call you back today.",
        ));
    let escalate = handoff::<Context>("Manager").payload_schema(json!({
        "type": "object",
        "properties": {"reason": {"type": "string"}},
        "required": ["reason"],
        "additionalProperties": false,
    }));
    let triage = Agent::new("Triage")
        .instructions("Route the customer to the right colleague.")
        .handoff("Billing")
        .handoff("Shipping")
        .handoff(escalate);
    let team = Team::new()
        .agent(triage)
        .agent(billing)
        .agent(shipping)
        .agent(manager)
        .build()
        .unwrap();
    let names = ["Triage", "Billing", "Shipping", "Manager"];
    let model = model.into();
    Desk {
        name: "team.toml".to_owned(),
        start: team["Triage"].clone(),
        agents: team.agents().to_vec(),
        graph: team.graph(),
        models: BTreeMap::from(names.map(|name| (name.to_owned(), model.name().to_owned()))),
        config: RunConfig {
            model: Some(model),
            ..RunConfig::default()
        },
        context: Arc::new(Context::default()),
    }
}

/// What an audience is told when these messages are said to a desk, with what takes time taken out.
pub(crate) async fn told(desk: Desk, messages: &[&str]) -> Vec<Event> {
    let mut lines: Vec<Line> = Vec::new();
    let mut signals = Signals::listen().unwrap();
    let kept = Kept::in_memory();
    let mut conversation = Conversation::new(desk, kept, None, None).await.unwrap();
    for message in messages {
        let said = conversation.say(message, &mut lines, &mut signals).await;
        said.unwrap();
    }
    let events = lines.into_iter().map(|line| line.event);
    let events = events.map(|mut event| {
        if let Event::Finished { cost, .. }
        | Event::Stopped { cost, .. }
        | Event::Error { cost, .. } = &mut event
        {
            cost.seconds = 0.0;
        }
        event
    });
    events.collect()
}
