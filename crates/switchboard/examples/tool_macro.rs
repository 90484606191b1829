//! Functions as tools: the attribute `#[tool]` makes the model's schema from the signature and the
//! comments.
//!
//! `cargo run --example tool_macro`

use std::collections::BTreeMap;

use switchboard::testing::ScriptedModel;
use switchboard::{Agent, Runner, ToolContext, tool};

/// The application's own state. Models never see it.
struct App {
    balances: BTreeMap<u32, i64>,
}

#[derive(Debug)]
struct NoSuchAccount;

impl std::fmt::Display for NoSuchAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("there is no such account")
    }
}

impl std::error::Error for NoSuchAccount {}

/// Returns an account's balance.
#[tool]
async fn balance(
    ctx: ToolContext<App>,
    /// The account's number.
    account: u32,
    /// The currency; euros if not given.
    currency: Option<String>,
) -> Result<String, NoSuchAccount> {
    let balance = ctx.balances.get(&account).ok_or(NoSuchAccount)?;
    let currency = currency.as_deref().unwrap_or("EUR");
    Ok(format!("{balance} {currency}"))
}

/// Adds amounts up. It needs no context, so any agent can have it.
#[tool(name = "sum", timeout_ms = 500)]
fn add_up(amounts: Vec<i64>) -> String {
    amounts.iter().sum::<i64>().to_string()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), switchboard::Error> {
    let model = ScriptedModel::new()
        .calls([
            ("balance", r#"{"account": 1}"#),
            ("balance", r#"{"account": 2, "currency": "EUR"}"#),
            ("balance", r#"{"account": 3}"#),
        ])
        .call("sum", r#"{"amounts": [120, 80]}"#)
        .say("You have 200 in all; there is no third account.");

    let agent = Agent::<App>::new("Billing")
        .instructions("Answer questions about accounts.")
        .tool(balance())
        .tool(add_up());

    let tool = balance();
    println!("{}: {}", tool.name(), tool.description());
    println!("{}", tool.spec().parameters);

    let app = App {
        balances: BTreeMap::from([(1, 120), (2, 80)]),
    };
    let result = Runner::new(&agent)
        .context(app)
        .model(model)
        .run("How much have I got?")
        .await?;
    for item in &result.to_input_list() {
        println!("{}", item.as_json());
    }
    Ok(())
}
