//! Agents that a person answers for.

mod answers;
mod conversations;
mod forks;
mod handing_over;
mod in_teams;
mod states;

use switchboard_core::approval::Interruption;
use switchboard_core::people::PersonAnswer;
use switchboard_core::run::RunStatus;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Run, RunResult, Runner};

/// Ann, who may hand the conversation to Billing.
fn ann(billing: &Agent) -> Agent {
    Agent::person("Ann")
        .handoff_description("Complaints.")
        .handoff(billing)
}

/// Triage, which may hand the conversation to Ann.
fn triage() -> Agent {
    Agent::new("Triage").handoff(ann(&Agent::new("Billing")))
}

fn runner(agent: &Agent, model: &ScriptedModel) -> Runner {
    Runner::new(agent).model(model.clone())
}

/// The only interruption of a run that waits for a person.
fn asked(run: &Run) -> Interruption {
    let [waiting] = <[_; 1]>::try_from(run.interruptions()).unwrap();
    waiting
}

/// Answers for the person that the result waits for, and resumes the run.
async fn answered(runner: &Runner, result: RunResult, answer: PersonAnswer) -> RunResult {
    assert_eq!(result.status(), RunStatus::Interrupted);
    let mut run = result.into_run();
    run.answer(&asked(&run), answer).unwrap();
    runner.resume(run).await.unwrap()
}
