//! Agents that refer to each other by name.

mod check;
mod circles;
mod graph;
mod map;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

pub use check::{Finding, FindingCode, Severity};
pub use graph::Graph;

use map::Map;

use crate::agent::{Agent, Definition};
use crate::error::{Error, ErrorKind};
use crate::handoff::{Handoff, Target, ToolNames};

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
    /// The same agents as they were given: those who use them as tools know them so.
    given: Vec<Agent<C>>,
    by_name: HashMap<Arc<str>, usize>,
}

/// What the members of a team know of each other.
///
/// Agents hold the registry and the registry holds definitions, which name other members by
/// their place: there is no way from a definition back to an agent, so no cycle can leak.
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
    /// Begins a team.
    #[expect(clippy::new_ret_no_self, reason = "a team is only had by building it")]
    pub fn new() -> TeamBuilder<C> {
        TeamBuilder { agents: Vec::new() }
    }

    /// The agent of this name.
    pub fn get(&self, name: &str) -> Option<&Agent<C>> {
        self.agents.get(*self.by_name.get(name)?)
    }

    /// Looks the team over: what cannot work, what is probably not meant, and what may be. The
    /// worst comes first. The conversation is taken to begin with the first agent. Agents that
    /// others use as tools are looked over as well.
    ///
    /// ```
    /// use switchboard_core::{Agent, FindingCode, Team};
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

    /// The same for runs that name tools in another way; see
    /// [`RunConfig::tool_names`](crate::RunConfig::tool_names).
    pub fn check_with(&self, names: ToolNames) -> Vec<Finding> {
        check::check(&self.map(), names)
    }

    /// The team as a drawing.
    pub fn graph(&self) -> Graph {
        self.graph_with(ToolNames::default())
    }

    /// The same for runs that name tools in another way.
    pub fn graph_with(&self, names: ToolNames) -> Graph {
        Graph::of(&self.map(), names)
    }

    fn map(&self) -> Map<C> {
        Map::of(&self.agents, &self.given)
    }

    /// All agents, in the order they were added.
    pub fn agents(&self) -> &[Agent<C>] {
        &self.agents
    }
}

impl<C> Index<&str> for Team<C> {
    type Output = Agent<C>;

    /// The agent of this name.
    ///
    /// # Panics
    /// Where the team has none; [`Team::get`] asks without panicking.
    fn index(&self, name: &str) -> &Agent<C> {
        match self.get(name) {
            Some(agent) => agent,
            None => panic!("{}", no_such_agent(name, self.by_name.keys())),
        }
    }
}

impl<C> fmt::Debug for Team<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.agents.iter().map(Agent::name))
            .finish()
    }
}

/// A team in the making; see [`Team::new`].
#[derive(Debug)]
pub struct TeamBuilder<C = ()> {
    agents: Vec<Agent<C>>,
}

impl<C> TeamBuilder<C> {
    /// Adds an agent. The agents it hands off to by value come along. Those it uses as tools do not,
    /// but may hand off to members by name.
    #[must_use]
    pub fn agent(mut self, agent: Agent<C>) -> Self {
        self.agents.push(agent);
        self
    }

