//! The attribute [`#[tool]`](macro@tool) of Switchboard: a function as a tool of an agent.
//!
//! Use it through the crate `switchboard`, which has it beside the function of the same name; what
//! it writes names that crate.

mod expand;
mod function;
mod options;
mod parameters;

use proc_macro::TokenStream;

/// Makes a function a tool: the same name, without parameters, then gives the `Tool`.
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
/// let told = &model.requests()[1].input[2];
/// assert!(told.as_json().contains("42 is Ada's, closed: false"));
/// # Ok(())
/// # }
/// ```
///
/// # The function
///
/// It is sync or async, and returns what `ToolBuilder::run` takes: a value that converts into a
/// `ToolOutput`, or a `Result` of one. It has a name for each parameter, and no generics.
///
/// The doc comment is the tool's description. Doc comments, lints, `#[cfg]`, `#[must_use]` and
/// `#[deprecated]` stay on the function that gives the tool; other attributes, such as
/// `#[tracing::instrument]`, go with the code.
///
/// # The parameters
///
/// The first may be a `ToolContext<C>`, written by that name; the tool is then a `Tool<C>`. Without
/// it, the tool is for agents of any context.
///
/// Each other parameter is one argument of the call. Its type is a `serde::Deserialize` and a
/// `schemars::JsonSchema`, its doc comment tells the model what it is for, and an `Option` may be
/// left out. `#[serde(..)]` and `#[schemars(..)]` work on a parameter as they do on a field:
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
/// | option | is | unless given |
/// | --- | --- | --- |
/// | `name = "..."` | the name the model calls | the function's name |
/// | `description = "..."` | what the tool is for | the doc comment |
/// | `strict = false` | lets the model stray from the schema; a map has no strict one | `true` |
/// | `timeout_ms = 500` | how long a call may take | as long as it likes |
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
