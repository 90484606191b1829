//! The tools and handoffs that a model is offered in a turn, each name once.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::agent::Agent;
use crate::condition::Enabled;
use crate::handoff::{Handoff, Target, ToolNames, default_tool_description, targets};
use crate::model::{HandoffSpec, ToolSpec};
use crate::tool::{HostedTool, Tool, ToolInfo};

/// The tools and handoffs of one turn. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct Offer(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) tools: Arc<[ToolSpec]>,
    pub(crate) hosted: Arc<[HostedTool]>,
    pub(crate) handoffs: Arc<[HandoffSpec]>,
    /// The tools that the provider runs, as user interfaces show them, in the same order.
    hosted_info: Vec<Arc<ToolInfo>>,
    /// The tools as user interfaces show them, in the same order.
    tool_info: Vec<Arc<ToolInfo>>,
    /// The index of each in the agent's own lists.
    tool_at: Vec<usize>,
    handoff_at: Vec<usize>,
    /// The tool names of all handoffs of the agent, enabled or not.
    handoff_names: Vec<Arc<str>>,
    /// A description of two that share a name.
    collision: Option<String>,
    /// The problem with how the agent was built.
    problem: Option<String>,
    names: OnceLock<(Names, Names)>,
}

type Names = Arc<[Arc<str>]>;

impl Offer {
    /// The cached offer of an agent; `None` if it depends on conditions or on the team.
    pub(crate) fn cached<C>(agent: &Agent<C>, names: ToolNames) -> Option<Self> {
        let always = agent.tools().iter().all(|tool| tool.enabled().is_always())
            && agent
                .handoffs()
                .iter()
                .all(|edge| edge.enabled().is_always());
        // A name is resolved by the team, and an agent may be in several; a way back by the conversation.
        let by_name =
            |edge: &Handoff<C>| matches!(edge.target(), Target::Name(_) | Target::Return(_));
        if !always || agent.handoffs().iter().any(by_name) {
            return None;
        }
        let offer = agent.def.caches.offers[names as usize].get_or_init(|| {
            let tools = 0..agent.tools().len();
            let handoffs = 0..agent.handoffs().len();
            let shown = handoffs.filter(|at| !agent.handoffs()[*at].is_hidden());
            Self::new(agent, names, tools.collect(), shown.collect())
        });
        Some(offer.clone())
    }

    /// Resolves the offer, with the tools and handoffs that are enabled.
    pub(crate) fn of_enabled<C>(
        agent: &Agent<C>,
        names: ToolNames,
        tools: Vec<usize>,
        mut handoffs: Vec<usize>,
    ) -> Self {
        handoffs.retain(|at| !agent.handoffs()[*at].is_hidden());
        Self::new(agent, names, tools, handoffs)
    }

    /// Assigns each name to one owner: handoffs before tools, later ones before earlier ones.
    fn new<C>(
        agent: &Agent<C>,
        policy: ToolNames,
        mut tools: Vec<usize>,
        mut handoffs: Vec<usize>,
    ) -> Self {
        // The model calls these by their type, so their names collide with no others.
        let is_hosted = |at: &usize| agent.tools()[*at].as_hosted().is_some();
        let hosted: Vec<usize> = tools.extract_if(.., |at| is_hosted(at)).collect();
        let hosted = hosted.iter().map(|at| &agent.tools()[*at]);
        // Over all handoffs, so that a name does not depend on which are enabled.
        let names = policy.names_of(agent.handoffs());
        let mut owner: HashMap<&str, (bool, usize)> = HashMap::new();
        let mut collision = None;
        let named_tools = tools
            .iter()
            .map(|at| (agent.tools()[*at].name(), (false, *at)));
        let named_handoffs = handoffs.iter().map(|at| (&*names[*at], (true, *at)));
        for (name, entry) in named_tools.chain(named_handoffs) {
            if owner.insert(name, entry).is_some() {
                collision.get_or_insert_with(|| {
                    format!(
                        "agent \"{}\" offers several tools or handoffs named \"{name}\"; the last \
                         handoff, or else the last tool, gets the calls. Give them different names",
                        agent.name()
                    )
                });
            }
        }
        if let Some(collision) = &collision {
            tracing::warn!("{collision}");
            tools.retain(|at| owner.get(agent.tools()[*at].name()) == Some(&(false, *at)));
            handoffs.retain(|at| owner.get(&*names[*at]) == Some(&(true, *at)));
        }
        let spec = |at: &usize| HandoffSpec {
            tool_name: names[*at].clone(),
            ..spec_of(agent, &agent.handoffs()[*at])
        };
        let offered = || tools.iter().map(|at| &agent.tools()[*at]);
        Self(Arc::new(Inner {
            tools: offered().map(|tool| tool.spec().clone()).collect(),
            hosted_info: hosted.clone().map(|tool| tool.info().clone()).collect(),
            hosted: hosted
                .filter_map(|tool| tool.as_hosted().cloned())
                .collect(),
            tool_info: offered().map(|tool| tool.info().clone()).collect(),
            handoffs: handoffs.iter().map(spec).collect(),
            tool_at: tools,
            handoff_at: handoffs,
            problem: unresolved_handoff(agent, &names)
                .or_else(|| agent.problems(&names).first().map(ToString::to_string)),
            handoff_names: names,
            collision,
            names: OnceLock::new(),
        }))
    }

