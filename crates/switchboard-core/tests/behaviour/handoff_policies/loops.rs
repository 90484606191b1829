//! Agents that hand the conversation around are stopped.

use switchboard_core::run::{AtLoopLimit, HandoffOutcome, HandoffPolicy, LoopLimits};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Item, Runner, Team, handoff, tool};

use crate::described;

/// Two agents that hand off to each other, and a third.
fn team() -> Team {
    Team::new()
        .agent(
            Agent::new("A")
                .handoff("B")
                .handoff("C")
                .tool(tool("t").run(|_ctx, (): ()| "1")),
        )
        .agent(Agent::new("B").handoff("A"))
        .agent(Agent::new("C").handoff(handoff("A").tool_name("back")))
        .build()
        .unwrap()
}

/// A model that hands off between A and B all the time.
fn ping_pong() -> ScriptedModel {
    (0..40).fold(ScriptedModel::new(), |model, number| {
        let to = ["transfer_to_b", "transfer_to_a"][number % 2];
        model.reply([Item::function_call(&format!("c{number}"), to, "{}")])
    })
}

fn runner(limits: LoopLimits) -> Runner {
    let policy = HandoffPolicy::production().loops(limits);
    let runner = Runner::new(&team()["A"]).model(ping_pong()).max_turns(None);
    runner.handoff_policy(policy)
}

#[tokio::test]
async fn each_limit_ends_the_run_with_an_error_that_names_the_circle() {
    let none = LoopLimits::none();
    for (limits, taken, limit) in [
        (none.clone().handoffs(5), 5, "5 handoffs in one run"),
        (
            none.clone().per_edge(2),
            4,
            "2 handoffs from \"A\" to \"B\"",
        ),
        (none.clone().ping_pong(6), 6, "6 handoffs in a row between"),
        (
            none.without_progress(3),
            6,
            "3 handoffs from \"A\" to \"B\" while nothing else happened",
        ),
    ] {
        let error = runner(limits).run("x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HandoffLoop);
        let text = error.to_string();
        assert!(text.contains(limit), "{text}");
        assert!(
            text.contains("A → B → A") || text.contains("B → A → B"),
            "{text}"
        );
        let run = error.run().unwrap();
        assert_eq!(run.handoffs().len(), taken, "{limit}");
    }
}

#[tokio::test]
async fn the_default_stops_a_circle_without_progress_and_nothing_else() {
    let error = Runner::new(&team()["A"])
        .model(ping_pong())
        .run("x")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HandoffLoop);
    let error = Runner::new(&team()["A"])
        .model(ping_pong())
        .handoff_policy(HandoffPolicy::reference())
        .run("x")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MaxTurns);

    // With a tool or a word in between it goes on.
    let busy = (0..6).fold(ScriptedModel::new(), |model, number| {
        let call = |name: &str, id: &str| Item::function_call(&format!("{id}{number}"), name, "{}");
        let model = match number % 2 {
            0 => model
                .reply([call("t", "t")])
                .reply([call("transfer_to_b", "b")]),
            _ => model.reply([
                Item::output_message(&format!("m{number}"), "One moment."),
                call("transfer_to_b", "b"),
            ]),
        };
        model.reply([call("transfer_to_a", "a")])
    });
    let runner = Runner::new(&team()["A"])
        .model(busy.say("Done."))
        .max_turns(None);
    assert_eq!(runner.run("x").await.unwrap().final_text(), "Done.");
}

#[tokio::test]
async fn a_long_chain_is_no_circle() {
    let last: Agent = Agent::new("Agent 30");
    let chain = (0..30).rev().fold(last, |next, number| {
        Agent::new(format!("Agent {number}")).handoff(handoff(&next).tool_name("next"))
    });
    let model = (0..30).fold(ScriptedModel::new(), |model, number| {
        model.reply([Item::function_call(&format!("c{number}"), "next", "{}")])
    });
    let runner = Runner::new(&chain)
        .model(model.say("Done."))
        .max_turns(None);
    assert_eq!(
        runner.run("x").await.unwrap().last_agent().name(),
        "Agent 30"
    );
}

