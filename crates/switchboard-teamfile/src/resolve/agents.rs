//! What agents and their handoffs mean.

use std::collections::HashSet;

use serde_json::Value;
use switchboard_core::Knowledge;

use super::{AgentPlan, EdgePlan, Planner};
use crate::document::{Step, way};
use crate::problem::Severity;
use crate::types::{
    AfterToolsShape, AgentShape, EdgeShape, HandoffShape, KnowledgeShape, SettingsShape, TextShape,
};

/// What `tool_choice` may be beside the name of a tool.
const CHOICES: [&str; 3] = ["auto", "required", "none"];

impl Planner<'_> {
    pub(super) fn agents(&mut self) -> Vec<AgentPlan> {
        let shape = self.shape;
        let agents = shape.agents.iter();
        agents
            .map(|(name, agent)| self.agent(name, agent))
            .collect()
    }

    fn agent(&mut self, name: &str, shape: &AgentShape) -> AgentPlan {
        let at = way!["agents", name];
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            let problem = self.problem_of_name("bad-name", at, "this is no name for an agent");
            self.problems
                .add(problem.help("give it one that people can read"));
        }
        if let Some(model) = &shape.model {
            self.check_model(way!["agents", name, "model"], model);
        }
        let tools = self.shape.tools.keys().map(String::as_str);
        for (number, tool) in shape.tools.iter().enumerate() {
            let way = way!["agents", name, "tools", number];
            if !self.shape.tools.contains_key(tool) {
                self.check_name("unknown-tool", way, "tool", tool, tools.clone());
            }
            self.check_twice(way, "tool", tool, &shape.tools[..number]);
        }
        if let AfterToolsShape::StopAt(names) = &shape.after_tools {
            for (number, tool) in names.iter().enumerate() {
                let way = way!["agents", name, "after_tools", "stop_at", number];
                let own = shape.tools.iter().map(String::as_str);
                self.check_name("unknown-tool", way, "tool of the agent", tool, own);
            }
        }
        self.check_tool_choice(
            way!["agents", name, "settings", "tool_choice"],
            &shape.settings,
            shape,
        );
        self.check_guardrails(
            &[at, way!["input_guardrails"]].concat(),
            &shape.input_guardrails,
        );
        self.check_guardrails(
            &[at, way!["output_guardrails"]].concat(),
            &shape.output_guardrails,
        );
        let instructions = match &shape.instructions {
            Some(TextShape::Inline(text)) => Some(text.clone()),
            Some(TextShape::File(file)) => {
                let read = self.files.text(&file.file);
                let read = self.named(way!["agents", name, "instructions", "file"], read);
                read.map(|text| text.trim().to_owned())
            }
            None => None,
        };
        AgentPlan {
            name: name.to_owned(),
            instructions,
            knowledge: self.knowledge(name, shape),
            handoffs: self.handoffs(name, shape),
            shape: shape.clone(),
        }
    }

    fn check_twice(&mut self, way: &[Step<'_>], what: &str, name: &str, before: &[String]) {
        if before.iter().any(|other| other == name) {
            let problem = self.problem("twice", way, format!("the {what} {name:?} is there twice"));
            let problem = problem.severity(Severity::Warning);
            self.problems.add(problem.help("leave one of them out"));
        }
    }

    fn check_tool_choice(&mut self, at: &[Step<'_>], settings: &SettingsShape, agent: &AgentShape) {
        let Some(choice) = &settings.tool_choice else {
            return;
        };
        let edges = agent.handoffs.iter().filter_map(|handoff| match handoff {
            HandoffShape::Edge(edge) => edge.tool_name.as_deref(),
            HandoffShape::To(_) => None,
        });
        let known = CHOICES
            .into_iter()
            .chain(agent.tools.iter().map(String::as_str));
        let known: Vec<&str> = known.chain(edges).collect();
        // Tools of handoffs that are named by default.
        if !choice.starts_with("transfer_to_") {
            let known = known.iter().copied();
            self.check_name("unknown-tool", at, "tool of the agent", choice, known);
        }
    }

    fn knowledge(&mut self, name: &str, shape: &AgentShape) -> Vec<Knowledge> {
        let mut known = Vec::new();
        for (number, entry) in shape.knowledge.iter().enumerate() {
            match entry {
                KnowledgeShape::Entry(entry) => {
                    known.push(Knowledge::new(entry.title.as_str(), entry.text.as_str()));
                }
                KnowledgeShape::File(file) => {
                    let read = self.files.knowledge(&file.file);
                    let way = way!["agents", name, "knowledge", number, "file"];
                    known.extend(self.named(way, read).unwrap_or_default());
                }
            }
        }
        known
    }

    fn handoffs(&mut self, name: &str, shape: &AgentShape) -> Vec<EdgePlan> {
        let mut edges = Vec::new();
        let mut seen = HashSet::new();
        for (number, handoff) in shape.handoffs.iter().enumerate() {
            let at = way!["agents", name, "handoffs", number];
            let (edge, to) = match handoff {
                HandoffShape::To(to) => (EdgeShape::to(to), at.to_vec()),
                HandoffShape::Edge(edge) => ((**edge).clone(), [at, way!["to"]].concat()),
            };
            let agents = self.shape.agents.keys().map(String::as_str);
            if !self.shape.agents.contains_key(&edge.to) {
                self.check_name("unknown-agent", &to, "agent", &edge.to, agents);
            }
            if !seen.insert((edge.to.clone(), edge.tool_name.clone())) {
                let message = format!("{name:?} hands over to {:?} twice", edge.to);
                let problem = self
                    .problem("twice", &to, message)
                    .severity(Severity::Warning);
                let problem = problem.help("leave one of them out, or give each a tool_name");
                self.problems.add(problem);
            }
            for (filter_number, filter) in edge.filters.iter().flatten().enumerate() {
                let way = [at, way!["filters", filter_number]].concat();
                self.check_filter(&way, filter);
            }
            self.check_edge_guardrails(&[at, way!["guardrails"]].concat(), &edge.guardrails);
            let when = self.condition(&[at, way!["when"]].concat(), edge.when.as_ref());
            let payload = self.schema(&[at, way!["payload"]].concat(), edge.payload.as_ref());
            edges.push(EdgePlan {
                payload: payload.map(Value::Object),
                when,
                shape: edge,
            });
        }
        edges
    }
}

impl EdgeShape {
    fn to(to: &str) -> Self {
        Self {
            to: to.to_owned(),
            description: None,
            tool_name: None,
            payload: None,
            filters: None,
            when: None,
            nest_history: None,
            guardrails: Vec::new(),
        }
    }
}
