//! `#[tool]`: a function as a tool.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::fmt;

use serde_json::{Value, json};
use switchboard::testing::ScriptedModel;
use switchboard::tool::ToolError;
use switchboard::{Agent, Json, Runner, Tool, ToolContext, tool};

struct App {
    owner: &'static str,
}

#[derive(Debug)]
struct NoAccount(u32);

impl fmt::Display for NoAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no account {}", self.0)
    }
}

impl std::error::Error for NoAccount {}

/// Looks an account up.
///
/// Accounts are
///   - open, or
///   - closed.
///
#[tool]
async fn lookup(
    ctx: ToolContext<App>,
    /// The account's number.
    account: u32,
    /// Whether to include closed ones.
    closed: Option<bool>,
) -> Result<String, NoAccount> {
    tokio::task::yield_now().await;
    check(account)?;
    Ok(format!("{account} of {}, closed: {closed:?}", ctx.owner))
}

fn check(account: u32) -> Result<(), NoAccount> {
    if account == 0 {
        return Err(NoAccount(account));
    }
    Ok(())
}

#[tool]
fn add(mut a: i32, b: i32) -> Json<i32> {
    a += b;
    Json(a)
}

fn three() -> u8 {
    3
}

/// Not what the model reads.
#[tool(
    name = "find-all",
    description = "Finds things.",
    strict = false,
    timeout_ms = 500
)]
fn find(
    #[serde(rename = "q")] query: String,
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 9))]
    limit: u8,
    r#type: Option<String>,
) -> String {
    format!("{query} {limit} {}", r#type.unwrap_or_default())
}

/// Says the time.
#[tool]
pub(crate) fn now() -> &'static str {
    "noon"
}

#[tool]
async fn whose(ctx: ToolContext<App>) -> String {
    ctx.owner.to_owned()
}

#[tool(timeout_ms = 1)]
async fn sleep() {
    std::future::pending().await
}

/// A tool that calls itself, by the name it was written with.
#[tool]
fn factorial(n: u64) -> Json<u64> {
    match n {
        0 => Json(1),
        n => Json(n * factorial(n - 1).0),
    }
}

macro_rules! echo_tool {
    ($name:ident) => {
        #[tool]
        async fn $name(ctx: ToolContext<App>, text: String) -> String {
            format!("{text}, {}", ctx.owner)
        }
    };
}

echo_tool!(echo);

/// Runs an agent whose model calls the tool, and returns the output that the model gets.
async fn call<C: Send + Sync + 'static>(context: C, tool: Tool<C>, arguments: &str) -> String {
    let model = ScriptedModel::new().call(tool.name(), arguments).say("ok");
    let agent = Agent::new("A").tool(tool).model(model.clone());
    let runner = Runner::new(&agent).context(context);
    runner.run("x").await.unwrap();
    let item = model.requests()[1].input.last().unwrap().clone();
    let output: Value = serde_json::from_str(item.as_json()).unwrap();
    output["output"].as_str().unwrap().to_owned()
}

fn parameters<C>(tool: &Tool<C>) -> Value {
    serde_json::from_str(tool.spec().parameters.get()).unwrap()
}

const APP: App = App { owner: "Ada" };

#[tool(title = "Parcel tracking")]
fn track() -> &'static str {
    "on its way"
}

#[test]
fn a_title_is_for_user_interfaces() {
    let track: Tool = track();
    assert_eq!(track.title(), Some("Parcel tracking"));
}

#[test]
fn the_model_gets_the_signature_and_the_comments() {
    let tool = lookup();
    assert_eq!(tool.name(), "lookup");
    assert_eq!(
        tool.description(),
        "Looks an account up.\n\nAccounts are\n  - open, or\n  - closed."
    );
    assert!(tool.spec().strict);
    assert_eq!(
        parameters(&tool),
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "lookup_args",
            "type": "object",
            "properties": {
                "account": {
                    "description": "The account's number.",
                    "type": "integer",
                    "format": "uint32",
                    "minimum": 0,
                },
                "closed": {
                    "description": "Whether to include closed ones.",
                    "type": ["boolean", "null"],
                },
            },
            "required": ["account", "closed"],
            "additionalProperties": false,
        })
    );
}

