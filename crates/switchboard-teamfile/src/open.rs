//! From a file to a team that can talk.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use switchboard_core::{Agent, ModelHandle, RunConfig, Runner, Team, WithContext};
use switchboard_models::OfflineModel;

use crate::build::Builder;
use crate::context::Context;
use crate::document::{Node, way};
use crate::file::TeamFile;
use crate::models::{Models, Unusable};
use crate::problem::{Problem, Problems};
use crate::resolve::{AgentPlan, Plan};
use crate::tools::{SharedClient, UnusableTool};

/// How a team is opened; see [`TeamFile::opening`].
pub struct Opening<'a> {
    file: &'a TeamFile,
    vars: Box<Look<'a>>,
    model: Chosen,
    base_url: Option<String>,
    context: Context,
}

/// Looks up a variable of the environment.
type Look<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// The model of all agents, if one was chosen.
enum Chosen {
    EachItsOwn,
    Named(String),
    Ready(ModelHandle),
}

impl<'a> Opening<'a> {
    pub(crate) fn new(file: &'a TeamFile) -> Self {
        Self {
            file,
            vars: Box::new(|name| std::env::var(name).ok()),
            model: Chosen::EachItsOwn,
            base_url: None,
            context: file.plan.context.clone(),
        }
    }

    /// The model of this name answers for all agents: `offline`, one that the file describes,
    /// `openai/NAME` or `NAME` (Responses), `chat/NAME` (Chat Completions).
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Chosen::Named(name.into());
        self
    }

    /// This model answers for all agents.
    #[must_use]
    pub fn model_handle(mut self, model: impl Into<ModelHandle>) -> Self {
        self.model = Chosen::Ready(model.into());
        self
    }

    /// The server of models that the file does not describe, instead of `OPENAI_BASE_URL`.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets a value of the context over the file's. The text is read by the type of what the file has;
    /// `customer.tier` reaches into a table.
    ///
    /// # Errors
    /// Where the file has no such value, or the text is not of its type.
    pub fn context(mut self, key: &str, text: &str) -> Result<Self, String> {
        self.context.set(key, text)?;
        Ok(self)
    }

    /// Looks up variables here instead of in the environment: for tests, or where keys come from a
    /// vault.
    #[must_use]
    pub fn vars(mut self, var: impl Fn(&str) -> Option<String> + 'a) -> Self {
        self.vars = Box::new(var);
        self
    }

    /// The team.
    ///
    /// # Errors
    /// Variables of the environment that the file names and nobody has set, and models that cannot be
    /// used as they are set up.
    pub fn open(self) -> Result<OpenTeam, Problems> {
        let plan = &self.file.plan;
        let mut problems = Problems::new(self.file.source().clone());
        // An empty variable is how many tools say that it is not set.
        let vars = |name: &str| (self.vars)(name).filter(|value| !value.trim().is_empty());
        let mut models = Models::new(&plan.models, &vars, self.base_url.as_deref());
        let chosen = match &self.model {
            Chosen::EachItsOwn => None,
            Chosen::Ready(model) => Some((model.clone(), model.name().to_owned())),
            Chosen::Named(name) => match models.model(name) {
                Ok(model) => Some((model, name.clone())),
                Err(Unusable { message, help }) => {
                    return Err(Problems::one(
                        Problem::elsewhere("model", message).help(help),
                    ));
                }
            },
        };
        let source = self.file.source().clone();
        let root = self.file.root();
        let mut builder = Builder {
            plan,
            folder: self.file.folder(),
            vars: &vars,
            client: Some(SharedClient::default()),
            model: &mut |way_to_model, name| match &chosen {
                Some((model, _)) => Ok(model.clone()),
                None => models.model(name).map_err(|Unusable { message, help }| {
                    let span = root.span_of(way_to_model);
                    Box::new(source.problem("model", span, message).help(help))
                }),
            },
            problem_of_tool: &|tool: &str, unusable| {
                let span = match &unusable {
                    UnusableTool::NotSet { header, .. } => header_span(root, tool, header),
                    UnusableTool::NoClient(_) => root.name_span_of(way!["tools", tool]),
                };
                let (code, message, help) = unusable.told();
                source.problem(code, span, message).help(help)
            },
            problems: &mut problems,
        };
        let (team, config) = builder.build();
        let _ = builder;
        problems.ok_unless_errors()?;
        let team = team.map_err(|problem| Problems::one(*problem))?;
        let start = team.get(&plan.start).cloned();
        let start = start.ok_or_else(|| Problems::one(no_start(&plan.start)))?;
        let shown = |agent: &AgentPlan| match &chosen {
            Some((_, name)) => name.clone(),
            None => agent.model(plan).to_owned(),
        };
        let models = plan.agents.iter();
        Ok(OpenTeam {
            team: Arc::new(team),
            start,
            config: Arc::new(config),
            context: Arc::new(self.context),
            models: Arc::new(
                models
                    .map(|agent| (agent.name.clone(), shown(agent)))
                    .collect(),
            ),
        })
    }
}

