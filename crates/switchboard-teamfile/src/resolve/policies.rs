//! Resolves rules of handoffs, and checks the policy of runs.

use std::collections::{HashMap, HashSet};

use super::Resolver;
use crate::condition::{ArgumentNames, Condition};
use crate::diagnostics::Severity;
use crate::document::{Step, steps};
use crate::handoff_rules::{Consequence, HandoffRule, HandoffRules};
use crate::policies::{self, RETRIES_PER_EDGE, RETRIES_PER_RUN};
use crate::types::{
    AgentSpec, AnnouncedSpec, AtLoopLimitSpec, FanOutSpec, HandoffRuleSpec, HandoffSpec,
    HandoffTableSpec, SeveralHandoffsSpec,
};

/// The number of handoffs between two agents that a run looks back on for circles.
const LOOKED_BACK_ON: u32 = 32;

impl Resolver<'_> {
    /// Resolves the rules of the handoff at a path.
    pub(super) fn handoff_rules(
        &mut self,
        at: &[Step<'_>],
        specs: &[HandoffRuleSpec],
        names: ArgumentNames<'_>,
    ) -> Option<HandoffRules> {
        let rules = specs.iter().enumerate();
        let rules: Vec<HandoffRule> = rules
            .filter_map(|(index, spec)| {
                let at = [at, steps!["rules", index]].concat();
                let when = match Condition::parse_with(&spec.when, self.context, Some(names)) {
                    Ok(condition) => Some(condition),
                    Err(error) => {
                        let path = [&at[..], steps!["when"]].concat();
                        self.add_expression_error("bad-condition", &path, &spec.when, error);
                        None
                    }
                };
                let consequence = self.consequence(&at, spec);
                Some(HandoffRule {
                    when: when?,
                    consequence: consequence?,
                })
            })
            .collect();
        (!rules.is_empty()).then(|| HandoffRules::new(rules))
    }

    fn consequence(&mut self, at: &[Step<'_>], spec: &HandoffRuleSpec) -> Option<Consequence> {
        let help = "give it refuse, a reason for the model, or redirect, the name of an agent";
        match (&spec.refuse, &spec.redirect) {
            (Some(reason), None) if reason.trim().is_empty() => {
                let path = [at, steps!["refuse"]].concat();
                let message = "the model gets no reason for the refusal";
                let help = "say why, and what it can do instead";
                self.report("bad-rule", &path, message, help);
                None
            }
            (Some(reason), None) => Some(Consequence::Refuse(reason.clone())),
            (None, Some(agent)) => {
                self.check_agent(&[at, steps!["redirect"]].concat(), agent);
                Some(Consequence::Redirect(agent.as_str().into()))
            }
            (None, None) => {
                self.report("bad-rule", at, "this rule has no consequence", help);
                None
            }
            (Some(_), Some(_)) => {
                let path = [at, steps!["redirect"]].concat();
                let message = "a rule refuses or redirects, not both";
                self.report_name("bad-rule", &path, message, "write two rules");
                None
            }
        }
    }

    /// Reports a name at a path that no agent has.
    pub(super) fn check_agent(&mut self, path: &[Step<'_>], name: &str) {
        if !self.spec.agents.contains_key(name) {
            let agents = self.spec.agents.keys().map(String::as_str);
            self.check_name("unknown-agent", path, "agent", name, agents);
        }
    }

    /// Adds a warning at the name of the field at a path.
    pub(super) fn warn_at(
        &mut self,
        code: &'static str,
        path: &[Step<'_>],
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let problem = self.name_problem(code, path, message);
        self.problems
            .add(problem.severity(Severity::Warning).help(help));
    }

    /// Checks the policy of runs: words, agents, and limits that exclude each other.
    pub(super) fn check_policies(&mut self) {
        let run = &self.spec.run;
        if let Some(AnnouncedSpec::Table(words)) = &run.announced_handoffs {
            for (index, phrase) in words.phrases.iter().enumerate() {
                if phrase.trim().is_empty() {
                    let path = steps!["run", "announced_handoffs", "phrases", index];
                    let message = "this phrase is empty, and every answer would have it";
                    self.report("bad-phrase", path, message, "remove it, or write words");
                }
            }
        }
        if let Some(SeveralHandoffsSpec::FanOut(FanOutSpec {
            join: Some(agent), ..
        })) = &run.several_handoffs
        {
            let path = steps!["run", "several_handoffs", "fan_out", "join"];
            self.check_agent(path, agent);
        }
        if let Some(retries) = run.retries {
            let per_run = retries.per_run.unwrap_or(RETRIES_PER_RUN);
            let per_edge = retries.per_edge.unwrap_or(RETRIES_PER_EDGE);
            if retries.per_edge.is_some() && per_edge > per_run {
                let path = steps!["run", "retries", "per_edge"];
                let message = format!("this is never reached: per_run is {per_run}");
                let help = "lower it, or raise per_run";
                self.warn_at("never-reached", path, message, help);
            }
        }
        self.check_loops();
    }

    fn check_loops(&mut self) {
        let run = &self.spec.run;
        let limits = policies::handoff_policy(run).loops;
        match &run.loops.at_limit {
            Some(AtLoopLimitSpec::Redirect(agent)) => {
                self.check_agent(steps!["run", "loops", "at_limit", "redirect"], agent);
            }
            Some(AtLoopLimitSpec::Answer(text)) if text.trim().is_empty() => {
                let path = steps!["run", "loops", "at_limit", "answer"];
                let help = "write the answer that the user gets";
                self.report("empty-answer", path, "this answer is empty", help);
            }
            _ => {}
        }
        let all = [
            limits.handoffs,
            limits.per_edge,
            limits.ping_pong,
            limits.without_progress,
        ];
        if run.loops.at_limit.is_some() && all.iter().all(Option::is_none) {
            let message = "this has no effect: no limit on handoffs is set";
            let help = "set handoffs, per_edge, ping_pong or without_progress";
            let path = steps!["run", "loops", "at_limit"];
            self.warn_at("no-effect", path, message, help);
        }
        if let Some(window) = run.loops.ping_pong_window {
            let path = steps!["run", "loops", "ping_pong_window"];
            match limits.ping_pong {
                None => {
                    let message = "this has no effect: ping_pong is not set";
                    self.warn_at("no-effect", path, message, "set ping_pong");
                }
                Some(limit) if window.get() < limit => {
                    let message = format!("ping_pong is never reached: it is {limit}");
                    let help = "raise the window, or lower ping_pong";
                    self.warn_at("never-reached", path, message, help);
                }
                Some(_) => {}
            }
        }
        // Each handoff takes a turn, unless a condition makes it.
        let max_turns = self.max_turns();
        let handoffs = self
            .spec
            .agents
            .values()
            .flat_map(AgentSpec::handoff_tables);
        let mut conditions = handoffs.flat_map(|edge| [&edge.before_turn, &edge.after_turn]);
        if let Some(limit) = limits.handoffs
            && limit >= max_turns
            && conditions.all(Option::is_none)
        {
            let path = steps!["run", "loops", "handoffs"];
            let message = format!("this is never reached: max_turns of [run] is {max_turns}");
            let help = "lower it, or raise max_turns";
            self.warn_at("never-reached", path, message, help);
        }
        let own = &run.loops;
        let others = [
            ("per_edge", own.per_edge, limits.per_edge, u32::MAX),
            ("ping_pong", own.ping_pong, limits.ping_pong, LOOKED_BACK_ON),
            (
                "without_progress",
                own.without_progress,
                limits.without_progress,
                LOOKED_BACK_ON / 2,
            ),
        ];
        for (name, own, limit, largest) in others {
            let (Some(_), Some(limit)) = (own, limit) else {
                continue;
            };
            let path = steps!["run", "loops", name];
            let earlier = [
                ("handoffs", limits.handoffs),
                (
                    "per_edge",
                    limits.per_edge.filter(|_| name == "without_progress"),
                ),
            ];
            let earlier = earlier
                .into_iter()
                .find_map(|(other, bound)| Some((other, bound.filter(|bound| limit >= *bound)?)));
            if let Some((other, bound)) = earlier {
                let message = format!("this is never reached: {other} is {bound}");
                let help = format!("lower it, or raise {other}");
                self.warn_at("never-reached", path, message, help);
            } else if limit > largest {
                let message =
                    format!("this is never reached: a run looks {LOOKED_BACK_ON} handoffs back");
                let help = format!("set at most {largest}, or use per_edge");
                self.warn_at("never-reached", path, message, help);
            }
        }
    }

    /// The maximum number of turns of a run.
    pub(super) fn max_turns(&self) -> u32 {
        const DEFAULT: u32 = 10;
        self.spec.run.max_turns.unwrap_or(DEFAULT)
    }

    /// Checks the agents that rules redirect to: a redirect begins with the agent that has the
    /// conversation.
    pub(super) fn check_redirects(&mut self) {
        let spec = self.spec;
        for (name, agent) in &spec.agents {
            // The handoff that a redirect to an agent takes.
            let mut edges: HashMap<&str, &HandoffSpec> = HashMap::new();
            for handoff in &agent.handoffs {
                edges.entry(handoff.target()).or_insert(handoff);
            }
            for (index, handoff) in agent.handoffs.iter().enumerate() {
                let HandoffSpec::Table(table) = handoff else {
                    continue;
                };
                for (rule_index, rule) in table.rules.iter().enumerate() {
                    let Some(to) = &rule.redirect else {
                        continue;
                    };
                    let at = steps!["agents", name, "handoffs", index, "rules", rule_index];
                    let path = [at, steps!["redirect"]].concat();
                    self.check_redirect(&path, name, table, to, &edges);
                }
            }
            self.warn_of_redirect_cycles(name, agent, &edges);
        }
    }

    fn check_redirect(
        &mut self,
        path: &[Step<'_>],
        name: &str,
        handoff: &HandoffTableSpec,
        to: &str,
        edges: &HashMap<&str, &HandoffSpec>,
    ) {
        if *to == handoff.to {
            let message = format!("this redirects to {to:?}, where the handoff leads anyway");
            let help = "name another agent, or remove the rule";
            self.report("bad-rule", path, message, help);
            return;
        }
        if to == name {
            let message = format!("this hands the conversation of {name:?} to itself");
            let help = "write refuse, with a reason for the model";
            self.report("bad-rule", path, message, help);
            return;
        }
        let Some(HandoffSpec::Table(edge)) = edges.get(to) else {
            return;
        };
        let wanted = edge.payload.as_ref();
        let sent = handoff.payload.as_ref();
        if wanted.is_some() && format!("{wanted:?}") != format!("{sent:?}") {
            let problem = self.problem(
                "redirect-payload",
                path,
                format!("the handoff of {name:?} to {to:?} asks for another payload"),
            );
            let help = "give both handoffs the same payload: a redirect keeps the model's";
            self.problems
                .add(problem.severity(Severity::Warning).help(help));
        }
    }

    /// Warns of redirects that lead back to where they began. A run that takes one fails.
    fn warn_of_redirect_cycles(
        &mut self,
        name: &str,
        agent: &AgentSpec,
        edges: &HashMap<&str, &HandoffSpec>,
    ) {
        let mut is_done: HashSet<&str> = HashSet::new();
        for (index, handoff) in agent.handoffs.iter().enumerate() {
            // Depth first, with the agents on the path to the current one.
            let mut path = vec![(handoff.target(), redirects(Some(handoff)))];
            while let Some((at, next)) = path.last_mut() {
                let at = *at;
                let Some(to) = next.pop() else {
                    is_done.insert(at);
                    path.pop();
                    continue;
                };
                if let Some(begin) = path.iter().position(|(agent, _)| *agent == to) {
                    let names = path[begin..].iter().map(|(agent, _)| *agent).chain([to]);
                    let circle = names.collect::<Vec<_>>().join(" → ");
                    let message = format!("the rules of {name:?} redirect in a circle: {circle}");
                    let help = "make sure that their conditions never hold at the same time";
                    let path = steps!["agents", name, "handoffs", index];
                    let problem = self.problem("redirect-cycle", path, message);
                    self.problems
                        .add(problem.severity(Severity::Warning).help(help));
                    return;
                }
                if !is_done.contains(to) {
                    path.push((to, redirects(edges.get(to).copied())));
                }
            }
        }
    }
}

/// The agents that the rules of a handoff redirect to.
fn redirects(handoff: Option<&HandoffSpec>) -> Vec<&str> {
    match handoff {
        Some(HandoffSpec::Table(table)) => {
            let rules = table.rules.iter();
            let other = |to: &&str| *to != table.to;
            rules
                .filter_map(|rule| rule.redirect.as_deref())
                .filter(other)
                .collect()
        }
        _ => Vec::new(),
    }
}
