//! Creates a team from a file and the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use switchboard_core::model::ModelHandle;
use switchboard_core::{Agent, RunConfig, Runner, Team};
use switchboard_models::OfflineModel;

use crate::context::Context;
use crate::diagnostics::{Problem, Problems, Source};
use crate::document::{Node, steps};
use crate::models::{self, Models};
use crate::policies;
use crate::resolve::ResolvedTeam;
use crate::team_builder::{ModelRef, TeamBuilder};
use crate::team_file::TeamFile;
use crate::tools::SharedClient;
use crate::types::ValueSpec;

/// Options to create a team; see [`TeamFile::open_options`].
pub struct OpenOptions<'a> {
    file: &'a TeamFile,
    vars: Box<VarLookup<'a>>,
    model: ModelChoice,
    base_url: Option<String>,
    context: Context,
}

type VarLookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

enum ModelChoice {
    /// Each agent has the model that the file gives it.
    PerAgent,
    /// The model of this name for all agents.
    Named(String),
    /// This model for all agents.
    Handle(ModelHandle),
}

impl<'a> OpenOptions<'a> {
    pub(crate) fn new(file: &'a TeamFile) -> Self {
        Self {
            file,
            vars: Box::new(|name| std::env::var(name).ok()),
            model: ModelChoice::PerAgent,
            base_url: None,
            context: file.resolved.context.clone(),
        }
    }

    /// Uses the model of this name for all agents: `offline`, one that the file describes,
    /// `openai/NAME` (Responses), `chat/NAME` (Chat Completions). Any other name is an error.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = ModelChoice::Named(name.into());
        self
    }

    /// Uses this model for all agents.
    #[must_use]
    pub fn model_handle(mut self, model: impl Into<ModelHandle>) -> Self {
        self.model = ModelChoice::Handle(model.into());
        self
    }

    /// Sets the server of models that the file does not describe, instead of `OPENAI_BASE_URL`.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets a value of the file's context. The text is parsed by the type of the file's value;
    /// `customer.tier` is a field of a table.
    ///
    /// # Errors
    /// If the file has no such value, or the text is not of its type.
    pub fn context(mut self, key: &str, text: &str) -> Result<Self, String> {
        self.context.set(key, text)?;
        Ok(self)
    }

    /// Looks up variables with this function instead of in the environment: for tests, or to read keys
    /// from a vault.
    #[must_use]
    pub fn vars(mut self, var: impl Fn(&str) -> Option<String> + 'a) -> Self {
        self.vars = Box::new(var);
        self
    }

    /// Creates the team.
    ///
    /// # Errors
    /// Environment variables that the file names and that are not set, and models that cannot be
    /// used.
    pub fn open(self) -> Result<OpenTeam, Problems> {
        let resolved = &self.file.resolved;
        // Many tools unset a variable by making it empty.
        let vars = |name: &str| (self.vars)(name).filter(|value| !value.trim().is_empty());
        let mut models = Models::new(&resolved.models, &vars, self.base_url.as_deref());
        let chosen = match self.model {
            ModelChoice::PerAgent => None,
            ModelChoice::Handle(model) => Some((model.clone(), model.name().to_owned())),
            ModelChoice::Named(name) => {
                models::check_name(&name, &resolved.models)
                    .map_err(|problem| Problems::one(*problem))?;
                let model = models.model(&name);
                Some((model.map_err(|problem| Problems::one(*problem))?, name))
            }
        };
        if let Some((model, name)) = &chosen
            && let Some(budgets) = policies::budgets(resolved)
            && policies::lacks_price(&budgets, model.name())
        {
            let message = format!("a budget limits the cost, and {name:?} has no price");
            let problem = Problem::without_file("no-price", message);
            let help = format!("write it under [prices]: {name:?} = {{ input = …, output = … }}");
            return Err(Problems::one(problem.help(help)));
        }
        let (team, config) = TeamBuilder {
            resolved,
            root: self.file.root(),
            folder: self.file.folder(),
            vars: &vars,
            client: Some(SharedClient::default()),
            model: &mut |wanted| match (&chosen, wanted) {
                (Some((model, _)), _) => Ok(model.clone()),
                (None, ModelRef::Named(name)) => models.model(name),
                (None, ModelRef::Remote(remote)) => models.remote(remote),
            },
            problems: Problems::new(self.file.source().clone()),
        }
        .build()?;
        let uses_base_url = models.uses_base_url();
        let model_name = |agent| match &chosen {
            Some((_, name)) => name.clone(),
            None => resolved.model_of(agent).to_owned(),
        };
        let agents = resolved.agents.iter();
        let models = agents.map(|agent| (agent.name.clone(), model_name(agent)));
        let store = store_address(self.file, &vars);
        let team = OpenTeam::new(resolved, team, config, self.context, models.collect())?;
        Ok(OpenTeam {
            store,
            uses_base_url,
            ..team
        })
    }
}

