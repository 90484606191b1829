//! The team, and its model, which answers at once.

use switchboard_core::callback::BoxError;
use switchboard_core::{Agent, Item, Model, ModelRequest, ModelResponse, Runner, Tool, tool};

/// The message of the user.
pub(super) const MESSAGE: &str =
    "I was charged twice for order 1047. Please look into it and pay one of them back.";

/// The final answer.
pub(super) const ANSWER: &str = "You were charged twice. I have paid 49.90 back; it arrives within three days. Is there anything else?";

/// The start of the message for which the first agent looks a number of times, and then answers.
pub(super) const LOOK: &str = "Look ";

/// The message that makes the first agent call a tool that needs approval.
pub(super) const APPROVE: &str = "Close my account.";

const OUTPUT: &str = "Order 1047 of 3 March: two charges of 49.90 to the card ending in 4411, both settled on 5 March.";

/// Looks at the order, hands off, reads and pays at the same time, and answers.
struct InstantModel;

impl Model for InstantModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let since = request.input.iter().rev();
        let outputs = since
            .take_while(|item| item.role().as_deref() != Some("user"))
            .filter(|item| item.output().is_some())
            .count();
        // Identifiers of calls differ within a conversation.
        let number = request.input.len();
        let call = |name: &str| {
            let arguments = r#"{"order":1047}"#;
            Item::function_call(&format!("call_{number}_{name}"), name, arguments)
        };
        let answer = || Item::output_message(&format!("msg_{number}"), ANSWER);
        let looks = request.input.iter().rev().find_map(|item| {
            let text = item.text()?;
            text.strip_prefix(LOOK)?.parse::<usize>().ok()
        });
        let approves = request
            .input
            .iter()
            .any(|item| item.text().as_deref() == Some(APPROVE));
        let items = match request.agent.as_deref() {
            Some("Triage") => match (looks, outputs) {
                (Some(looks), outputs) if outputs >= looks => vec![answer()],
                (Some(_), _) => vec![call("look")],
                (None, 0) if approves => vec![call("close")],
                (None, _) if approves => vec![answer()],
                (None, 0) => vec![call("look")],
                (None, _) => vec![Item::function_call(
                    &format!("call_{number}"),
                    "transfer_to_billing",
                    "{}",
                )],
            },
            // After the handoff, or at once if it has the conversation already.
            _ if outputs == 0 || request.input.last().is_some_and(is_handoff_output) => {
                vec![call("charges"), call("refund")]
            }
            _ => vec![answer()],
        };
        Ok(ModelResponse::new(items))
    }
}

fn is_handoff_output(item: &Item) -> bool {
    item.output()
        .is_some_and(|output| output.contains("assistant"))
}

/// A runner of the team.
pub(super) fn team() -> Runner {
    let answers = |name: &str| -> Tool {
        tool(name)
            .description("Works on an order.")
            .run(|_ctx, _arguments: serde_json::Value| OUTPUT)
    };
    let close: Tool = tool("close")
        .needs_approval()
        .run(|_ctx, _arguments: serde_json::Value| OUTPUT);
    let billing: Agent = Agent::new("Billing")
        .instructions("You handle bills.")
        .tool(answers("charges"))
        .tool(answers("refund"));
    let triage = Agent::new("Triage")
        .instructions("Route the customer.")
        .tool(answers("look"))
        .tool(close)
        .handoff(&billing);
    Runner::new(&triage)
        .model(InstantModel)
        .max_turns(2_000)
        .tracing_off()
}
