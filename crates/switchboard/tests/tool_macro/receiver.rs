use switchboard::tool;

struct Accounts;

impl Accounts {
    #[tool]
    fn lookup(&self, account: u32) -> String {
        account.to_string()
    }
}

fn main() {}
