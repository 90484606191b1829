//! Hooks: several on one run and one agent, and what they are given.

use std::sync::{Arc, Mutex};

use switchboard_core::hooks::{AgentHooks, HookResult, RunHooks};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, FinalOutput, RunContext, Runner, tool};

use crate::described;

type Log = Arc<Mutex<Vec<String>>>;

/// Hooks that write their name down.
struct Named(&'static str, Log);

impl RunHooks for Named {
    async fn on_agent_start(&self, _ctx: &RunContext, _agent: &Agent) -> HookResult {
        self.1.lock().unwrap().push(self.0.to_owned());
        if self.0 == "fails" {
            return Err("no".into());
        }
        Ok(())
    }
}

impl AgentHooks for Named {
    async fn on_start(&self, _ctx: &RunContext, _agent: &Agent) -> HookResult {
        self.1.lock().unwrap().push(self.0.to_owned());
        Ok(())
    }
}

#[tokio::test]
async fn a_run_and_an_agent_have_several_hooks_in_order() {
    let log = Log::default();
    let agent: Agent = Agent::new("A")
        .hooks(Named("agent 1", log.clone()))
        .hooks(Named("agent 2", log.clone()));
    let runner = Runner::new(&agent)
        .model(ScriptedModel::new().say("ok"))
        .hooks(Named("run 1", log.clone()))
        .hooks(Named("run 2", log.clone()));
    runner.run("x").await.unwrap();
    assert_eq!(
        *log.lock().unwrap(),
        ["run 1", "run 2", "agent 1", "agent 2"]
    );

    log.lock().unwrap().clear();
    let runner = runner.hooks(Named("fails", log.clone()));
    runner.run("x").await.unwrap_err();
    assert_eq!(*log.lock().unwrap(), ["run 1", "run 2", "fails"]);
}

/// Hooks that write the input of the turn down.
struct Inputs(Arc<Mutex<Vec<Vec<String>>>>);

impl RunHooks for Inputs {
    async fn on_agent_start(&self, ctx: &RunContext, _agent: &Agent) -> HookResult {
        self.0
            .lock()
            .unwrap()
            .push(described(ctx.turn_input().unwrap()));
        Ok(())
    }

    async fn on_agent_end(
        &self,
        ctx: &RunContext,
        _agent: &Agent,
        _output: &FinalOutput,
    ) -> HookResult {
        self.0
            .lock()
            .unwrap()
            .push(described(ctx.turn_input().unwrap()));
        Ok(())
    }
}

#[tokio::test]
async fn hooks_on_the_start_and_the_end_of_an_agent_get_the_input_of_the_turn() {
    let inputs = Arc::default();
    let agent: Agent = Agent::new("A").tool(tool::<()>("t").run(|ctx, (): ()| {
        assert!(ctx.run_context().turn_input().is_none());
        "1"
    }));
    let model = ScriptedModel::new().call("t", "{}").say("ok");
    let runner = Runner::new(&agent)
        .model(model)
        .hooks(Inputs(Arc::clone(&inputs)));
    runner.run("x").await.unwrap();
    assert_eq!(
        *inputs.lock().unwrap(),
        [
            vec!["user: x"],
            vec!["user: x", "call t", "output of call_1: 1"]
        ]
    );
}
