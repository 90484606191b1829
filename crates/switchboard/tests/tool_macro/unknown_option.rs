use switchboard::{Agent, tool};

#[tool(nmae = "look")]
fn lookup(account: u32) -> String {
    account.to_string()
}

fn main() {
    // Only the mistake is reported, not also that there is no `lookup`.
    let _: Agent = Agent::new("A").tool(lookup());
}
