use switchboard::tool;

#[tool(name = 3)]
fn a() {}

#[tool(name = "two words")]
fn b() {}

#[tool(strict = "no")]
fn c() {}

#[tool(timeout_ms = 0)]
fn d() {}

#[tool(timeout_ms)]
fn e() {}

#[tool(strict = true, strict = false)]
fn f() {}

fn main() {}
