//! Properties of a run that hold with every policy.

use std::collections::BTreeMap;

use switchboard_core::approval::Interruption;
use switchboard_core::handoff::PayloadDelivery;
use switchboard_core::items::{ItemKind, Items};
use switchboard_core::run::{
    AtBudget, AtLoopLimit, Budget, HandoffOutcome, HandoffRecord, HandoffTrigger, Price,
    SeveralHandoffs,
};

use super::observation::{Observation, Request};
use super::{Choice, Effect, HAND_BACK, Setting, TOKENS, Verdict, World, response};

/// The calls and tools that a person has approved.
#[derive(Default)]
pub(super) struct Approved {
    calls: Vec<String>,
    always: Vec<(String, String)>,
}

impl Approved {
    pub(super) fn note(&mut self, verdict: Verdict, waiting: &Interruption) {
        if matches!(verdict, Verdict::Approve | Verdict::ApproveAlways) {
            let id = super::observation::without_run(&waiting.call_id);
            self.calls.push(id);
        }
        if verdict == Verdict::ApproveAlways {
            let tool = (waiting.agent.to_string(), waiting.tool.to_string());
            self.always.push(tool);
        }
    }

    /// Nothing that needs approval has run without it.
    pub(super) fn check(&self, setting: &Setting, effects: &[Effect]) {
        let asks = |choice: Option<Choice>| choice == Some(Choice::AskApproval);
        for effect in effects {
            let is_free = match &effect.to {
                None => effect.tool != "pay",
                // The way back of a handoff has a callback, and no approval or guardrail of its own.
                Some(_) if effect.tool == HAND_BACK => !asks(Some(setting.callback)),
                Some(_) => {
                    !setting.handoffs_need_approval
                        && !asks(setting.guardrail)
                        && !asks(Some(setting.callback))
                }
            };
            let tool = (effect.agent.clone(), effect.tool.clone());
            let is_approved = self.calls.contains(&effect.call_id) || self.always.contains(&tool);
            assert!(
                is_free || is_approved,
                "{effect:?} was not approved: {setting:?}"
            );
        }
    }
}

/// Asserts what every policy promises.
pub(super) fn check(setting: &Setting, world: &World, observed: &[Observation]) {
    let requests = world.model.requests().into_iter();
    for request in requests.chain(world.expert.requests()) {
        assert!(
            is_paired(&request.input),
            "{:#?} {setting:?}",
            request.input
        );
    }
    for observation in observed {
        let mut counts: BTreeMap<&Effect, usize> = BTreeMap::new();
        for effect in &observation.effects {
            *counts.entry(effect).or_default() += 1;
        }
        assert!(
            counts.values().all(|count| *count == 1),
            "{counts:?} {setting:?}"
        );
        check_limits(setting, observation);
        check_budgets(setting, observation);
        if matches!(setting.policy.several, SeveralHandoffs::FanOut(_)) {
            check_branches(setting, observation);
        } else {
            check_holders(setting, observation);
        }
    }
}

/// Asserts that each request is for the agent that the handoffs before it led to, which has got the payload.
fn check_holders(setting: &Setting, observation: &Observation) {
    for (at, request) in observation.requests.iter().enumerate() {
        let mut person_turns = 0;
        let mut holder: Option<&HandoffRecord> = None;
        for record in &observation.handoffs {
            let is_of_person = setting.person_name() == Some(&*record.from);
            let is_answer = is_of_person && record.trigger == HandoffTrigger::Model;
            person_turns += usize::from(is_answer && record.outcome != HandoffOutcome::Ignored);
            let requests_before = record.turn as usize - person_turns;
            if record.outcome == HandoffOutcome::Taken && requests_before <= at {
                holder = Some(record);
            }
        }
        let agent = holder.map_or(&*observation.first_agent, |record| &*record.to);
        assert_eq!(agent, request.agent, "request {at}: {setting:?}");
        if let Some(record) = holder {
            check_payload(setting, record, request);
        }
    }
}

/// Asserts that the payload of the handoff to an agent is where the handoff delivers it.
fn check_payload(setting: &Setting, record: &HandoffRecord, request: &Request) {
    // A way back that is part of another handoff delivers its result as the output of the call.
    let Some(delivery) = setting.delivery.filter(|_| *record.tool_name != *HAND_BACK) else {
        return;
    };
    let is_moved = matches!(
        record.trigger,
        HandoffTrigger::Budget | HandoffTrigger::FanOut
    );
    let reason = record
        .payload
        .get("reason")
        .and_then(|reason| reason.as_str());
    assert_eq!(reason.is_none(), is_moved, "{record:?} {setting:?}");
    match reason {
        Some(reason) => assert!(
            is_delivered(delivery, reason, request),
            "{record:?} {request:#?} {setting:?}"
        ),
        None => assert_eq!(request.instructions, request.agent, "{setting:?}"),
    }
}