/// The address of the store of conversations. The path of a file is relative to the team file.
pub(crate) fn store_address(
    file: &TeamFile,
    vars: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Arc<str>>, Problems> {
    let address = match &file.resolved.conversations.store {
        None => return Ok(None),
        Some(ValueSpec::Text(address)) => address.clone(),
        Some(ValueSpec::Env(variable)) => {
            let name = &variable.env;
            let value = vars(name).ok_or_else(|| {
                let message = format!("the environment has no variable {name} for the store");
                let span = file.root().span_of(steps!["conversations", "store"]);
                let mut problems = Problems::new(file.source().clone());
                let problem = Problem::without_file("variable", message);
                problems.add_at(problem.help(format!("set it, as in export {name}=…")), span);
                problems
            })?;
            format!("{}{}", variable.prefix, value.trim())
        }
    };
    let address = match address.strip_prefix("sqlite:") {
        Some(path) if !path.starts_with("//") => {
            format!("sqlite:{}", file.folder().join(path).display())
        }
        _ => address,
    };
    Ok(Some(address.into()))
}

impl fmt::Debug for OpenOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenOptions({})", self.file.path().display())
    }
}

/// A team that can run. Cloning is cheap.
#[derive(Clone)]
pub struct OpenTeam {
    team: Arc<Team<Context>>,
    start: Agent<Context>,
    config: Arc<RunConfig<Context>>,
    context: Arc<Context>,
    /// The names of the agents' models.
    models: Arc<BTreeMap<String, String>>,
    /// The address of the store of conversations, or the problem with it.
    store: Result<Option<Arc<str>>, Problems>,
    uses_base_url: bool,
}

impl OpenTeam {
    fn new(
        resolved: &ResolvedTeam,
        team: Team<Context>,
        config: RunConfig<Context>,
        context: Context,
        models: BTreeMap<String, String>,
    ) -> Result<Self, Problems> {
        let start = team.get(&resolved.start).cloned().ok_or_else(|| {
            let message = format!("there is no agent {:?} to start with", resolved.start);
            Problems::one(Problem::without_file("unknown-agent", message))
        })?;
        Ok(Self {
            start,
            team: Arc::new(team),
            config: Arc::new(config),
            context: Arc::new(context),
            models: Arc::new(models),
            store: Ok(None),
            uses_base_url: false,
        })
    }

    /// Creates the team with offline models and without secrets.
    pub(crate) fn for_inspection(resolved: &ResolvedTeam, root: &Node) -> Result<Self, Problems> {
        let (team, config) = TeamBuilder {
            resolved,
            root,
            folder: Path::new(""),
            vars: &|_| Some("x".to_owned()),
            client: None,
            model: &mut |_| Ok(OfflineModel::new().into()),
            problems: Problems::new(Source::new(Path::new(""), "")),
        }
        .build()?;
        let context = resolved.context.clone();
        Self::new(resolved, team, config, context, BTreeMap::new())
    }

    /// The agents, the one that starts first.
    pub fn team(&self) -> &Team<Context> {
        &self.team
    }

    /// The agents, shared with this team.
    pub fn shared_team(&self) -> Arc<Team<Context>> {
        self.team.clone()
    }

    /// The agent that gets the conversation first.
    pub fn start(&self) -> &Agent<Context> {
        &self.start
    }

    /// The configuration of runs.
    pub fn config(&self) -> &RunConfig<Context> {
        &self.config
    }

    /// The address of the store of conversations, if the file names one. It may hold a password.
    ///
    /// # Errors
    /// An environment variable that the file names for it and that is not set.
    pub fn store(&self) -> Result<Option<&str>, Problems> {
        match &self.store {
            Ok(address) => Ok(address.as_deref()),
            Err(problems) => Err(problems.clone()),
        }
    }

    /// Returns `true` if a model of the team is one that [`OpenOptions::base_url`] applies to:
    /// `openai/NAME` or `chat/NAME`.
    pub fn uses_base_url(&self) -> bool {
        self.uses_base_url
    }

    /// The context of runs.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the same team with another context, such as one for each customer.
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

    /// The name of an agent's model, for display.
    pub fn model_name(&self, agent: &str) -> Option<&str> {
        self.models.get(agent).map(String::as_str)
    }

    /// Returns a runner that starts with the first agent, with the file's settings and context.
    pub fn runner(&self) -> Runner<Context, Arc<Context>> {
        self.runner_from(&self.start)
    }

    /// Returns a runner that starts with another agent, such as the last one of an earlier run.
    pub fn runner_from(&self, agent: &Agent<Context>) -> Runner<Context, Arc<Context>> {
        Runner::new(agent)
            .context(self.context.clone())
            .replace_config(self.config.clone())
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
