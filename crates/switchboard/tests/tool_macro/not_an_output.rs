use serde::Serialize;
use switchboard::{Tool, tool};

#[derive(Serialize)]
struct Account {
    number: u32,
}

#[tool]
fn lookup(number: u32) -> Account {
    Account { number }
}

#[tool]
async fn fetch(number: u32) -> Account {
    Account { number }
}

#[tool]
async fn find(number: u32) -> Result<Account, std::fmt::Error> {
    Ok(Account { number })
}

fn main() {
    let _: Tool = tool("lookup").run(|_ctx, (): ()| Account { number: 1 });
    let _: Tool = tool("fetch").run(|_ctx, (): ()| async { Account { number: 1 } });
}
