//! Policies with each other: every pair of them that can meet, and random ones, with random teams, scripts
//! and decisions, killed after every step.

mod table;

use std::sync::Arc;

use proptest::prelude::*;
use switchboard_core::run::HandoffPolicy;

use crate::policy_world::{Kills, Observation, Part, Setting, Verdict, observe};
use table::{About, Apply, NEVER_MEET, POLICIES, can_meet};

/// Policies that decide nothing in these scripts unless another asks them.
const ONLY_WITH_OTHERS: &[&str] = &["approved for always", "checks when reached"];

/// Scripts in which every policy has something to decide.
fn scripts() -> Vec<Vec<Vec<Part>>> {
    use Part::{Announcement, Ask, Back, Handoff, InvalidHandoff, Look, Pay, Words};
    vec![
        // Several handoffs beside tools, then a circle.
        vec![
            vec![Look, Pay, Handoff(1), Handoff(2)],
            vec![Pay, Ask, Handoff(0)],
            vec![Handoff(1)],
            vec![Handoff(0)],
        ],
        // A handoff that is called with a wrong payload, announced, and called.
        vec![
            vec![Pay, InvalidHandoff(1)],
            vec![InvalidHandoff(1)],
            vec![Announcement],
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
        // There and back, with tools on the way.
        vec![
            vec![Look, Handoff(1)],
            vec![Pay, Back],
            vec![Handoff(1), Handoff(2)],
            vec![Back],
            vec![Pay, Handoff(2)],
            vec![Look, Handoff(1)],
            vec![Back],
            vec![Back],
        ],
        // Several handoffs at first, an announcement, and ways back that are wrong or not there.
        vec![
            vec![Back, Look],
            vec![Handoff(2), Handoff(1)],
            vec![Pay, Handoff(1)],
            vec![InvalidHandoff(2), Back],
            vec![Announcement],
            vec![Ask, Handoff(0)],
            vec![Back],
        ],
    ]
}

/// Runs one setting with a script, in memory, and killed after each step with a stored conversation: what is
/// asked and done is the same. Returns what was observed in memory.
fn check(names: &[&str], setting: &Setting, script: &[Vec<Part>]) -> Vec<Observation> {
    let whole = observe(setting, script, Kills::Never);
    let stored = Setting {
        in_conversation: true,
        ..setting.clone()
    };
    let killed = observe(&stored, script, Kills::AfterEachStep);
    let place = format!("{names:?} with {script:?}");
    assert_eq!(whole.len(), killed.len(), "{place}");
    for (whole, killed) in whole.iter().zip(&killed) {
        assert_eq!(whole.without_history(), killed.without_history(), "{place}");
    }
    whole
}

/// Calls `check` for all of `cases`, in several threads.
fn for_each<T: Sync>(cases: &[T], check: impl Fn(usize, &T) + Sync) {
    std::thread::scope(|scope| {
        for first in 0..4 {
            let check = &check;
            scope.spawn(move || {
                for (at, case) in cases.iter().enumerate().skip(first).step_by(4) {
                    check(at, case);
                }
            });
        }
    });
}

fn applied(policies: &[&(About, &str, Apply)]) -> Setting {
    let mut setting = Setting::default();
    for (_, _, apply) in policies {
        apply(&mut setting);
    }
    setting
}

#[test]
fn every_policy_keeps_what_all_promise_and_decides_something() {
    let scripts = scripts();
    let plain = |in_conversation: bool| {
        let setting = Setting {
            in_conversation,
            ..Setting::default()
        };
        let observed = scripts.iter();
        let observed = observed.map(|script| observe(&setting, script, Kills::Never));
        observed.collect::<Vec<_>>()
    };
    let plain = [plain(false), plain(true)];
    for_each(POLICIES, |_, policy| {
        let setting = applied(&[policy]);
        let mut decides = false;
        for (at, script) in scripts.iter().enumerate() {
            let observed = check(&[policy.1], &setting, script);
            decides |= observed != plain[usize::from(setting.in_conversation)][at];
        }
        assert!(
            decides || ONLY_WITH_OTHERS.contains(&policy.1),
            "{}",
            policy.1
        );
    });
}

#[test]
fn every_pair_of_policies_that_can_meet_keeps_what_all_promise() {
    let scripts = scripts();
    let mut pairs = Vec::new();
    for (at, one) in POLICIES.iter().enumerate() {
        let others = POLICIES[at + 1..].iter();
        pairs.extend(
            others
                .filter(|other| can_meet(one, other))
                .map(|other| [one, other]),
        );
    }
    assert!(pairs.len() > 1_600, "{} pairs", pairs.len());
    for_each(&pairs, |at, pair| {
        let names = [pair[0].1, pair[1].1];
        // Each policy meets each of the others in another script.
        let script = &scripts[(at / 4) % scripts.len()];
        check(&names, &applied(pair), script);
    });
}

#[test]
fn policies_that_cannot_meet_are_those_of_the_table() {
    let is_known = |name: &&&str| POLICIES.iter().any(|(_, known, _)| known == *name);
    for (some, others, reason) in NEVER_MEET {
        let unknown: Vec<_> = some
            .iter()
            .chain(*others)
            .filter(|name| !is_known(name))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}: {reason}");
    }
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
        2 => Just(Part::Back),
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
        let steps = whole.iter().map(|run| run.steps).max().unwrap_or(0);
        for at in 1..=steps {
            let killed = observe(&setting, &script, Kills::AfterStep(at));
            prop_assert_eq!(&*whole, &killed, "after step {}", at);
        }
        prop_assert_eq!(&*whole, &observe(&setting, &script, Kills::AfterEachStep));
    }
}
