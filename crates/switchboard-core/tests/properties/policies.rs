//! Policies with each other: every pair of them that can meet, and random ones, with random teams, scripts
//! and decisions, killed after every step.

use std::sync::Arc;

use proptest::prelude::*;
use switchboard_core::run::{
    AnnouncedHandoffs, ApprovalGuardrails, AtBudget, AtLoopLimit, BranchFailures, Budget, Budgets,
    FanOut, HandoffPolicy, HandoffRetries, LoopLimits, ResumeChecks, SeveralHandoffs,
};

use crate::policy_world::{AGENTS, Choice, Kills, Part, Setting, Verdict, observe};

/// The part of a setting that a choice is about; choices about the same part exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Retries,
    Loops,
    Several,
    Announced,
    ApprovalGuardrails,
    ResumeChecks,
    Budgets,
    Callback,
    Guardrail,
    HandoffApproval,
    Decisions,
}

type Apply = fn(&mut Setting);

/// Every policy, in each of its forms.
const POLICIES: &[(About, &str, Apply)] = &[
    (About::Retries, "no retries", |s| s.policy.retries = None),
    (About::Retries, "one retry", |s| {
        s.policy.retries = Some(HandoffRetries::new(1, 1));
    }),
    (About::Loops, "handoffs, fail", |s| {
        s.policy.loops = LoopLimits::none().handoffs(1);
    }),
    (About::Loops, "handoffs, refuse", |s| {
        s.policy.loops = LoopLimits::none().handoffs(1).at_limit(AtLoopLimit::Refuse);
    }),
    (About::Loops, "handoffs, redirect", |s| {
        let to = AtLoopLimit::Redirect(AGENTS[2].into());
        s.policy.loops = LoopLimits::none().handoffs(1).at_limit(to);
    }),
    (About::Loops, "handoffs, answer", |s| {
        let answer = AtLoopLimit::Answer("Enough.".into());
        s.policy.loops = LoopLimits::none().handoffs(1).at_limit(answer);
    }),
    (About::Loops, "per edge", |s| {
        s.policy.loops = LoopLimits::none().per_edge(1).at_limit(AtLoopLimit::Refuse);
    }),
    (About::Loops, "ping-pong", |s| {
        s.policy.loops = LoopLimits::none()
            .ping_pong(1)
            .at_limit(AtLoopLimit::Refuse);
    }),
    (About::Loops, "without progress", |s| {
        let limits = LoopLimits::none().without_progress(1);
        s.policy.loops = limits.at_limit(AtLoopLimit::Refuse);
    }),
    (About::Several, "ask to choose", |s| {
        s.policy.several = SeveralHandoffs::AskToChoose;
    }),
    (About::Several, "refuse several", |s| {
        s.policy.several = SeveralHandoffs::Refuse;
    }),
    (About::Several, "fan out to the caller", |s| {
        s.policy.several = SeveralHandoffs::FanOut(FanOut::to_caller());
    }),
    (About::Several, "fan out to another agent", |s| {
        let policy = FanOut::to_agent(AGENTS[2]).failures(BranchFailures::FailRun);
        s.policy.several = SeveralHandoffs::FanOut(policy);
    }),
    (About::Several, "fan out, joined by code", |s| {
        let join = FanOut::joined(|answers| format!("{} answers", answers.len()));
        s.policy.several = SeveralHandoffs::FanOut(join);
    }),
    (About::Announced, "announced", |s| {
        s.policy.announced = Some(AnnouncedHandoffs::default());
    }),
    (About::ApprovalGuardrails, "guardrails after", |s| {
        s.has_fickle_guardrail = true;
        s.policy.approval_guardrails = ApprovalGuardrails::AfterDecision;
    }),
    (About::ApprovalGuardrails, "guardrails before", |s| {
        s.has_fickle_guardrail = true
    }),
    (About::ApprovalGuardrails, "guardrails twice", |s| {
        s.has_fickle_guardrail = true;
        s.policy.approval_guardrails = ApprovalGuardrails::Both;
    }),
    (About::ResumeChecks, "checks when reached", |s| {
        s.policy.resume_checks = ResumeChecks::WhenReached;
    }),
    (About::ResumeChecks, "few turns", |s| s.max_turns = 2),
    (About::Budgets, "budget, fail", |s| {
        s.budgets = Some(budget(AtBudget::Fail))
    }),
    (About::Budgets, "budget, finish", |s| {
        s.budgets = Some(budget(AtBudget::Finish("Later.".into())));
    }),
    (About::Budgets, "budget, hand to", |s| {
        s.budgets = Some(budget(AtBudget::HandTo(AGENTS[2].into())));
    }),
    (About::Budgets, "budget of an agent", |s| {
        let budgets = Budgets::new().agent(AGENTS[1], Budget::new().turns(1));
        s.budgets = Some(budgets.at_limit(AtBudget::Finish("Later.".into())));
    }),
    (About::Budgets, "budget of an agent used as a tool", |s| {
        let budgets = Budgets::new().agent("Expert", Budget::new().turns(1));
        s.budgets = Some(budgets);
    }),
    (About::Budgets, "budget of a handoff", |s| {
        let budgets = Budgets::new().edge(AGENTS[0], AGENTS[1], Budget::new().turns(1));
        s.budgets = Some(budgets.at_limit(AtBudget::HandTo(AGENTS[2].into())));
    }),
    (About::Callback, "callback refuses", |s| {
        s.callback = Choice::Refuse
    }),
    (About::Callback, "callback redirects", |s| {
        s.callback = Choice::Redirect
    }),
    (About::Callback, "callback asks", |s| {
        s.callback = Choice::AskApproval
    }),
    (About::Callback, "callback fails", |s| {
        s.callback = Choice::Fail
    }),
    (About::Guardrail, "guardrail refuses", |s| {
        s.guardrail = Some(Choice::Refuse)
    }),
    (About::Guardrail, "guardrail redirects", |s| {
        s.guardrail = Some(Choice::Redirect)
    }),
    (About::Guardrail, "guardrail asks", |s| {
        s.guardrail = Some(Choice::AskApproval)
    }),
    (About::Guardrail, "guardrail trips", |s| {
        s.guardrail = Some(Choice::Fail)
    }),
    (About::HandoffApproval, "approved handoffs", |s| {
        s.handoffs_need_approval = true
    }),
    (About::Decisions, "rejected", |s| {
        s.decisions = vec![Verdict::Reject]
    }),
    (About::Decisions, "approved for always", |s| {
        s.decisions = vec![Verdict::ApproveAlways]
    }),
    (About::Decisions, "one by one", |s| {
        s.decides_all = false;
        s.decisions = vec![Verdict::Approve, Verdict::RejectAlways];
    }),
];