fn no_start(name: &str) -> Problem {
    Problem::elsewhere(
        "unknown-agent",
        format!("there is no agent {name:?} to start with"),
    )
}

impl fmt::Debug for Opening<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opening({})", self.file.path().display())
    }
}

/// Where a header of a tool's requests is written, however its name is.
fn header_span(root: &Node, tool: &str, header: &str) -> std::ops::Range<usize> {
    let at = way!["tools", tool, "http", "headers"];
    let name = root.at(at).entries().iter();
    let mut name = name.map(|entry| entry.name.as_str());
    let name = name.find(|name| name.eq_ignore_ascii_case(header));
    root.span_of(&[at, way![name.unwrap_or_default()]].concat())
}

/// A team of a file that can talk. Clones share everything.
#[derive(Clone)]
pub struct OpenTeam {
    team: Arc<Team<Context>>,
    start: Agent<Context>,
    config: Arc<RunConfig<Context>>,
    context: Arc<Context>,
    models: Arc<BTreeMap<String, String>>,
}

impl OpenTeam {
    /// The team without anything of the environment: offline models, no secrets.
    pub(crate) fn in_sight(plan: &Plan) -> Result<Self, Box<Problem>> {
        let mut problems = Problems::new(crate::problem::Source::new(Path::new(""), ""));
        let mut builder = Builder {
            plan,
            folder: Path::new(""),
            vars: &|_| Some("x".to_owned()),
            client: None,
            model: &mut |_, _| Ok(OfflineModel::new().into()),
            problem_of_tool: &|_, unusable| {
                let (code, message, help) = unusable.told();
                Problem::elsewhere(code, message).help(help)
            },
            problems: &mut problems,
        };
        let (team, config) = builder.build();
        let team = team?;
        let start = team.get(&plan.start).cloned();
        Ok(Self {
            start: start.ok_or_else(|| Box::new(no_start(&plan.start)))?,
            team: Arc::new(team),
            config: Arc::new(config),
            context: Arc::new(plan.context.clone()),
            models: Arc::default(),
        })
    }

    /// Its agents, the first one first.
    pub fn team(&self) -> &Team<Context> {
        &self.team
    }

    /// The agent that gets the conversation first.
    pub fn start(&self) -> &Agent<Context> {
        &self.start
    }

    /// The settings of its runs.
    pub fn config(&self) -> &RunConfig<Context> {
        &self.config
    }

    /// The context of its runs.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The same team with another context: for each customer their own.
    ///
    /// ```
    /// use switchboard_teamfile::TeamFile;
    ///
    /// let file = TeamFile::parse("[context]\ntier = 'basic'\n[agents.Desk]\n", "team.toml")?;
    /// let team = file.open()?;
    /// let premium = team.with_context(team.context().clone().with("tier", "premium")?);
    /// assert_eq!(premium.context().get("tier").and_then(|tier| tier.as_str()), Some("premium"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_context(&self, context: Context) -> Self {
        Self {
            context: Arc::new(context),
            ..self.clone()
        }
    }

    /// The name of an agent's model, to be shown.
    pub fn model_name(&self, agent: &str) -> Option<&str> {
        self.models.get(agent).map(String::as_str)
    }

    /// Runs conversations from the first agent, with the file's settings and context.
    pub fn runner(&self) -> Runner<Context, WithContext<Context>> {
        self.runner_from(&self.start)
    }

    /// The same from this agent: the one that had the conversation when it was left.
    pub fn runner_from(&self, agent: &Agent<Context>) -> Runner<Context, WithContext<Context>> {
        Runner::new(agent)
            .context(self.context.clone())
            .config(self.config.clone())
    }
}

impl fmt::Debug for OpenTeam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTeam")
            .field("team", &self.team)
            .field("start", &self.start.name())
            .finish_non_exhaustive()
    }
}
