//! Copies of conversations and runs that wait for a person.

use switchboard_core::Runner;
use switchboard_core::conversation::Conversations;
use switchboard_core::people::PersonAnswer;
use switchboard_core::testing::ScriptedModel;

use super::{asked, triage};
use crate::described;

#[tokio::test]
async fn a_person_hands_back_in_each_copy_of_a_conversation() {
    let model = ScriptedModel::new()
        .call("transfer_to_ann", "{}")
        .say("Back in the first.")
        .say("Back in the second.");
    let agent = triage();
    let session = Conversations::in_memory().get("first");
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    runner.run("A person, please!").await.unwrap();
    let fork = session.fork("second", None).await.unwrap();
    let of_fork = Runner::new(&agent).model(model.clone()).session(&fork);

    for (runner, session, said) in [
        (&runner, &session, "Back in the first."),
        (&of_fork, &fork, "Back in the second."),
    ] {
        let mut run = session.waiting_run().await.unwrap().unwrap();
        let answer = PersonAnswer::hand_back().note("All is well.");
        run.answer(&asked(&run), answer).unwrap();
        let result = runner.resume(run).await.unwrap();
        assert_eq!(result.final_text(), said);
        assert_eq!(session.agent().await.unwrap().as_deref(), Some("Triage"));
        assert!(session.waiting_run().await.unwrap().is_none());
    }
    let [first, second] = [&model.requests()[1], &model.requests()[2]];
    let seen = described(&first.input);
    assert_eq!(seen.len(), described(&second.input).len());
    assert!(
        seen.contains(&"developer: Note from Ann: All is well.".to_owned()),
        "{seen:?}"
    );
}

#[tokio::test]
async fn the_handoffs_of_a_person_in_two_copies_of_a_run_are_two_calls() {
    let model = ScriptedModel::new()
        .call("transfer_to_ann", "{}")
        .say("One.")
        .say("Two.");
    let runner = Runner::new(&triage()).model(model.clone());
    let run = runner.run("A person, please!").await.unwrap().into_run();
    for mut run in [run.fork(), run] {
        run.answer(&asked(&run), PersonAnswer::hand_back()).unwrap();
        runner.resume(run).await.unwrap();
    }
    let ids: Vec<String> = [1, 2]
        .map(|at| {
            let input = model.requests()[at].input.clone();
            let mut calls = input.iter().filter(|item| item.name().is_some());
            calls.next_back().unwrap().call_id().unwrap().into_owned()
        })
        .into();
    assert_ne!(ids[0], ids[1]);
}