fn budget(at_limit: AtBudget) -> Budgets {
    Budgets::new()
        .run(Budget::new().turns(3))
        .at_limit(at_limit)
}

/// Scripts in which every policy has something to decide.
fn scripts() -> Vec<Vec<Vec<Part>>> {
    use Part::{Announcement, Ask, Handoff, InvalidHandoff, Look, Pay, Words};
    vec![
        // Several handoffs beside tools, then a circle.
        vec![
            vec![Look, Pay, Handoff(1), Handoff(2)],
            vec![Pay, Ask, Handoff(0)],
            vec![Handoff(1)],
            vec![Handoff(0)],
        ],
        // A handoff that is announced, called with a wrong payload, and called.
        vec![
            vec![Announcement],
            vec![Pay, InvalidHandoff(1)],
            vec![InvalidHandoff(1)],
            vec![Ask, Pay, Handoff(1)],
            vec![Pay, Pay],
        ],
        // Nothing but handoffs.
        vec![
            vec![Handoff(1)],
            vec![Handoff(0)],
            vec![Handoff(1)],
            vec![Handoff(2)],
            vec![Words, Handoff(0)],
        ],
    ]
}

/// Runs one setting with each script, in memory, and killed after each step with a stored conversation: what is
/// asked and done is the same.
fn check<'a>(names: &[&str], setting: &Setting, scripts: impl Iterator<Item = &'a Vec<Vec<Part>>>) {
    for script in scripts {
        let whole = observe(setting, script, Kills::Never);
        let stored = Setting {
            in_conversation: true,
            ..setting.clone()
        };
        let killed = observe(&stored, script, Kills::AfterEachStep);
        let place = format!("{names:?} with {script:?}");
        assert_eq!(whole.effects, killed.effects, "{place}");
        assert_eq!(whole.requests, killed.requests, "{place}");
        assert_eq!(whole.handoffs, killed.handoffs, "{place}");
        assert_eq!(whole.outcome, killed.outcome, "{place}");
        assert_eq!(whole.agent, killed.agent, "{place}");
    }
}

