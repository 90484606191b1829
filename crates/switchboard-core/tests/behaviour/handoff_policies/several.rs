//! Several handoffs in one response.

use switchboard_core::run::{HandoffOutcome, HandoffPolicy, SeveralHandoffs};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, Runner};

use crate::described;

fn calls() -> [Item; 2] {
    [
        Item::function_call("c1", "transfer_to_b", "{}"),
        Item::function_call("c2", "transfer_to_c", "{}"),
    ]
}

#[tokio::test]
async fn the_model_chooses_or_is_refused() {
    for (policy, told) in [
        (
            SeveralHandoffs::AskToChoose,
            "Several handoffs were asked for at once, and none was made. Call exactly one of \
             transfer_to_b, transfer_to_c.",
        ),
        (
            SeveralHandoffs::Refuse,
            "Several handoffs were asked for at once, and none was made. Go on without a handoff.",
        ),
    ] {
        let (b, c): (Agent, Agent) = (Agent::new("B"), Agent::new("C"));
        let a = Agent::new("A").handoff(&b).handoff(&c);
        let model = ScriptedModel::new()
            .reply(calls())
            .call("transfer_to_c", "{}")
            .say("Hi.");
        let runner = Runner::new(&a)
            .model(model.clone())
            .handoff_policy(HandoffPolicy::production().several(policy));
        let result = runner.run("x").await.unwrap();
        assert_eq!(result.last_agent().name(), "C");
        let shown = described(&model.requests()[1].input);
        let mut answers = shown[3..].to_vec();
        answers.sort();
        assert_eq!(
            answers,
            [
                format!("output of c1: {told}"),
                format!("output of c2: {told}")
            ]
        );
        let refused = HandoffOutcome::Refused(told.to_owned());
        let outcomes: Vec<_> = result
            .handoffs()
            .iter()
            .map(|made| made.outcome.clone())
            .collect();
        assert_eq!(outcomes, [refused.clone(), refused, HandoffOutcome::Taken]);
    }
}
