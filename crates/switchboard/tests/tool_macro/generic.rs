use switchboard::tool;

#[tool]
fn lookup<T>(account: T) -> String
where
    T: ToString,
{
    account.to_string()
}

#[tool]
fn find(account: impl ToString) -> String {
    account.to_string()
}

#[tool]
unsafe fn wild() {}

fn main() {}
