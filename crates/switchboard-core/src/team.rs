//! Agents that refer to each other by name.

mod check;
mod connections;
mod cycles;
mod graph;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

pub use check::{Finding, FindingCode, Severity};
pub use graph::{
    AgentBox, EdgeLine, Graph, GraphAgent, GraphEdge, GraphEdgeKind, GraphLayout, LabelLine,
};

use connections::Connections;

use crate::agent::{Agent, Definition};
use crate::error::{Error, ErrorKind};
use crate::handoff::{Handoff, Target, ToolNames};
use crate::output::OutputUnion;
use crate::tool::Tool;

/// A checked set of agents that may refer to each other by name, cycles included.
///
/// ```
/// use switchboard_core::{Agent, Team, handoff};
///
/// let team: Team = Team::new()
///     .agent(Agent::new("Triage").handoff("Billing"))
///     .agent(Agent::new("Billing").handoff(handoff("Triage").tool_name("back")))
///     .build()?;
/// assert_eq!(team["Billing"].handoffs()[0].tool_name(), "back");
/// # Ok::<(), switchboard_core::Error>(())
/// ```
pub struct Team<C = ()> {
    agents: Vec<Agent<C>>,
    /// The agents before their handoffs were resolved: agents used as tools are known by these.
    originals: Members<C>,
}

/// The definitions of a team's members, shared by all of them.
///
/// Agents hold the registry and the registry holds definitions, which refer to other members by
/// index. A definition never holds an agent of its own team, so a team that hands off in a cycle
/// does not leak.
pub(crate) struct Registry<C> {
    definitions: Vec<Arc<Definition<C>>>,
    by_name: HashMap<Arc<str>, usize>,
}

impl<C> Registry<C> {
    pub(crate) fn member(self: &Arc<Self>, index: usize) -> Option<Agent<C>> {
        let definition = self.definitions.get(index)?;
        Some(Agent::member(definition.clone(), self.clone()))
    }

    pub(crate) fn by_name(self: &Arc<Self>, name: &str) -> Option<Agent<C>> {
        self.member(*self.by_name.get(name)?)
    }
}

impl<C> Team<C> {
    /// Returns a builder for a team.
    #[expect(clippy::new_ret_no_self, reason = "a team is made by its builder")]
    pub fn new() -> TeamBuilder<C> {
        TeamBuilder { agents: Vec::new() }
    }

    /// Returns the agent of this name.
    pub fn get(&self, name: &str) -> Option<&Agent<C>> {
        self.agents.get(*self.originals.by_name.get(name)?)
    }

    /// Checks the team, and the agents it uses as tools, for mistakes. The most severe findings
    /// come first. The conversation is assumed to begin with the first agent.
    ///
    /// ```
    /// use switchboard_core::team::FindingCode;
    /// use switchboard_core::{Agent, Team};
    ///
    /// let team: Team = Team::new()
    ///     .agent(Agent::new("Triage").handoff("Billing"))
    ///     .agent(Agent::new("Billing"))
    ///     .build()?;
    /// let findings = team.check();
    /// assert_eq!(findings[0].code, FindingCode::EmptyDescription);
    /// println!("{}", findings[0]);
    /// # Ok::<(), switchboard_core::Error>(())
    /// ```
    pub fn check(&self) -> Vec<Finding> {
        self.check_with(ToolNames::default())
    }

    /// Like [`check`](Self::check), for runs with this
    /// [`RunConfig::tool_names`](crate::RunConfig::tool_names).
    pub fn check_with(&self, names: ToolNames) -> Vec<Finding> {
        check::check(&self.connections(), names)
    }

    /// Checks that every agent of the team answers with one of the types of `U`; see
    /// [`output_union!`](crate::output_union).
    ///
    /// # Errors
    /// A configuration error that names the agents that do not.
    pub fn check_output<U: OutputUnion>(&self) -> Result<(), Error> {
        let types = U::types();
        let is_missing = |agent: &&Agent<C>| {
            let output = agent.output_rust_type();
            !types.iter().any(|(known, _)| Some(*known) == output)
        };
        let missing = self.agents.iter().filter(is_missing);
        let missing = missing.map(|agent| {
            let output = agent.output_type().map_or("text", |output| output.name());
            format!("\"{}\" ({output})", agent.name())
        });
        let missing: Vec<String> = missing.collect();
        if missing.is_empty() {
            return Ok(());
        }
        let known: Vec<&str> = types.into_iter().map(|(_, name)| name).collect();
        let message = format!(
            "these agents answer with a type that is none of {}: {}; add a variant for each",
            known.join(", "),
            missing.join(", ")
        );
        Err(Error::new(ErrorKind::Configuration, message))
    }

