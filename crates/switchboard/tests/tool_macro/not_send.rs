use std::rc::Rc;
use std::sync::Mutex;

use switchboard::{Tool, tool};

async fn tick() {}

#[tool]
async fn shared() -> String {
    let name = Rc::new("Ada");
    tick().await;
    name.to_string()
}

static COUNT: Mutex<u32> = Mutex::new(0);

#[tool]
async fn locked(by: u32) -> Result<String, std::fmt::Error> {
    let mut count = COUNT.lock().unwrap();
    tick().await;
    *count += by;
    Ok(count.to_string())
}

fn main() {
    let _: Tool = tool("shared").run(|_ctx, (): ()| async {
        let name = Rc::new("Ada");
        tick().await;
        name.to_string()
    });
}
