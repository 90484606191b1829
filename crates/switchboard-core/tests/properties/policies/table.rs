//! The policies, in each of their forms, and those that cannot meet.

use std::time::Duration;

use switchboard_core::handoff::PayloadDelivery;
use switchboard_core::run::{
    AnnouncedHandoffs, ApprovalGuardrails, AtBudget, AtLoopLimit, BranchFailures, Budget, Budgets,
    FanOut, HandoffRetries, LoopLimits, Price, ResumeChecks, SeveralHandoffs,
};

use crate::policy_world::{AGENTS, Answer, Choice, Edges, Setting, TOKENS, Verdict, WayBack};

/// The part of a setting that a choice is about; choices about the same part exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
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
    Person,
    WayBack,
    Edges,
    Delivery,
}

/// The change of a setting that a choice makes.
pub(super) type Apply = fn(&mut Setting);

/// Every policy, in each of its forms.
pub(super) const POLICIES: &[(About, &str, Apply)] = &[
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
    (About::Budgets, "budget of turns, fail", |s| {
        s.budgets = Some(Limit::Turns.budgets(AtBudget::Fail));
    }),
    (About::Budgets, "budget of turns, finish", |s| {
        s.budgets = Some(Limit::Turns.budgets(AtBudget::Finish("Later.".into())));
    }),
    (About::Budgets, "budget of turns, hand to", |s| {
        s.budgets = Some(Limit::Turns.budgets(AtBudget::HandTo(AGENTS[2].into())));
    }),
    (About::Budgets, "budget of tokens, fail", |s| {
        s.budgets = Some(Limit::Tokens.budgets(AtBudget::Fail));
    }),
    (About::Budgets, "budget of tokens, finish", |s| {
        s.budgets = Some(Limit::Tokens.budgets(AtBudget::Finish("Later.".into())));
    }),
    (About::Budgets, "budget of tokens, hand to", |s| {
        s.budgets = Some(Limit::Tokens.budgets(AtBudget::HandTo(AGENTS[2].into())));
    }),
    (About::Budgets, "budget of cost, fail", |s| {
        s.budgets = Some(Limit::Cost.budgets(AtBudget::Fail));
    }),
    (About::Budgets, "budget of cost, finish", |s| {
        s.budgets = Some(Limit::Cost.budgets(AtBudget::Finish("Later.".into())));
    }),
    (About::Budgets, "budget of cost, hand to", |s| {
        s.budgets = Some(Limit::Cost.budgets(AtBudget::HandTo(AGENTS[2].into())));
    }),
    (About::Budgets, "budget of time, fail", |s| {
        s.budgets = Some(Limit::Time.budgets(AtBudget::Fail));
    }),
    (About::Budgets, "budget of time, finish", |s| {
        s.budgets = Some(Limit::Time.budgets(AtBudget::Finish("Later.".into())));
    }),
    (About::Budgets, "budget of time, hand to", |s| {
        s.budgets = Some(Limit::Time.budgets(AtBudget::HandTo(AGENTS[2].into())));
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
    (About::Person, "a person replies", |s| {
        with_person(s, 1, &[Answer::Reply, Answer::HandBack, Answer::Reply]);
    }),
    (About::Person, "a person hands back", |s| {
        with_person(s, 1, &[Answer::HandBack, Answer::Reply]);
    }),
    (About::Person, "a person hands on", |s| {
        with_person(s, 1, &[Answer::HandTo(2), Answer::ReplyAndHandBack]);
    }),
    (About::Person, "a person replies and hands back", |s| {
        with_person(s, 1, &[Answer::ReplyAndHandBack]);
    }),
    (About::Person, "a person errs", |s| {
        let answers = &[Answer::HandBackInvalid, Answer::HandBack, Answer::Reply];
        with_person(s, 1, answers);
    }),
    (About::Person, "a person where policies lead", |s| {
        with_person(
            s,
            2,
            &[
                Answer::HandBack,
                Answer::Reply,
                Answer::HandTo(0),
                Answer::Reply,
            ],
        );
    }),
    (About::WayBack, "hand back", |s| {
        s.way_back = Some(WayBack::HandBack);
    }),
    (About::WayBack, "return to previous", |s| {
        s.way_back = Some(WayBack::Previous);
    }),
    (About::WayBack, "return to start", |s| {
        s.way_back = Some(WayBack::Start);
    }),
    (About::Edges, "before a turn", |s| {
        s.edges = Some(Edges::Before);
    }),
    (About::Edges, "after a turn", |s| {
        s.edges = Some(Edges::After);
    }),
    (About::Edges, "before a turn, hidden", |s| {
        s.edges = Some(Edges::HiddenBefore);
    }),
    (About::Edges, "before each turn, around", |s| {
        s.edges = Some(Edges::AroundBefore);
    }),
    (About::Edges, "after each turn, around", |s| {
        s.edges = Some(Edges::AroundAfter);
    }),
    (About::Delivery, "payload as a message", |s| {
        s.delivery = Some(PayloadDelivery::Message);
    }),
    (About::Delivery, "payload in the instructions", |s| {
        s.delivery = Some(PayloadDelivery::Instructions);
    }),
    (About::Delivery, "payload in the context", |s| {
        s.delivery = Some(PayloadDelivery::Context);
    }),
];

fn with_person(setting: &mut Setting, agent: usize, answers: &'static [Answer]) {
    setting.person = Some((agent, answers));
    setting.in_conversation = true;
}

/// Policies that cannot meet, with the reason. Those about the same part of a setting cannot either: a run has
/// one of them.
pub(super) const NEVER_MEET: &[(&[&str], &[&str], &str)] = &[
    (
        &[
            "a person replies",
            "a person hands back",
            "a person hands on",
            "a person replies and hands back",
            "a person errs",
        ],
        &[
            "budget of an agent",
            "budget of a handoff",
            "budget of time, fail",
            "budget of time, finish",
            "budget of time, hand to",
        ],
        "the budget is that of the agent that the person answers for, who asks no model and whose time does \
         not count",
    ),
    (
        &["budget of an agent used as a tool"],
        &[
            "hand back",
            "return to previous",
            "return to start",
            "payload as a message",
            "payload in the instructions",
            "payload in the context",
        ],
        "the agent used as a tool hands off to nobody, and nobody to it",
    ),
    (
        &[
            "budget of time, fail",
            "budget of time, finish",
            "budget of time, hand to",
        ],
        &["few turns"],
        "the agent with the budget takes no turn",
    ),
];

/// Returns `true` if two policies can meet in a run.
pub(super) fn can_meet(one: &(About, &str, Apply), other: &(About, &str, Apply)) -> bool {
    let is_listed = NEVER_MEET.iter().any(|(some, others, _)| {
        let is_pair = |a: &str, b: &str| some.contains(&a) && others.contains(&b);
        is_pair(one.1, other.1) || is_pair(other.1, one.1)
    });
    one.0 != other.0 && !is_listed
}

/// The part of a budget that is limited.
#[derive(Debug, Clone, Copy)]
enum Limit {
    Turns,
    Tokens,
    Cost,
    Time,
}

impl Limit {
    /// A budget of three requests, or of no time for the second agent.
    fn budgets(self, at_limit: AtBudget) -> Budgets {
        let budgets = Budgets::new().price("scripted", Price::per_million(1.0, 1.0));
        let budgets = match self {
            Self::Turns => budgets.run(Budget::new().turns(3)),
            Self::Tokens => budgets.run(Budget::new().tokens(2 * TOKENS + 1)),
            Self::Cost => budgets.run(Budget::new().cost(0.000_035)),
            Self::Time => budgets.agent(AGENTS[1], Budget::new().time(Duration::ZERO)),
        };
        budgets.at_limit(at_limit)
    }
}
