//! Resolves agents and their handoffs.

use std::collections::HashSet;

use serde_json::Value;
use switchboard_core::agent::Knowledge;

use super::{ResolvedAgent, ResolvedHandoff, Resolver};
use crate::condition::ArgumentNames;
use crate::diagnostics::Severity;
use crate::document::{Step, steps};
use crate::types::{
    AfterToolsSpec, AgentSpec, FilterSpec, HandoffSpec, HandoffTableSpec, KnowledgeSpec,
    RemoteSpec, TextSpec,
};

/// The values of `tool_choice` that are not names of tools.
const TOOL_CHOICES: [&str; 3] = ["auto", "required", "none"];

impl Resolver<'_> {
    pub(super) fn agents(&mut self) -> Vec<ResolvedAgent> {
        let agents = self.spec.agents.iter();
        agents
            .map(|(name, agent)| self.agent(name, agent))
            .collect()
    }

    fn agent(&mut self, name: &str, spec: &AgentSpec) -> ResolvedAgent {
        let at = steps!["agents", name];
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            let message = "this is not a name for an agent";
            self.report_name("bad-name", at, message, "give it one that people can read");
        }
        if let Some(remote) = &spec.a2a {
            self.check_remote(name, spec, remote);
        }
        if let Some(model) = &spec.model {
            self.check_model(steps!["agents", name, "model"], model);
        }
        let known_tools = self.spec.tools.keys().map(String::as_str);
        for (index, tool) in spec.tools.iter().enumerate() {
            let path = steps!["agents", name, "tools", index];
            if !self.spec.tools.contains_key(tool) {
                self.check_name("unknown-tool", path, "tool", tool, known_tools.clone());
            }
            if spec.tools[..index].contains(tool) {
                let message = format!("the tool {tool:?} is listed twice");
                let problem = self.problem("twice", path, message);
                let problem = problem.severity(Severity::Warning);
                self.problems.add(problem.help("remove one of them"));
            }
        }
        if let AfterToolsSpec::StopAt(names) = &spec.after_tools {
            for (index, tool) in names.iter().enumerate() {
                let path = steps!["agents", name, "after_tools", "stop_at", index];
                let own = spec.tools.iter().map(String::as_str);
                self.check_name("unknown-tool", path, "tool of the agent", tool, own);
            }
        }
        self.check_tool_choice(steps!["agents", name, "settings", "tool_choice"], spec);
        let path = [at, steps!["input_guardrails"]].concat();
        self.check_guardrail_names(&path, &spec.input_guardrails);
        let path = [at, steps!["output_guardrails"]].concat();
        self.check_guardrail_names(&path, &spec.output_guardrails);
        let instructions = match &spec.instructions {
            Some(TextSpec::Inline(text)) => Some(text.clone()),
            Some(TextSpec::File(file)) => {
                let content = self.files.read_text(file.reference());
                self.file_content(&[at, steps!["instructions", "file"]].concat(), content)
                    .map(|text| text.trim().to_owned())
            }
            None => None,
        };
        ResolvedAgent {
            name: name.to_owned(),
            instructions,
            knowledge: self.knowledge(name, spec),
            output: self
                .schema(steps!["agents", name, "output"], spec.output.as_ref())
                .map(Value::Object),
            handoffs: self.handoffs(name, spec),
            spec: spec.clone(),
        }
    }

    /// Checks an agent of another server: its address, and the fields that have no effect on it.
    fn check_remote(&mut self, name: &str, spec: &AgentSpec, remote: &RemoteSpec) {
        let at = steps!["agents", name];
        let path = match remote.table() {
            Some(_) => [at, steps!["a2a", "url"]].concat(),
            None => [at, steps!["a2a"]].concat(),
        };
        self.check_remote_address(&path, remote.url());
        let endpoints = remote
            .table()
            .into_iter()
            .flat_map(|table| &table.endpoints);
        for (index, endpoint) in endpoints.enumerate() {
            let path = [at, steps!["a2a", "endpoints", index]].concat();
            self.check_remote_address(&path, endpoint);
        }
        let ignored = [
            ("person", spec.person),
            ("instructions", spec.instructions.is_some()),
            ("explain_handoffs", spec.explain_handoffs),
            ("model", spec.model.is_some()),
            ("knowledge", !spec.knowledge.is_empty()),
            ("tools", !spec.tools.is_empty()),
            ("output", spec.output.is_some()),
        ];
        for (field, is_set) in ignored {
            if is_set {
                let message = format!("{field} has no effect on an agent of another server");
                let help = "remove it, or remove a2a";
                self.warn_at(
                    "ignored-by-remote",
                    &[at, steps![field]].concat(),
                    &message,
                    help,
                );
            }
        }
    }

    fn check_remote_address(&mut self, path: &[Step<'_>], address: &str) {
        let address = address.trim();
        let rest = address
            .strip_prefix("https://")
            .or_else(|| address.strip_prefix("http://"));
        if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/')) {
            let message = "this is no address of an agent";
            let help = "it looks like https://travel.example/a2a/travel";
            self.report("bad-address", path, message.to_owned(), help);
        }
        if rest.is_some_and(|rest| rest.contains('@')) {
            let message = "the address has a password";
            let help = "write a2a = { url = \"…\", key = { env = \"…\" } }";
            self.report("bad-address", path, message.to_owned(), help);
        }
    }

    fn check_tool_choice(&mut self, path: &[Step<'_>], agent: &AgentSpec) {
        let Some(choice) = &agent.settings.tool_choice else {
            return;
        };
        // The default name of a handoff's tool.
        if choice.starts_with("transfer_to_") {
            return;
        }
        let tools = agent.tools.iter().map(String::as_str);
        let handoff_tools = agent
            .handoff_tables()
            .filter_map(|handoff| handoff.tool_name.as_deref());
        let known: Vec<&str> = TOOL_CHOICES
            .into_iter()
            .chain(tools)
            .chain(handoff_tools)
            .collect();
        let known = known.iter().copied();
        self.check_name("unknown-tool", path, "tool of the agent", choice, known);
    }

    fn knowledge(&mut self, name: &str, spec: &AgentSpec) -> Vec<Knowledge> {
        let mut entries = Vec::new();
        for (index, entry) in spec.knowledge.iter().enumerate() {
            match entry {
                KnowledgeSpec::Entry(entry) => {
                    entries.push(Knowledge::new(entry.title.as_str(), entry.text.as_str()));
                }
                KnowledgeSpec::File(file) => {
                    let content = self.files.read_knowledge(file.reference());
                    let path = steps!["agents", name, "knowledge", index, "file"];
                    entries.extend(self.file_content(path, content).unwrap_or_default());
                }
            }
        }
        entries
    }

    fn handoffs(&mut self, name: &str, agent: &AgentSpec) -> Vec<ResolvedHandoff> {
        let mut handoffs = Vec::new();
        let mut seen = HashSet::new();
        for (index, handoff) in agent.handoffs.iter().enumerate() {
            let at = steps!["agents", name, "handoffs", index];
            let (spec, target_path) = match handoff {
                HandoffSpec::Agent(name) => (HandoffTableSpec::to(name), at.to_vec()),
                HandoffSpec::Table(table) => ((**table).clone(), [at, steps!["to"]].concat()),
            };
            let agents = self.spec.agents.keys().map(String::as_str);
            if spec.return_to.is_none()
                && !spec.to.is_empty()
                && !self.spec.agents.contains_key(&spec.to)
            {
                self.check_name("unknown-agent", &target_path, "agent", &spec.to, agents);
            }
            self.check_way(at, &spec);
            if !seen.insert((spec.to.clone(), spec.return_to, spec.tool_name.clone())) {
                let message = format!("{name:?} hands over to {:?} twice", spec.to);
                let problem = self.problem("twice", &target_path, message);
                let help = "remove one of them, or give each a tool_name";
                self.problems
                    .add(problem.severity(Severity::Warning).help(help));
            }
            for (filter_index, filter) in spec.filters.iter().flatten().enumerate() {
                let path = [at, steps!["filters", filter_index]].concat();
                self.check_filter(&path, filter);
                // A redirect brings the payload of another handoff.
                let has_payload =
                    spec.payload.is_some() || self.redirected_to.contains(spec.to.as_str());
                if matches!(filter, FilterSpec::Payload) && !has_payload {
                    let message = "this has no effect: the handoff has no payload";
                    let help = "describe it with payload, or remove the filter";
                    self.warn_at("no-effect", &path, message, help);
                }
            }
            let path = [at, steps!["filters"]].concat();
            self.check_filter_order(&path, spec.filters.as_deref().unwrap_or_default());
            self.validate_handoff_guardrails(
                &[at, steps!["guardrails"]].concat(),
                &spec.guardrails,
            );
            for (filter_index, filter) in spec.return_filters.iter().flatten().enumerate() {
                let path = [at, steps!["return_filters", filter_index]].concat();
                self.check_filter(&path, filter);
            }
            let path = [at, steps!["return_filters"]].concat();
            self.check_filter_order(&path, spec.return_filters.as_deref().unwrap_or_default());
            let when = self.condition(&[at, steps!["when"]].concat(), spec.when.as_ref());
            let path = [at, steps!["before_turn"]].concat();
            let before_turn = self.condition(&path, spec.before_turn.as_ref());
            let path = [at, steps!["after_turn"]].concat();
            let after_turn = self.condition(&path, spec.after_turn.as_ref());
            let path = [at, steps!["returns"]].concat();
            let returns = self.schema(&path, spec.returns.as_ref()).map(Value::Object);
            let payload = self.schema(&[at, steps!["payload"]].concat(), spec.payload.as_ref());
            let payload = payload.map(Value::Object);
            // Without its schema every field would be reported.
            let names = match (&payload, &spec.payload) {
                (None, Some(_)) => ArgumentNames::of_unknown_payload(),
                (payload, _) => ArgumentNames::of_handoff(payload.as_ref()),
            };
            let approve = self.approve(
                &[at, steps!["approve"]].concat(),
                spec.approve.as_ref(),
                names,
            );
            let rules = self.handoff_rules(at, &spec.rules, names);
            handoffs.push(ResolvedHandoff {
                payload,
                when,
                approve,
                rules,
                returns,
                before_turn,
                after_turn,
                spec,
            });
        }
        handoffs
    }

    /// Checks the way that a handoff takes: to an agent or back, by the model or by conditions.
    fn check_way(&mut self, at: &[Step<'_>], spec: &HandoffTableSpec) {
        let field = |name: &'static str| [at, steps![name]].concat();
        match (&spec.return_to, spec.to.is_empty()) {
            (None, true) => {
                let message = "this handoff leads to nobody";
                let help =
                    "give it to, the name of an agent, or return = \"previous\" or \"start\"";
                self.report("bad-handoff", at, message, help);
            }
            (Some(_), false) => {
                let message = "a handoff leads to an agent that is named or back, not both";
                let help = "remove to or return";
                self.report_name("bad-handoff", &field("return"), message, help);
            }
            (Some(_), true) if spec.budget.is_some() => {
                let message = "a way back has no budget of its own";
                let help = "give the agents that it leads to a budget";
                self.report_name("bad-handoff", &field("budget"), message, help);
            }
            (Some(_), true) if spec.returns.is_some() => {
                let message = "a way back returns nothing once more";
                let help =
                    "write returns in the handoff that leads here, or give this one a payload";
                self.report_name("bad-handoff", &field("returns"), message, help);
            }
            _ => {}
        }
        let has_conditions = spec.before_turn.is_some() || spec.after_turn.is_some();
        if has_conditions && spec.payload.is_some() {
            let message = "a handoff that a condition makes has no payload";
            let help = "write two handoffs: one for the model, with the payload, and one for the condition";
            self.report_name("bad-handoff", &field("payload"), message, help);
        }
        if !spec.deliver.is_empty() && spec.payload.is_none() {
            let message = "there is no payload to deliver";
            let help = "describe it with payload, or remove deliver";
            self.report_name("bad-handoff", &field("deliver"), message, help);
        }
        if spec.return_filters.is_some() && spec.returns.is_none() {
            let message = "this has no effect without returns";
            let help = "describe the result with returns";
            self.warn_at("no-effect", &field("return_filters"), message, help);
        }
        if spec.hidden && !has_conditions && !self.redirected_to.contains(spec.to.as_str()) {
            let message = "nothing makes this handoff: it is hidden from the model";
            let help = "give it before_turn or after_turn, or remove hidden";
            self.warn_at("no-effect", &field("hidden"), message, help);
        }
    }
}
