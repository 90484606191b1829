//! Arguments of tools: validated, read from text, and bounded.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::guardrail::ToolGuardrail;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::tool::ToolErrorKind;
use switchboard_core::{Agent, Runner, Tool, ToolContext, tool};

use crate::described;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Order {
    #[schemars(range(min = 1, max = 9))]
    amount: u32,
    gift: Option<bool>,
    #[schemars(regex(pattern = "^[A-Z]{2}$"))]
    country: String,
}

impl Order {
    fn describe(&self) -> String {
        format!("{} to {}, gift: {:?}", self.amount, self.country, self.gift)
    }
}

fn order() -> Tool {
    tool("order").run(|_ctx, order: Order| order.describe())
}

#[tokio::test]
async fn arguments_are_an_object_within_the_limits_of_its_fields() {
    let cases = [
        (json!([5]), "it is not a JSON object"),
        (json!(5), "it is not a JSON object"),
        (
            json!({"amount": true, "gift": "maybe"}),
            "at /country: it is missing; at /amount: expected integer, got boolean; \
             at /gift: expected null or boolean, got string",
        ),
        (
            json!({"amount": 10, "country": "CH"}),
            "at /amount: value is greater than the maximum of 9",
        ),
        (
            json!({"amount": 1, "country": "Switzerland"}),
            "at /country: value does not match \"^[A-Z]{2}$\"",
        ),
    ];
    for (arguments, expected) in cases {
        let error = order().call((), arguments).await.unwrap_err();
        assert_eq!(error.kind(), ToolErrorKind::InvalidArguments);
        let mut problems: Vec<_> = error.to_string().split("; ").map(str::to_owned).collect();
        let mut expected: Vec<_> = expected.split("; ").map(str::to_owned).collect();
        problems.sort();
        expected.sort();
        assert_eq!(problems, expected);
    }
}

#[tokio::test]
async fn numbers_and_booleans_may_be_sent_as_text() {
    let sent = json!({"amount": "5", "gift": "true", "country": "CH"});
    let output = order().call((), sent.clone()).await.unwrap();
    assert_eq!(output.text(), "5 to CH, gift: Some(true)");
    let exact: Tool = tool("order")
        .coerce_arguments(false)
        .run(|_ctx, order: Order| order.describe());
    let error = exact.call((), sent).await.unwrap_err();
    assert!(
        error.to_string().contains("expected integer, got string"),
        "{error}"
    );
}

#[tokio::test]
async fn an_error_quotes_a_bounded_piece_of_what_a_model_sent() {
    let agent: Agent = Agent::new("A").tool(order());
    let name = "x".repeat(10_000_000);
    let model = ScriptedModel::new().call(&name, "{}");
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert!(error.to_string().len() < 1_000);
    let field = json!({"amount": 1, "country": "CH", name: {}});
    let strict: Tool = tool("t").run_checked(
        json!({"type": "object", "additionalProperties": false}),
        |_ctx, _arguments| "never",
    );
    let error = strict.call((), field).await.unwrap_err();
    assert!(error.to_string().len() < 1_000);
}

/// A schema of twelve levels, each a choice of ten references to the next.
fn ladder() -> Value {
    let mut levels = serde_json::Map::new();
    for level in 0..12 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        levels.insert(format!("l{level}"), json!({"anyOf": vec![next; 10]}));
    }
    levels.insert("l12".to_owned(), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": levels})
}

#[tokio::test]
async fn a_schema_that_takes_too_much_work_is_refused() {
    let endless: Tool = tool("endless").run_checked(ladder(), |_ctx, _arguments| "never");
    let agent = Agent::new("A").tool(endless);
    let model = ScriptedModel::new().call("endless", r#"{"x": "no"}"#);
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert!(error.is_configuration(), "{error}");
    assert!(error.to_string().contains("1000000 steps"), "{error}");
}

#[tokio::test]
async fn a_guardrail_sees_the_numbers_that_the_tool_reads() {
    let limit = ToolGuardrail::on_call("limit", |ctx: ToolContext| {
        let arguments: Value = serde_json::from_str(ctx.arguments()).unwrap();
        let is_high = arguments["amount"]
            .as_u64()
            .is_some_and(|amount| amount > 5);
        is_high.then_some("Too much.")
    });
    let order: Tool = tool("order")
        .guardrail(limit)
        .run(|_ctx, order: Order| order.describe());
    let agent = Agent::new("A").tool(order);
    let model = ScriptedModel::new()
        .call("order", r#"{"amount": "9", "country": "CH"}"#)
        .say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    let told = described(&result.to_input_list());
    assert_eq!(told[2], "output of call_1: Too much.");
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Place {
    Number { v: u32 },
    Code { v: String },
}

#[derive(Deserialize, JsonSchema)]
struct Delivery {
    place: Place,
}

#[tokio::test]
async fn a_text_that_is_valid_as_it_is_stays_text() {
    let deliver: Tool = tool("deliver").run(|_ctx, delivery: Delivery| match delivery.place {
        Place::Number { v } => format!("number {v}"),
        Place::Code { v } => format!("code {v}"),
    });
    let sent = json!({"place": {"kind": "code", "v": "8001"}});
    let output = deliver.call((), sent).await.unwrap();
    assert_eq!(output.text(), "code 8001");
}