    /// Returns the team as a graph, to be drawn.
    pub fn graph(&self) -> Graph {
        self.graph_with(ToolNames::default())
    }

    /// Like [`graph`](Self::graph), for runs with this
    /// [`RunConfig::tool_names`](crate::RunConfig::tool_names).
    pub fn graph_with(&self, names: ToolNames) -> Graph {
        Graph::of(&self.connections(), names)
    }

    fn connections(&self) -> Connections<C> {
        Connections::of(&self.agents, &self.originals.agents)
    }

    /// Returns all agents, in the order they were added.
    pub fn agents(&self) -> &[Agent<C>] {
        &self.agents
    }

    /// Returns the same team, whose agents also have these tools, such as those that a client of a service
    /// brings with its request. Where a name is taken, the agent's own tool or handoff keeps it. People get no
    /// tools, and neither do agents outside the team that the code of a handoff picks.
    ///
    /// ```
    /// use switchboard_core::{Agent, Team, tool};
    ///
    /// let team: Team = Team::new()
    ///     .agent(Agent::new("Triage").handoff("Billing"))
    ///     .agent(Agent::new("Billing"))
    ///     .build()?;
    /// let with_clock = team.with_tools(&[tool("clock").run(|_ctx, (): ()| "noon")]);
    /// assert_eq!(with_clock["Billing"].tools()[0].name(), "clock");
    /// assert_eq!(with_clock["Triage"].handoffs()[0].agent_name(), "Billing");
    /// # Ok::<(), switchboard_core::Error>(())
    /// ```
    #[must_use]
    pub fn with_tools(&self, tools: &[Tool<C>]) -> Self {
        let with_tools = |agent: &Agent<C>| {
            let mut definition = (*agent.def).clone();
            if !definition.is_person {
                let names = ToolNames::default().names_of(&definition.handoffs);
                let own = |name: &str| {
                    agent.tools().iter().any(|tool| tool.name() == name)
                        || names.iter().any(|known| **known == *name)
                };
                let added = tools.iter().filter(|tool| !own(tool.name()));
                definition.tools.extend(added.cloned());
            }
            Arc::new(definition)
        };
        let registry = Arc::new(Registry {
            definitions: self.agents.iter().map(with_tools).collect(),
            by_name: self.originals.by_name.clone(),
        });
        let agents = (0..self.agents.len()).filter_map(|index| registry.member(index));
        Self {
            agents: agents.collect(),
            originals: self.originals.clone(),
        }
    }
}

impl<C> Index<&str> for Team<C> {
    type Output = Agent<C>;

    /// Returns the agent of this name.
    ///
    /// # Panics
    /// If the team has no such agent; [`Team::get`] returns an option instead.
    fn index(&self, name: &str) -> &Agent<C> {
        self.get(name)
            .unwrap_or_else(|| panic!("{}", self.originals.no_such_agent(name)))
    }
}

impl<C> fmt::Debug for Team<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.agents.iter().map(Agent::name))
            .finish()
    }
}

/// Builds a [`Team`]; see [`Team::new`].
#[derive(Debug)]
pub struct TeamBuilder<C = ()> {
    agents: Vec<Agent<C>>,
}

impl<C> TeamBuilder<C> {
    /// Adds an agent, and the agents it hands off to by value. Agents it uses as tools do not
    /// become members, but may hand off to members by name.
    #[must_use]
    pub fn agent(mut self, agent: Agent<C>) -> Self {
        self.agents.push(agent);
        self
    }

