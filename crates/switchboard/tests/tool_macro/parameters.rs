use switchboard::{ToolContext, tool};

#[tool]
fn pattern((a, b): (u32, u32)) -> String {
    format!("{a}{b}")
}

#[tool]
fn borrowed(ctx: &ToolContext, name: &str) -> String {
    format!("{}{name}", ctx.call_id())
}

#[tool]
fn late(name: String, ctx: ToolContext) -> String {
    format!("{}{name}", ctx.call_id())
}

#[tool]
fn conditional(#[cfg(unix)] name: String) {}

fn main() {}