#[tokio::test]
async fn at_a_limit_the_model_is_told_another_agent_gets_it_or_the_run_ends() {
    let limits = || LoopLimits::none().per_edge(1);
    let two = |model: ScriptedModel| {
        let call = |id: &str, name: &str| Item::function_call(id, name, "{}");
        model
            .reply([call("c1", "transfer_to_b")])
            .reply([call("c2", "transfer_to_a")])
            .reply([call("c3", "transfer_to_b")])
    };
    let run = |model: ScriptedModel, at_limit: AtLoopLimit| {
        let policy = HandoffPolicy::production().loops(limits().at_limit(at_limit));
        let runner = Runner::new(&team()["A"])
            .model(model)
            .handoff_policy(policy);
        async move { runner.run("x").await.unwrap() }
    };

    let model = two(ScriptedModel::new()).say("I stay.");
    let result = run(model.clone(), AtLoopLimit::Refuse).await;
    assert_eq!(
        (result.last_agent().name(), &*result.final_text()),
        ("A", "I stay.")
    );
    let told = described(&model.requests()[3].input);
    assert_eq!(
        told.last().unwrap(),
        "output of c3: The handoff to B was not made: the conversation goes in a circle (B → A → \
         B). Go on without it."
    );

    let result = run(
        two(ScriptedModel::new()).say("Hi."),
        AtLoopLimit::Redirect("C".into()),
    )
    .await;
    assert_eq!(result.last_agent().name(), "C");
    assert_eq!(result.handoffs()[2].redirected_from.as_deref(), Some("B"));

    let result = run(
        two(ScriptedModel::new()),
        AtLoopLimit::Answer("Call us.".into()),
    )
    .await;
    assert_eq!(
        (result.last_agent().name(), &*result.final_text()),
        ("A", "Call us.")
    );
    assert!(matches!(
        result.handoffs()[2].outcome,
        HandoffOutcome::Refused(_)
    ));
    let items = described(&result.to_input_list());
    assert_eq!(items.last().unwrap(), "assistant: Call us.");
}

#[tokio::test]
async fn a_handoff_of_the_agent_that_a_limit_leads_to_is_refused() {
    let limits = LoopLimits::none().handoffs(1);
    let limits = limits.at_limit(AtLoopLimit::Redirect("C".into()));
    let model = ScriptedModel::new()
        .call("transfer_to_c", "{}")
        .call("back", "{}")
        .say("I stay.");
    let runner = Runner::new(&team()["A"]).model(model);
    let runner = runner.handoff_policy(HandoffPolicy::production().loops(limits));
    let result = runner.run("x").await.unwrap();
    assert_eq!(
        (result.last_agent().name(), &*result.final_text()),
        ("C", "I stay.")
    );
    let [taken, refused] = result.handoffs() else {
        panic!("{:?}", result.handoffs());
    };
    assert_eq!((&*taken.to, &*refused.to), ("C", "A"));
    assert!(matches!(refused.outcome, HandoffOutcome::Refused(_)));
}

#[tokio::test]
async fn ping_pong_is_found_within_a_window_with_others_in_between() {
    let handoffs = |steps: &[&str]| {
        let steps = steps.iter().enumerate();
        steps.fold(ScriptedModel::new(), |model, (number, to)| {
            model.reply([Item::function_call(&format!("c{number}"), to, "{}")])
        })
    };
    let around = [
        "transfer_to_b",
        "transfer_to_a",
        "transfer_to_c",
        "back",
        "transfer_to_b",
        "transfer_to_a",
        "transfer_to_c",
        "back",
        "transfer_to_b",
    ];
    for (limits, taken) in [
        (LoopLimits::none().ping_pong_within(4, 8), Some(8)),
        (LoopLimits::none().ping_pong_within(3, 5), Some(5)),
        // Six of them never have four.
        (LoopLimits::none().ping_pong_within(4, 6), None),
        (LoopLimits::none().ping_pong(3), None),
    ] {
        let policy = HandoffPolicy::production().loops(limits.clone());
        let runner = Runner::new(&team()["A"])
            .model(handoffs(&around).say("Done."))
            .max_turns(None)
            .handoff_policy(policy);
        let outcome = runner.run("x").await;
        match taken {
            None => assert_eq!(outcome.unwrap().final_text(), "Done.", "{limits:?}"),
            Some(taken) => {
                let error = outcome.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::HandoffLoop);
                let text = error.to_string();
                assert!(text.contains("handoffs among the last"), "{text}");
                assert!(
                    text.contains("(A → B → A)") || text.contains("→ C → A → B)"),
                    "{text}"
                );
                assert_eq!(error.run().unwrap().handoffs().len(), taken, "{limits:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_word_beside_the_handoff_is_progress() {
    let model = (0..10).fold(ScriptedModel::new(), |model, number| {
        let to = ["transfer_to_b", "transfer_to_a"][number % 2];
        model.reply([
            Item::output_message(&format!("m{number}"), "One moment."),
            Item::function_call(&format!("c{number}"), to, "{}"),
        ])
    });
    let runner = Runner::new(&team()["A"]).model(model.say("Done."));
    let result = runner.max_turns(None).run("x").await.unwrap();
    assert_eq!(result.handoffs().len(), 10);
}
