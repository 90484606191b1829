//! The types of policies, budgets and rules of handoffs.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::Deserialize;

/// The policy that the other fields of a run change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "policy")]
#[serde(rename_all = "snake_case")]
pub(crate) enum PolicySpec {
    /// Failed handoffs are told to the model, circles without progress are stopped, and what can be
    /// refused is refused before a side effect.
    #[default]
    Production,
    /// The behaviour of the OpenAI Agents SDK.
    Reference,
}

/// The number of failed handoffs that a model is told of: a payload that does not fit, a condition that
/// no longer holds, a handoff that does not exist. The next failure ends the run.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[schemars(rename = "retries")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetriesSpec {
    /// The number in the whole run. 0 ends the run with the first failure. Without it, 5.
    pub(crate) per_run: Option<u32>,
    /// The number for one handoff of one agent. Without it, 2.
    pub(crate) per_edge: Option<u32>,
}

/// Limits on handoffs in one run, so that agents do not pass the conversation around in circles. A limit
/// that is not set is that of the policy.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "loops")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LoopsSpec {
    /// The number of handoffs.
    pub(crate) handoffs: Option<LimitSpec>,
    /// The number of handoffs from one agent to another.
    pub(crate) per_edge: Option<LimitSpec>,
    /// The number of handoffs in a row between the same two agents, back and forth.
    pub(crate) ping_pong: Option<LimitSpec>,
    /// The number of last handoffs among which `ping_pong` counts, whatever came between. Without it, those in a
    /// row.
    pub(crate) ping_pong_window: Option<NonZeroU32>,
    /// The number of times that one agent may hand over to another while no tool runs and nobody says
    /// anything. Without it, 3.
    pub(crate) without_progress: Option<LimitSpec>,
    /// The consequence of reaching a limit. Without it, the run fails.
    pub(crate) at_limit: Option<AtLoopLimitSpec>,
}

/// A number, or no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "limit")]
#[serde(untagged)]
pub(crate) enum LimitSpec {
    /// The largest number that is allowed.
    Number(NonZeroU32),
    /// No limit, although the policy has one.
    None(UnlimitedSpec),
}

impl LimitSpec {
    /// The number; `None` without a limit.
    pub(crate) fn number(self) -> Option<u32> {
        match self {
            Self::Number(number) => Some(number.get()),
            Self::None(UnlimitedSpec::Unlimited) => None,
        }
    }
}

/// No limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UnlimitedSpec {
    /// No limit.
    Unlimited,
}

/// The consequence of reaching a limit on handoffs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "at_limit of loops")]
#[serde(rename_all = "snake_case")]
pub(crate) enum AtLoopLimitSpec {
    /// The run fails with an error that names the circle.
    Fail,
    /// The model is told, and the agent keeps the conversation.
    Refuse,
    /// The agent of this name gets the conversation instead.
    Redirect(String),
    /// The run ends with this as its final answer.
    Answer(String),
}

/// The choice among several handoffs in one answer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "several_handoffs policy")]
#[serde(rename_all = "snake_case")]
pub(crate) enum SeveralHandoffsSpec {
    /// The first is taken, and the others are ignored.
    First,
    /// None is taken: the model is told to choose one.
    Choose,
    /// None is taken: the model is told to go on without a handoff.
    Refuse,
    /// The agents answer side by side, and their answers are joined.
    FanOut(FanOutSpec),
}

/// Handoffs that are made side by side.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "fan_out")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FanOutSpec {
    /// The agent that gets the conversation with all answers. Without it, the agent that called the
    /// handoffs.
    pub(crate) join: Option<String>,
    /// The consequence of an agent that fails while others answer beside it.
    pub(crate) failures: BranchFailuresSpec,
}

/// The consequence of an agent that fails while others answer beside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "failures policy")]
#[serde(rename_all = "snake_case")]
pub(crate) enum BranchFailuresSpec {
    /// The agent that joins is told that it could not answer.
    #[default]
    Tell,
    /// The run fails once the others have answered.
    Fail,
}

/// The answers that announce a handoff without making it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "announced_handoffs")]
#[serde(untagged)]
pub(crate) enum AnnouncedSpec {
    /// If true, answers with English words such as "I'll transfer you" are noticed.
    English(bool),
    /// Further words by which answers are noticed.
    Table(AnnouncedTableSpec),
}

/// Words by which agents announce a handoff, beside the English ones.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "announced_handoffs table")]
#[serde(deny_unknown_fields)]
pub(crate) struct AnnouncedTableSpec {
    /// Words and phrases, in any case.
    pub(crate) phrases: Vec<String>,
}

/// The time at which guardrails look at a call that needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "approval_guardrails policy")]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalGuardrailsSpec {
    /// Once, before a person is asked.
    BeforeDecision,
    /// Once, after the call was approved.
    AfterDecision,
    /// Before a person is asked, and again before the call runs.
    Both,
}

/// The time at which a resumed run is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "resume_checks policy")]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResumeChecksSpec {
    /// Added input and the limit of turns are checked before what was approved runs.
    BeforeSideEffects,
    /// Each is checked when the run gets there.
    WhenReached,
}

/// A budget. What is not set has no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[schemars(rename = "budget")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BudgetSpec {
    /// The number of model answers.
    #[schemars(extend("minimum" = 1))]
    pub(crate) turns: Option<u32>,
    /// Tokens of inputs and outputs.
    #[schemars(extend("minimum" = 1, "maximum" = 9007199254740991_u64))]
    pub(crate) tokens: Option<u64>,
    /// The cost, in the currency of `prices`.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(crate) cost: Option<f64>,
    /// The time that models take.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 31536000))]
    pub(crate) seconds: Option<f64>,
}

/// The consequence of using up a budget.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "at_budget behavior")]
#[serde(rename_all = "snake_case")]
pub(crate) enum AtBudgetSpec {
    /// The run fails.
    Fail,
    /// The run ends with the last thing that an agent has said, or with this text if none has said
    /// anything.
    Finish(String),
    /// The agent of this name gets the conversation, and goes on beyond that budget.
    HandTo(String),
}

/// The price of a model, for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[schemars(rename = "price")]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceSpec {
    /// Tokens of inputs.
    #[schemars(extend("minimum" = 0))]
    pub(crate) input: f64,
    /// Tokens of inputs that the provider had cached. Without it, the same as `input`.
    #[schemars(extend("minimum" = 0))]
    pub(crate) cached: Option<f64>,
    /// Tokens of outputs.
    #[schemars(extend("minimum" = 0))]
    pub(crate) output: f64,
}

/// A rule by which a handoff is refused or leads to another agent, with exactly one of `refuse` and
/// `redirect`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "handoff rule")]
#[serde(deny_unknown_fields)]
pub(crate) struct HandoffRuleSpec {
    /// The condition under which the rule applies, such as `not is_open` or `payload.amount > 100`.
    pub(crate) when: String,
    /// Refuses the handoff. The model gets this reason, and the agent keeps the conversation.
    pub(crate) refuse: Option<String>,
    /// The agent that gets the conversation instead.
    pub(crate) redirect: Option<String>,
}

/// The agent that a way back leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[schemars(rename = "way back")]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReturnSpec {
    /// The agent that handed the conversation to this one.
    Previous,
    /// The agent that the conversation began with.
    Start,
}

/// A way in which the payload of a handoff reaches the next agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "delivery")]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeliverSpec {
    /// As a message in front of what the agent sees.
    Message,
    /// At the end of its instructions, in each of its turns.
    Instructions,
    /// For its tools, as `{payload.NAME}`; its model does not see it.
    Context,
}