#[test]
fn every_policy_and_every_pair_of_them_keeps_what_all_promise() {
    let scripts = scripts();
    let mut cases: Vec<(Vec<&str>, Setting)> = Vec::new();
    for (at, (about, name, apply)) in POLICIES.iter().enumerate() {
        let mut setting = Setting::default();
        apply(&mut setting);
        cases.push((vec![name], setting.clone()));
        for (_, other_name, also) in POLICIES[at + 1..]
            .iter()
            .filter(|(other, ..)| other != about)
        {
            let mut both = setting.clone();
            also(&mut both);
            cases.push((vec![name, other_name], both));
        }
    }
    assert!(cases.len() > 450, "{} cases", cases.len());
    let (cases, scripts) = (&cases, &scripts);
    std::thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || {
                for (at, (names, setting)) in cases.iter().enumerate().skip(first).step_by(4) {
                    // Of a pair, the first script and one of the others.
                    let other = if at / 4 % 2 == 0 { 1 } else { 2 };
                    let is_run = |script: usize| names.len() == 1 || script == 0 || script == other;
                    let scripts = scripts.iter().enumerate();
                    let scripts = scripts.filter(|(script, _)| is_run(*script));
                    check(names, setting, scripts.map(|(_, script)| script));
                }
            });
        }
    });
}

fn settings() -> impl Strategy<Value = Setting> {
    let policies = prop::collection::vec(prop::sample::select(POLICIES), 0..6);
    let decisions = prop::collection::vec(
        prop::sample::select(vec![
            Verdict::Approve,
            Verdict::Reject,
            Verdict::ApproveAlways,
            Verdict::RejectAlways,
        ]),
        1..4,
    );
    let turns = prop_oneof![Just(12_u32), 1..6_u32];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (policies, decisions, turns, flags).prop_map(
        |(policies, decisions, max_turns, (decides_all, in_conversation, is_reference))| {
            let mut setting = Setting {
                decisions,
                max_turns,
                decides_all,
                in_conversation,
                ..Setting::default()
            };
            if is_reference {
                setting.policy = HandoffPolicy::reference();
            }
            for (_, _, apply) in policies {
                apply(&mut setting);
            }
            setting
        },
    )
}

fn parts() -> impl Strategy<Value = Vec<Vec<Part>>> {
    let part = prop_oneof![
        1 => Just(Part::Words),
        1 => Just(Part::Announcement),
        2 => Just(Part::Look),
        3 => Just(Part::Pay),
        2 => Just(Part::Ask),
        4 => (0..3_usize).prop_map(Part::Handoff),
        1 => (0..3_usize).prop_map(Part::InvalidHandoff),
    ];
    prop::collection::vec(prop::collection::vec(part, 1..5), 0..7)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_run_killed_after_any_step_ends_like_one_that_was_not(
        setting in settings(),
        script in parts(),
    ) {
        let whole = Arc::new(observe(&setting, &script, Kills::Never));
        for at in 1..=whole.steps {
            let killed = observe(&setting, &script, Kills::AfterStep(at));
            prop_assert_eq!(&*whole, &killed, "after step {}", at);
        }
        prop_assert_eq!(&*whole, &observe(&setting, &script, Kills::AfterEachStep));
    }
}
