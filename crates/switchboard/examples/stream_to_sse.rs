//! A streamed run as server-sent events, as a web service would send them: each event has a type
//! and its data as JSON. A tool reports its progress, and a handoff passes the conversation on.
//!
//! `cargo run --example stream_to_sse`

use serde_json::json;
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, EventKind, Runner, StreamEvent, ToolContext, tool};

/// Reads the customer's invoices.
#[tool]
async fn read_invoices(ctx: ToolContext, months: Vec<String>) -> String {
    for (done, month) in months.iter().enumerate() {
        ctx.report_progress(json!({"month": month, "done": done + 1, "of": months.len()}));
        tokio::task::yield_now().await;
    }
    "March was charged twice".to_owned()
}

/// One server-sent event: its type, its data, and an empty line.
fn to_sse(event: &StreamEvent) -> Result<String, serde_json::Error> {
    let data = serde_json::to_string(event)?;
    Ok(format!("event: {}\ndata: {data}\n\n", event.kind.name()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new()
        .call("transfer_to_billing", r#"{"reason": "charged twice"}"#)
        .call("read_invoices", r#"{"months": ["February", "March"]}"#)
        .say("I have taken one charge back.");
    let billing: Agent = Agent::new("Billing").tool(read_invoices());
    let triage = Agent::new("Triage").handoff(billing);

    let mut stream = Runner::new(&triage).model(model).stream("My bill is wrong");
    while let Some(mut event) = stream.next().await {
        // The time differs from run to run, and the output of this example is tested.
        if let EventKind::ToolEnded { seconds, .. } = &mut event.kind {
            *seconds = 0.0;
        }
        print!("{}", to_sse(&event)?);
    }
    stream.finish().await?;
    Ok(())
}