#[tokio::test]
async fn an_async_function_gets_the_context_and_the_arguments() {
    assert_eq!(
        call(APP, lookup(), r#"{"account": 4, "closed": true}"#).await,
        "4 of Ada, closed: Some(true)"
    );
}

#[tokio::test]
async fn an_option_may_be_left_out() {
    assert_eq!(
        call(APP, lookup(), r#"{"account": 4}"#).await,
        "4 of Ada, closed: None"
    );
}

#[tokio::test]
async fn the_model_gets_a_failure_without_the_text_of_the_error() {
    let failure = "An error occurred while running the tool. Please try again.";
    assert_eq!(call(APP, lookup(), r#"{"account": 0}"#).await, failure);
}

#[tokio::test]
async fn the_model_is_told_which_argument_is_invalid() {
    assert_eq!(
        call(APP, lookup(), r#"{"account": "x"}"#).await,
        "The arguments are invalid: at /account: expected integer, got string. Correct them and \
         call the tool again."
    );
}

fn apology(_ctx: ToolContext, error: ToolError) -> String {
    format!("Sorry: {error}")
}

/// Fails.
#[tool(failure_text = apology)]
fn broken(_ctx: ToolContext<()>) -> Result<String, String> {
    Err("no paper".to_owned())
}

/// Computes for long.
#[tool(blocking = true)]
fn compute(number: u32) -> String {
    format!("{number} on {:?}", std::thread::current().name())
}

#[tokio::test]
async fn a_tool_may_make_its_failure_text_and_block_its_thread() {
    assert_eq!(call((), broken(), "{}").await, "Sorry: no paper");
    assert_eq!(
        call((), compute(), r#"{"number": 4}"#).await,
        "4 on Some(\"switchboard-tool\")"
    );
}

#[tokio::test]
async fn a_tool_without_a_context_works_with_any_context() {
    assert_eq!(call(APP, add(), r#"{"a": 1, "b": 2}"#).await, "3");
    assert_eq!(call((), add(), r#"{"a": 1, "b": 2}"#).await, "3");
    let _: Agent<App> = Agent::new("A").tool(add()).tool(lookup());
}

#[test]
fn options_and_parameter_attributes_are_applied() {
    let tool: Tool = find();
    assert_eq!(tool.name(), "find-all");
    assert_eq!(tool.description(), "Finds things.");
    assert!(!tool.spec().strict);
    assert_eq!(
        parameters(&tool),
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "find-all_args",
            "type": "object",
            "properties": {
                "q": {"type": "string"},
                "limit": {
                    "type": "integer",
                    "format": "uint8",
                    "minimum": 1,
                    "maximum": 9,
                    "default": 3,
                },
                "type": {"type": ["string", "null"]},
            },
            "required": ["q"],
        })
    );
}

#[tokio::test]
async fn a_parameter_has_its_serde_name_and_default() {
    assert_eq!(
        call((), find(), r#"{"q": "boats", "type": "red"}"#).await,
        "boats 3 red"
    );
}

#[tokio::test]
async fn a_tool_without_parameters_ignores_the_arguments() {
    let tool: Tool = now();
    assert_eq!(tool.description(), "Says the time.");
    let nothing = json!({
        "additionalProperties": false, "type": "object", "properties": {}, "required": []
    });
    assert_eq!(parameters(&tool), nothing);
    assert_eq!(parameters(&whose()), nothing);
    assert_eq!(call((), tool, "").await, "noon");
    assert_eq!(call(APP, whose(), r#"{"x": 1}"#).await, "Ada");
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_cancelled() {
    assert_eq!(
        call((), sleep(), "{}").await,
        "Tool 'sleep' timed out after 0.001 seconds."
    );
}

#[tokio::test]
async fn the_code_may_call_itself() {
    assert_eq!(call((), factorial(), r#"{"n": 5}"#).await, "120");
}

#[tokio::test]
async fn a_tool_can_be_written_by_a_macro() {
    assert_eq!(call(APP, echo(), r#"{"text": "hi"}"#).await, "hi, Ada");
}

#[test]
fn mistakes_are_reported_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/tool_macro/*.rs");
}