    /// The agents that handoffs lead to, and the names of the tools, for traces.
    pub(crate) fn names(&self) -> (Names, Names) {
        let names = self.names.get_or_init(|| {
            let agents = self.handoffs.iter().map(|spec| spec.to.clone());
            let tools = self.tools.iter().map(|spec| spec.name.clone());
            let hosted = self.hosted.iter().map(|tool| tool.name().into());
            (agents.collect(), tools.chain(hosted).collect())
        });
        names.clone()
    }

    /// A description of two tools or handoffs that share a name.
    pub(crate) fn collision(&self) -> Option<&str> {
        self.collision.as_deref()
    }

    /// The problem with how the agent was built.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The tool with this name, also one that was enabled when the call was made.
    pub(crate) fn tool<'a, C>(&self, agent: &'a Agent<C>, name: &str) -> Option<&'a Tool<C>> {
        match self.tools.iter().position(|spec| &*spec.name == name) {
            Some(at) => agent.tools().get(*self.tool_at.get(at)?),
            None => {
                let mut tools = agent.tools().iter();
                tools.rfind(|tool| tool.name() == name && tool.as_hosted().is_none())
            }
        }
    }

    /// The tool that a call names, as the model and as user interfaces see it.
    pub(crate) fn called_tool(&self, name: &str) -> Option<(&ToolSpec, &Arc<ToolInfo>)> {
        let mut tools = self.tools.iter().zip(&self.tool_info);
        tools.find(|(spec, _)| *spec.name == *name)
    }

    /// The tool of the provider that made an item of this type, as user interfaces show it.
    pub(crate) fn hosted_tool(&self, item_type: &str) -> Option<&Arc<ToolInfo>> {
        let mut tools = self.hosted.iter().zip(&self.hosted_info);
        let (_, info) = tools.find(|(tool, _)| tool.makes(item_type))?;
        Some(info)
    }

    /// Returns `true` if the agent has a handoff of this name, enabled or not.
    pub(crate) fn has_handoff(&self, name: &str) -> bool {
        self.handoff_names.iter().any(|known| **known == *name)
    }

    /// Returns `true` if a call of `name` is a handoff.
    pub(crate) fn is_handoff(&self, name: &str) -> bool {
        self.handoffs.iter().any(|spec| *spec.tool_name == *name)
    }

    /// The handoff with this tool name, also one that was enabled when the call was made.
    pub(crate) fn handoff<'a, C>(&self, agent: &'a Agent<C>, name: &str) -> Option<&'a Handoff<C>> {
        let mut offered = self.handoffs.iter();
        let mut names = self.handoff_names.iter();
        let at = match offered.position(|spec| &*spec.tool_name == name) {
            Some(at) => *self.handoff_at.get(at)?,
            None => names.rposition(|known| &**known == name)?,
        };
        agent.handoffs().get(at)
    }
}

/// A description of a handoff by name whose agent is in no team.
fn unresolved_handoff<C>(agent: &Agent<C>, names: &[Arc<str>]) -> Option<String> {
    let is_unresolved = |handoff: &Handoff<C>| {
        matches!(handoff.target(), Target::Name(_))
            && !matches!(handoff.enabled(), Enabled::Never)
            && targets(agent, handoff).is_empty()
    };
    let at = agent.handoffs().iter().position(is_unresolved)?;
    Some(format!(
        "handoff \"{}\" leads to \"{}\" by name, and the agent is in no team with an agent of that \
         name; put both into a Team",
        names[at],
        agent.handoffs()[at].agent_name()
    ))
}

/// The handoff as the model sees it, with the description and the knowledge of the agent that its
/// name resolves to.
fn spec_of<C>(agent: &Agent<C>, handoff: &Handoff<C>) -> HandoffSpec {
    let mut spec = handoff.spec().clone();
    let targets = targets(agent, handoff);
    if let (Target::Name(name), false) = (handoff.target(), handoff.has_given_description())
        && let Some(target) = targets.first()
    {
        spec.tool_description = default_tool_description(name, target.description()).into();
    }
    spec.knowledge = match targets.as_slice() {
        [target] => target.def.knowledge.clone(),
        targets => targets
            .iter()
            .flat_map(|target| target.def.knowledge.iter().cloned())
            .collect(),
    };
    spec
}

impl std::ops::Deref for Offer {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
