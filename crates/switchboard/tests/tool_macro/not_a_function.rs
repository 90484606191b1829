use switchboard::tool;

#[tool]
struct Lookup;

fn main() {}