    /// Builds the team.
    ///
    /// # Errors
    /// If two agents share a name, a handoff names an agent that the team does not have (also a
    /// handoff of an agent used as a tool), or an agent has an invalid schema. The message lists
    /// all problems.
    pub fn build(self) -> Result<Team<C>, Error> {
        let mut problems = Vec::new();
        let members = Members::collect(self.agents, &mut problems);
        let mut definitions: Vec<Arc<Definition<C>>> = Vec::with_capacity(members.agents.len());
        for agent in &members.agents {
            let mut definition = (*agent.def).clone();
            for handoff in &mut definition.handoffs {
                match members.resolve(handoff) {
                    Ok(resolved) => *handoff = resolved,
                    Err(unknown) => problems.push(format!(
                        "agent \"{}\" hands off to \"{unknown}\": {}",
                        agent.name(),
                        members.no_such_agent(&unknown)
                    )),
                }
            }
            definitions.push(Arc::new(definition));
        }
        members.check_agents_used_as_tools(&mut problems);
        for agent in &members.agents {
            let names = ToolNames::default().names_of(agent.handoffs());
            for problem in agent.problems(&names) {
                problems.push(format!("agent \"{}\": {problem}", agent.name()));
            }
        }
        if !problems.is_empty() {
            let message = format!("this team cannot work: {}", problems.join("; "));
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        let registry = Arc::new(Registry {
            definitions,
            by_name: members.by_name.clone(),
        });
        let agents = (0..members.agents.len()).filter_map(|index| registry.member(index));
        Ok(Team {
            agents: agents.collect(),
            originals: members,
        })
    }
}

/// The agents of a team before their handoffs are resolved.
struct Members<C> {
    agents: Vec<Agent<C>>,
    by_name: HashMap<Arc<str>, usize>,
}

impl_clone! { struct Members<C> { agents, by_name } }

impl<C> Members<C> {
    /// Collects the agents and those they hand off to by value, each once.
    fn collect(agents: Vec<Agent<C>>, problems: &mut Vec<String>) -> Self {
        let mut members = Self {
            agents: Vec::new(),
            by_name: HashMap::new(),
        };
        let mut queue: VecDeque<Agent<C>> = agents.into();
        while let Some(agent) = queue.pop_front() {
            if let Some(index) = members.by_name.get(agent.name_arc()) {
                if !members.agents[*index].ptr_eq(&agent) {
                    problems.push(format!(
                        "two different agents are named \"{}\"; give each its own name",
                        agent.name()
                    ));
                }
                continue;
            }
            for handoff in agent.handoffs() {
                match handoff.target() {
                    Target::Agent(target) => queue.push_back(target.clone()),
                    Target::Member(index) => {
                        queue.extend(agent.team().and_then(|team| team.member(*index)));
                    }
                    Target::Custom(custom) => queue.extend(custom.candidates.iter().cloned()),
                    Target::Name(_) | Target::Return(_) => {}
                }
            }
            let index = members.agents.len();
            members.by_name.insert(agent.name_arc().clone(), index);
            members.agents.push(agent);
        }
        members
    }

    /// Returns the handoff with the index of its target, or the name that is not in the team.
    fn resolve(&self, handoff: &Handoff<C>) -> Result<Handoff<C>, Arc<str>> {
        if let Target::Custom(_) | Target::Return(_) = handoff.target() {
            return Ok(handoff.clone());
        }
        let name = &handoff.spec().to;
        let index = *self.by_name.get(name).ok_or_else(|| name.clone())?;
        let target = &self.agents[index];
        Ok(handoff.to_member(index, target.name_arc(), target.description()))
    }

    /// Checks that agents used as tools, and the agents they lead to, hand off to known names.
    fn check_agents_used_as_tools(&self, problems: &mut Vec<String>) {
        let members = self.agents.iter();
        let mut seen: HashSet<_> = members.map(|agent| Arc::as_ptr(&agent.def)).collect();
        let mut queue: VecDeque<_> = self.agents.iter().flat_map(agents_used_as_tools).collect();
        while let Some(agent) = queue.pop_front() {
            // The names in an agent of another team were resolved there.
            if !seen.insert(Arc::as_ptr(&agent.def)) || agent.team().is_some() {
                continue;
            }
            for handoff in agent.handoffs() {
                match handoff.target() {
                    Target::Name(name) if !self.by_name.contains_key(name) => {
                        problems.push(format!(
                            "agent \"{}\", used as a tool, hands off to \"{name}\": {}",
                            agent.name(),
                            self.no_such_agent(name)
                        ));
                    }
                    Target::Agent(target) => queue.push_back(target.clone()),
                    Target::Custom(custom) => queue.extend(custom.candidates.iter().cloned()),
                    Target::Name(_) | Target::Member(_) | Target::Return(_) => {}
                }
            }
            queue.extend(agents_used_as_tools(&agent));
        }
    }

    fn no_such_agent(&self, name: &str) -> String {
        let mut known: Vec<_> = self
            .by_name
            .keys()
            .map(|name| format!("\"{name}\""))
            .collect();
        known.sort();
        let known = known.join(", ");
        format!("the team has no agent \"{name}\", only {known}")
    }
}

fn agents_used_as_tools<C>(agent: &Agent<C>) -> impl Iterator<Item = Agent<C>> {
    agent.tools().iter().filter_map(Tool::agent).cloned()
}