    /// The team, if every name leads somewhere.
    ///
    /// # Errors
    /// Where two agents share a name, a handoff names an agent the team does not have (also a handoff
    /// of an agent that is used as a tool), or an agent was built in a way that cannot work. All that is wrong is in the one message.
    pub fn build(self) -> Result<Team<C>, Error> {
        let (members, by_name, mut problems) = collect(self.agents);
        let definitions: Vec<Arc<Definition<C>>> = members
            .iter()
            .map(|agent| {
                let mut definition = (**agent.def()).clone();
                for handoff in &mut definition.handoffs {
                    match linked(handoff, &members, &by_name) {
                        Ok(linked) => *handoff = linked,
                        Err(name) => problems.push(format!(
                            "agent \"{}\" hands off to \"{name}\": {}",
                            agent.name(),
                            no_such_agent(&name, by_name.keys())
                        )),
                    }
                }
                Arc::new(definition)
            })
            .collect();
        problems.extend(lost_in_tools(&members, &by_name));
        for agent in &members {
            let found = agent.problems(ToolNames::default());
            let found = found.iter();
            problems.extend(found.map(|problem| format!("agent \"{}\": {problem}", agent.name())));
        }
        if !problems.is_empty() {
            let message = format!("this team cannot work: {}", problems.join("; "));
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        let count = definitions.len();
        let registry = Arc::new(Registry {
            definitions,
            by_name: by_name.clone(),
        });
        let agents = (0..count).filter_map(|index| registry.member(index));
        Ok(Team {
            agents: agents.collect(),
            given: members,
            by_name,
        })
    }
}

type Collected<C> = (Vec<Agent<C>>, HashMap<Arc<str>, usize>, Vec<String>);

/// The agents given and those they hand off to by value, each once.
fn collect<C>(given: Vec<Agent<C>>) -> Collected<C> {
    let mut members: Vec<Agent<C>> = Vec::new();
    let mut by_name: HashMap<Arc<str>, usize> = HashMap::new();
    let mut problems = Vec::new();
    // Agents given come first, in their order; those they lead to follow.
    let mut waiting: VecDeque<Agent<C>> = given.into();
    while let Some(agent) = waiting.pop_front() {
        match by_name.get(agent.name_arc()) {
            Some(at) if members[*at].ptr_eq(&agent) => continue,
            Some(_) => {
                problems.push(format!(
                    "two different agents are named \"{}\"; give each its own name",
                    agent.name()
                ));
                continue;
            }
            None => by_name.insert(agent.name_arc().clone(), members.len()),
        };
        for handoff in agent.handoffs() {
            match handoff.target() {
                Target::Agent(target) => waiting.push_back(target.clone()),
                Target::Member(index) => {
                    let member = agent.team().and_then(|team| team.member(*index));
                    waiting.extend(member);
                }
                Target::Custom(custom) => waiting.extend(custom.candidates().iter().cloned()),
                Target::Name(_) => {}
            }
        }
        members.push(agent);
    }
    (members, by_name, problems)
}

/// The handoff with its target found in the team; `Err` with the name that is not there.
fn linked<C>(
    handoff: &Handoff<C>,
    members: &[Agent<C>],
    by_name: &HashMap<Arc<str>, usize>,
) -> Result<Handoff<C>, Arc<str>> {
    if let Target::Custom(_) = handoff.target() {
        return Ok(handoff.clone());
    }
    let name = &handoff.spec().agent_name;
    let Some(&at) = by_name.get(name) else {
        return Err(name.clone());
    };
    let target = &members[at];
    Ok(handoff.to_member(at, target.name_arc(), target.description()))
}

/// What is wrong with the names that agents used as tools hand off to, and those they lead to.
fn lost_in_tools<C>(members: &[Agent<C>], by_name: &HashMap<Arc<str>, usize>) -> Vec<String> {
    let mut seen: HashSet<*const Definition<C>> = HashSet::new();
    seen.extend(members.iter().map(|member| Arc::as_ptr(member.def())));
    let mut waiting: VecDeque<Agent<C>> = members.iter().flat_map(asked_by).collect();
    let mut problems = Vec::new();
    while let Some(agent) = waiting.pop_front() {
        // An agent of another team finds its names there.
        if !seen.insert(Arc::as_ptr(agent.def())) || agent.team().is_some() {
            continue;
        }
        for handoff in agent.handoffs() {
            match handoff.target() {
                Target::Name(name) if !by_name.contains_key(name) => problems.push(format!(
                    "agent \"{}\", used as a tool, hands off to \"{name}\": {}",
                    agent.name(),
                    no_such_agent(name, by_name.keys())
                )),
                Target::Agent(target) => waiting.push_back(target.clone()),
                Target::Custom(custom) => waiting.extend(custom.candidates().iter().cloned()),
                Target::Name(_) | Target::Member(_) => {}
            }
        }
        waiting.extend(asked_by(&agent));
    }
    problems
}

/// The agents that an agent uses as tools.
fn asked_by<C>(agent: &Agent<C>) -> impl Iterator<Item = Agent<C>> {
    agent
        .tools()
        .iter()
        .filter_map(|tool| tool.agent().cloned())
}

fn no_such_agent<'a>(name: &str, known: impl Iterator<Item = &'a Arc<str>>) -> String {
    let mut known: Vec<String> = known.map(|name| format!("\"{name}\"")).collect();
    known.sort();
    format!(
        "the team has no agent \"{name}\", only {}",
        known.join(", ")
    )
}
