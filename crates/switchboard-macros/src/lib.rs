//! The attribute [`#[tool]`](macro@tool) of Switchboard: a function as a tool of an agent.
//!
//! Use it through the crate `switchboard`, which exports it beside the function of the same name: the
//! generated code refers to that crate.

mod expand;
mod function;
mod options;
mod parameters;

use proc_macro::TokenStream;

/// Turns a function into a tool: a function of the same name, without parameters, returns the `Tool`.
///
/// ```
/// use switchboard::testing::ScriptedModel;
/// use switchboard::{Agent, Runner, ToolContext, tool};
///
/// struct App {
///     owner: String,
/// }
///
/// /// Looks an account up.
/// #[tool]
/// async fn lookup(
///     ctx: ToolContext<App>,
///     /// The account's number.
///     account: u32,
///     /// Whether to include closed ones.
///     closed: Option<bool>,
/// ) -> Result<String, std::num::TryFromIntError> {
///     let number = u8::try_from(account)?;
///     let closed = closed.unwrap_or_default();
///     Ok(format!("{number} is {}'s, closed: {closed}", ctx.owner))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), switchboard::Error> {
/// let model = ScriptedModel::new().call("lookup", r#"{"account": 42}"#).say("It is Ada's.");
/// let agent = Agent::<App>::new("Billing").tool(lookup()).model(model.clone());
/// let app = App { owner: "Ada".to_owned() };
/// Runner::new(&agent).context(app).run("Whose is 42?").await?;
/// let output = &model.requests()[1].input[2];
/// assert!(output.as_json().contains("42 is Ada's, closed: false"));
/// # Ok(())
/// # }
/// ```
///
/// # The function
///
/// It is sync or async, and returns a value that converts into a `ToolOutput`, or a `Result` of one. A
/// value that is `Serialize` is returned as `Json(value)`. The future of an async function must be
/// `Send`. Each parameter has a plain name, and there are no generics.
///
/// The doc comment is the tool's description. Doc comments, lints, `#[cfg]`, `#[must_use]` and
/// `#[deprecated]` apply to the function that returns the tool; other attributes, such as
/// `#[tracing::instrument]`, apply to the code.
///
/// # The parameters
///
/// The first may be a `ToolContext<C>`, under that name; the tool is then a `Tool<C>`. Without it, the
/// tool works with any context.
///
/// Each other parameter is one argument of the call. Its type implements `serde::Deserialize` and
/// `schemars::JsonSchema`, its doc comment is its description for the model, and an `Option` may be
/// omitted. `#[serde(..)]` and `#[schemars(..)]` work on a parameter as they do on a field:
///
/// ```
/// use switchboard::{Tool, tool};
///
/// #[tool]
/// fn search(#[serde(rename = "q")] query: String, #[schemars(range(min = 1))] limit: u8) -> String {
///     format!("{limit} × {query}")
/// }
///
/// let tool: Tool = search();
/// assert!(tool.spec().parameters.get().contains(r#""required":["q","limit"]"#));
/// ```
///
/// # Options
///
/// | option | meaning | default |
/// | --- | --- | --- |
/// | `name = "..."` | the name of the tool | the function's name |
/// | `title = "..."` | the title for user interfaces | none |
/// | `description = "..."` | the description for the model | the doc comment |
/// | `strict = false` | does not enforce the schema; needed for maps, which have no strict one | `true` |
/// | `timeout_ms = 500` | the timeout of a call | none |
/// | `failure_text = f` | makes the text that the model gets when the tool fails | see `ToolBuilder::failure_text` |
/// | `blocking = true` | runs each call on a thread of its own, for a function that blocks | `false` |
///
/// ```
/// use switchboard::{Tool, tool};
///
/// /// Waits for the parcel.
/// #[tool(name = "await-parcel", timeout_ms = 500)]
/// async fn await_parcel() {}
///
/// let tool: Tool = await_parcel();
/// assert_eq!(tool.name(), "await-parcel");
/// ```
///
/// A tool that needs more, such as guardrails or a condition, is built with the function `tool(..)`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::tool(options.into(), function.into()).into()
}
