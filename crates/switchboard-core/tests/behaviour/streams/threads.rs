//! Runs that move between threads, for a context that is neither `Clone` nor `Debug`.

use switchboard_core::hooks::HooksHandle;
use switchboard_core::model::ModelHandle;
use switchboard_core::session::SessionHandle;
use switchboard_core::stream::{RunStream, StopHandle, StreamEvent};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Error, Handoff, Run, RunConfig, RunContext, RunResult, Runner, Team, Tool, ToolContext,
    handoff, tool,
};

struct App(u32);

fn is_send<T: Send>(value: T) -> T {
    value
}

fn is_send_sync<T: Send + Sync>() {}

#[test]
fn handles_can_be_shared_between_threads() {
    is_send_sync::<Agent<App>>();
    is_send_sync::<Handoff<App>>();
    is_send_sync::<Tool<App>>();
    is_send_sync::<Team<App>>();
    is_send_sync::<Runner<App>>();
    is_send_sync::<Runner<App, std::sync::Arc<App>>>();
    is_send_sync::<RunConfig<App>>();
    is_send_sync::<RunContext<App>>();
    is_send_sync::<ToolContext<App>>();
    is_send_sync::<Run>();
    is_send_sync::<RunResult<App>>();
    is_send_sync::<Error>();
    is_send_sync::<StopHandle>();
    is_send_sync::<StreamEvent>();
    is_send_sync::<ModelHandle>();
    is_send_sync::<SessionHandle>();
    is_send_sync::<HooksHandle<App>>();
}

#[tokio::test]
async fn the_futures_of_a_run_can_be_sent_to_another_thread() {
    let boss: Agent<App> = Agent::new("Boss");
    let clerk = Agent::new("Clerk")
        .tool(tool("t").run(|ctx: ToolContext<App>, (): ()| ctx.0.to_string()))
        .handoff(handoff(&boss));
    let model = ScriptedModel::new();
    let runner = Runner::new(&clerk).model(&model).context(App(7));
    let script = |model: ScriptedModel| {
        _ = model
            .call("t", "{}")
            .call("transfer_to_boss", "{}")
            .say("ok");
    };

    script(model.clone());
    let run = is_send(runner.run("x"));
    let result = tokio::spawn(run).await.unwrap().unwrap();
    assert_eq!(
        crate::described(&result.to_input_list())[2],
        "output of call_1: 7"
    );

    script(model.clone());
    let mut run = runner.begin("x");
    is_send(runner.step(&mut run)).await.unwrap();
    let resumed = is_send(runner.resume(run)).await.unwrap();
    assert_eq!(resumed.final_text(), "ok");

    script(model.clone());
    let mut stream: RunStream<App> = is_send(runner.stream("x"));
    is_send(stream.next()).await.unwrap();
    let finished = tokio::spawn(is_send(stream.finish())).await.unwrap();
    assert_eq!(finished.unwrap().final_text(), "ok");

    script(model);
    let stream = is_send(runner.resume_stream(runner.begin("x")).unwrap());
    assert_eq!(stream.finish().await.unwrap().final_text(), "ok");
}
