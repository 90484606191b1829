//! Rules by which handoffs are refused or lead to another agent.

use std::sync::Arc;

use serde_json::Value;
use switchboard_core::guardrail::{HandoffGuardrail, HandoffRequest, HandoffVerdict};
use switchboard_core::handoff::HandoffDecision;

use crate::condition::Condition;
use crate::context::Context;

/// The rules of a handoff, in order.
#[derive(Debug, Clone)]
pub(crate) struct HandoffRules(Arc<[HandoffRule]>);

/// One rule of a handoff.
#[derive(Debug)]
pub(crate) struct HandoffRule {
    pub(crate) when: Condition,
    pub(crate) consequence: Consequence,
}

/// The consequence of a rule that applies.
#[derive(Debug, Clone)]
pub(crate) enum Consequence {
    Refuse(String),
    Redirect(Arc<str>),
}

impl HandoffRules {
    pub(crate) fn new(rules: Vec<HandoffRule>) -> Self {
        Self(rules.into())
    }

    /// The consequence of the first rule that applies: also one whose condition cannot be decided.
    fn consequence(&self, context: &Context, payload: &Value) -> Option<Consequence> {
        let applies = |rule: &&HandoffRule| rule.when.decide(context, payload) != Some(false);
        let rule = self.0.iter().find(applies)?;
        Some(rule.consequence.clone())
    }

    /// A guardrail that asks the rules before a person is asked.
    pub(crate) fn guardrail(&self, to: &str) -> HandoffGuardrail<Context> {
        let rules = self.clone();
        let name = format!("rules of the handoff to {to}");
        HandoffGuardrail::new(name, move |request: HandoffRequest<Context>| {
            let payload = request.payload.as_ref().unwrap_or(&Value::Null);
            match rules.consequence(request.run_context().state(), payload) {
                None => HandoffVerdict::Allow,
                Some(Consequence::Refuse(reason)) => HandoffVerdict::Refuse(reason),
                Some(Consequence::Redirect(to)) => HandoffVerdict::Redirect(to),
            }
        })
    }

    /// The decision on a handoff. It is asked for again when a handoff was approved: the context may be
    /// another than when the person was asked.
    pub(crate) fn decide(&self, context: &Context, payload: &Value) -> HandoffDecision {
        match self.consequence(context, payload) {
            None => HandoffDecision::Proceed,
            Some(Consequence::Refuse(reason)) => HandoffDecision::Refuse(reason),
            Some(Consequence::Redirect(to)) => HandoffDecision::redirect(to),
        }
    }
}