fn is_delivered(delivery: PayloadDelivery, reason: &str, request: &Request) -> bool {
    match delivery {
        PayloadDelivery::Message => {
            let mut items = request.input.iter();
            items.any(|item| item.contains(r#""developer""#) && item.contains(reason))
        }
        _ => request.instructions.contains(reason),
    }
}

/// Asserts that each agent that has answered beside others has got its payload.
fn check_branches(setting: &Setting, observation: &Observation) {
    let is_stopped = observation.outcome.is_err() || setting.budgets.is_some();
    let moves_on = setting.edges.is_some_and(super::Edges::is_before_turn);
    let Some(delivery) = setting.delivery.filter(|_| !is_stopped && !moves_on) else {
        return;
    };
    let records = observation.handoffs.iter();
    for record in records.filter(|record| record.outcome == HandoffOutcome::FannedOut) {
        let reason = record.payload["reason"].as_str().unwrap();
        let mut requests = observation.requests.iter();
        let is_shown = requests
            .any(|request| *request.agent == *record.to && is_delivered(delivery, reason, request));
        let is_person = setting.person_name() == Some(&*record.to);
        assert!(is_shown || is_person, "{record:?} {setting:?}");
    }
}

/// Asserts what every limit on handoffs and turns promises.
fn check_limits(setting: &Setting, observation: &Observation) {
    let count = |is_it: &dyn Fn(&HandoffRecord) -> bool| {
        let records = observation.handoffs.iter();
        records.filter(|record| is_it(record)).count()
    };
    let policy = &setting.policy;
    // A person is told as often as it takes.
    let failed = count(&|record| {
        matches!(record.outcome, HandoffOutcome::Failed(_))
            && setting.person_name() != Some(&*record.from)
    });
    let allowed = policy.retries.map_or(0, |retries| retries.per_run as usize);
    assert!(failed <= allowed, "{failed} failed handoffs: {setting:?}");
    let taken = |trigger_counts: &dyn Fn(&HandoffRecord) -> bool| {
        count(&|record| record.outcome == HandoffOutcome::Taken && trigger_counts(record))
    };
    if let Some(limit) = policy.loops.handoffs
        && !matches!(policy.loops.at_limit, AtLoopLimit::Redirect(_))
    {
        // Moves by a budget or after a fan-out are no handoffs that could be refused.
        let taken = taken(&|record| {
            !matches!(
                record.trigger,
                HandoffTrigger::Budget | HandoffTrigger::FanOut
            )
        });
        assert!(taken <= limit as usize, "{taken} handoffs: {setting:?}");
    }
    assert!(observation.requests.len() <= setting.max_turns as usize);
}

/// Asserts that no request was made beyond a budget.
fn check_budgets(setting: &Setting, observation: &Observation) {
    let Some(budgets) = &setting.budgets else {
        return;
    };
    // Another agent may go on beyond a budget.
    if matches!(budgets.at_limit, AtBudget::HandTo(_)) {
        return;
    }
    let price = budgets.prices.first().map(|(_, price)| *price);
    let all = observation.requests.len() + observation.expert_requests;
    let allowed = allowed_requests(budgets.run, price);
    assert!(all <= allowed, "{all} requests: {setting:?}");
    for (agent, budget) in &budgets.agents {
        let of_agent = |request: &&Request| *request.agent == **agent;
        let mut asked = observation.requests.iter().filter(of_agent).count();
        if &**agent == "Expert" {
            asked += observation.expert_requests;
        }
        let allowed = allowed_requests(*budget, price);
        assert!(asked <= allowed, "{asked} requests of {agent}: {setting:?}");
    }
}

/// The number of requests after which a budget is used up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]
fn allowed_requests(budget: Budget, price: Option<Price>) -> usize {
    let by_turns = budget.turns.map(|turns| turns as usize);
    let by_tokens = budget.tokens.map(|tokens| tokens.div_ceil(TOKENS) as usize);
    let by_cost = budget.cost.zip(price).map(|(cost, price)| {
        let of_one = price.cost(&response([]).usage);
        (cost / of_one).ceil() as usize
    });
    // The tests have budgets of no time at all.
    let by_time = budget.time.map(|_| 0);
    let limits = [by_turns, by_tokens, by_cost, by_time];
    limits.into_iter().flatten().min().unwrap_or(usize::MAX)
}

/// Returns `true` if every call has exactly one output, after it, and every output has a call.
fn is_paired(items: &Items) -> bool {
    let of = |kind: ItemKind| {
        let items = items.iter().enumerate();
        let items = items.filter(move |(_, item)| item.kind() == kind);
        let ids = items.map(|(index, item)| (item.call_id().unwrap().into_owned(), index));
        ids.collect::<Vec<_>>()
    };
    let (calls, outputs) = (of(ItemKind::FunctionCall), of(ItemKind::FunctionCallOutput));
    calls.len() == outputs.len()
        && calls.iter().all(|(id, call)| {
            let matching: Vec<_> = outputs.iter().filter(|(other, _)| other == id).collect();
            matches!(matching.as_slice(), [(_, output)] if output > call)
        })
}
