//! The policy and the budgets of a team's runs.

use std::num::NonZeroU32;
use std::time::Duration;

use switchboard_core::run::{
    AnnouncedHandoffs, ApprovalGuardrails, AtBudget, AtLoopLimit, BranchFailures, Budget, Budgets,
    FanOut, HandoffPolicy, HandoffRetries, LoopLimits, Price, ResumeChecks, SeveralHandoffs,
};

use crate::models;
use crate::resolve::ResolvedTeam;
use crate::types::{
    AnnouncedSpec, ApprovalGuardrailsSpec, AtBudgetSpec, AtLoopLimitSpec, BranchFailuresSpec,
    BudgetSpec, LimitSpec, LoopsSpec, PolicySpec, PriceSpec, ResumeChecksSpec, RunSpec,
    SeveralHandoffsSpec,
};

/// The number of failed handoffs in a run that a model is told of, unless the file sets it.
pub(crate) const RETRIES_PER_RUN: u32 = 5;

/// The number of failures of one handoff that a model is told of, unless the file sets it.
pub(crate) const RETRIES_PER_EDGE: u32 = 2;

/// The policy of runs: the base, with the points that the file sets.
pub(crate) fn handoff_policy(run: &RunSpec) -> HandoffPolicy {
    let mut policy = match run.policy {
        PolicySpec::Production => HandoffPolicy::production(),
        PolicySpec::Reference => HandoffPolicy::reference(),
    };
    if let Some(retries) = run.retries {
        policy.retries = Some(HandoffRetries::new(
            retries.per_run.unwrap_or(RETRIES_PER_RUN),
            retries.per_edge.unwrap_or(RETRIES_PER_EDGE),
        ));
    }
    policy.loops = loop_limits(&run.loops, policy.loops);
    if let Some(several) = &run.several_handoffs {
        policy.several = match several {
            SeveralHandoffsSpec::First => SeveralHandoffs::First,
            SeveralHandoffsSpec::Choose => SeveralHandoffs::AskToChoose,
            SeveralHandoffsSpec::Refuse => SeveralHandoffs::Refuse,
            SeveralHandoffsSpec::FanOut(spec) => {
                let fan_out = match &spec.join {
                    Some(agent) => FanOut::to_agent(agent.as_str()),
                    None => FanOut::to_caller(),
                };
                SeveralHandoffs::FanOut(fan_out.failures(match spec.failures {
                    BranchFailuresSpec::Tell => BranchFailures::TellJoin,
                    BranchFailuresSpec::Fail => BranchFailures::FailRun,
                }))
            }
        };
    }
    match &run.announced_handoffs {
        None => {}
        Some(AnnouncedSpec::English(false)) => policy.announced = None,
        Some(AnnouncedSpec::English(true)) => {
            policy.announced = Some(AnnouncedHandoffs::default());
        }
        Some(AnnouncedSpec::Table(words)) => {
            let phrases = words.phrases.iter();
            let announced = phrases.fold(AnnouncedHandoffs::default(), |announced, phrase| {
                announced.phrase(phrase)
            });
            policy.announced = Some(announced);
        }
    }
    if let Some(time) = run.approval_guardrails {
        policy.approval_guardrails = match time {
            ApprovalGuardrailsSpec::BeforeDecision => ApprovalGuardrails::BeforeDecision,
            ApprovalGuardrailsSpec::AfterDecision => ApprovalGuardrails::AfterDecision,
            ApprovalGuardrailsSpec::Both => ApprovalGuardrails::Both,
        };
    }
    if let Some(time) = run.resume_checks {
        policy.resume_checks = match time {
            ResumeChecksSpec::BeforeSideEffects => ResumeChecks::BeforeSideEffects,
            ResumeChecksSpec::WhenReached => ResumeChecks::WhenReached,
        };
    }
    policy
}

fn loop_limits(spec: &LoopsSpec, base: LoopLimits) -> LoopLimits {
    let limit =
        |own: Option<LimitSpec>, base: Option<u32>| own.map_or(base, |limit| limit.number());
    let mut limits = base;
    limits.handoffs = limit(spec.handoffs, limits.handoffs);
    limits.per_edge = limit(spec.per_edge, limits.per_edge);
    limits.ping_pong = limit(spec.ping_pong, limits.ping_pong);
    limits.ping_pong_window = spec.ping_pong_window.map(NonZeroU32::get);
    limits.without_progress = limit(spec.without_progress, limits.without_progress);
    match &spec.at_limit {
        None => limits,
        Some(at_limit) => limits.at_limit(match at_limit {
            AtLoopLimitSpec::Fail => AtLoopLimit::Fail,
            AtLoopLimitSpec::Refuse => AtLoopLimit::Refuse,
            AtLoopLimitSpec::Redirect(agent) => AtLoopLimit::Redirect(agent.as_str().into()),
            AtLoopLimitSpec::Answer(text) => AtLoopLimit::Answer(text.as_str().into()),
        }),
    }
}

/// The budgets of runs, with the prices, which services count by as well; `None` if the file has neither.
pub(crate) fn budgets(team: &ResolvedTeam) -> Option<Budgets> {
    let mut budgets = Budgets::new();
    let mut has_any = !team.prices.is_empty();
    if let Some(spec) = &team.run.budget {
        budgets = budgets.run(budget(spec));
        has_any = true;
    }
    for agent in &team.agents {
        if let Some(spec) = &agent.spec.budget {
            budgets = budgets.agent(agent.name.as_str(), budget(spec));
            has_any = true;
        }
        for handoff in &agent.handoffs {
            if let Some(spec) = &handoff.spec.budget {
                let (from, to) = (agent.name.as_str(), handoff.spec.to.as_str());
                budgets = budgets.edge(from, to, budget(spec));
                has_any = true;
            }
        }
    }
    // The offline model costs nothing, unless the file says otherwise.
    budgets = budgets.price(models::OFFLINE, Price::per_million(0.0, 0.0));
    for (name, price) in &team.prices {
        let model = models::name_at_server(name, &team.models);
        budgets = budgets.price(model, price_of(price));
    }
    if team.run.estimate_input {
        budgets = budgets.estimate_input();
    }
    let at_limit = match &team.run.at_budget {
        None | Some(AtBudgetSpec::Fail) => AtBudget::Fail,
        Some(AtBudgetSpec::Finish(text)) => AtBudget::Finish(text.as_str().into()),
        Some(AtBudgetSpec::HandTo(agent)) => AtBudget::HandTo(agent.as_str().into()),
    };
    has_any.then(|| budgets.at_limit(at_limit))
}

/// Returns `true` if a cost is limited and this model has no price.
pub(crate) fn lacks_price(budgets: &Budgets, model: &str) -> bool {
    let agents = budgets.agents.iter().map(|(_, budget)| budget);
    let edges = budgets.edges.iter().map(|(_, _, budget)| budget);
    let mut all = agents.chain(edges).chain([&budgets.run]);
    let has_price = budgets.prices.iter().any(|(name, _)| **name == *model);
    !has_price && all.any(|budget| budget.cost.is_some())
}

fn budget(spec: &BudgetSpec) -> Budget {
    let mut budget = Budget::new();
    budget.turns = spec.turns;
    budget.tokens = spec.tokens;
    budget.cost = spec.cost;
    budget.time = spec
        .seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    budget
}

fn price_of(spec: &PriceSpec) -> Price {
    let price = Price::per_million(spec.input, spec.output);
    match spec.cached {
        Some(cached) => price.cached(cached),
        None => price,
    }
}
