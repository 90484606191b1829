//! The team of a conversation, loaded as the command line asks.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use switchboard_core::{Agent, Runner};
use switchboard_models::Endpoint;
use switchboard_teamfile::{Context, OpenTeam, TeamFile, closest};

use crate::args;
use crate::failure::Failure;

/// A team that is ready to run.
#[derive(Clone)]
pub(crate) struct LoadedTeam {
    /// The path of the team file, for display.
    pub(crate) name: String,
    /// The agents, their models and settings.
    pub(crate) open: OpenTeam,
    max_turns: Option<u32>,
    /// The paths of the values of the context that the user has set.
    chosen: BTreeSet<String>,
    /// The longest time of a run.
    pub(crate) timeout: Option<Duration>,
}

impl LoadedTeam {
    /// Wraps a team that is open already.
    pub(crate) fn new(path: &Path, open: OpenTeam) -> Self {
        Self {
            name: path.display().to_string(),
            open,
            max_turns: None,
            chosen: BTreeSet::new(),
            timeout: None,
        }
    }

    /// Opens a team file with the options of the command line and more values for its context.
    pub(crate) fn load(
        file: &TeamFile,
        args: &args::TeamOptions,
        context: &[(String, String)],
    ) -> Result<Self, Failure> {
        let team = Self::load_with_any_server(file, args, context)?;
        if args.base_url.is_some() && !team.open.uses_base_url() {
            let mut models: Vec<&str> = team
                .names()
                .filter_map(|agent| team.open.model_name(agent))
                .collect();
            models.sort_unstable();
            models.dedup();
            return Err(Failure::usage(
                format!(
                    "--base-url does not apply to the model {}",
                    models.join(", ")
                ),
                "it is for --model openai/NAME and --model chat/NAME; [models] of the team file has \
                 the servers of its own models",
            ));
        }
        Ok(team)
    }

    /// The same without the check that `--base-url` applies to a model: it may apply to speech.
    pub(crate) fn load_with_any_server(
        file: &TeamFile,
        args: &args::TeamOptions,
        context: &[(String, String)],
    ) -> Result<Self, Failure> {
        if let Some(url) = &args.base_url {
            // Its error would otherwise be one of the model.
            Endpoint::check_address(url).map_err(|error| {
                Failure::usage(
                    format!("--base-url cannot be used: {error}"),
                    "write it in full, as in http://localhost:11434/v1",
                )
            })?;
        }
        let mut options = file.open_options();
        if let Some(model) = &args.model {
            options = options.model(model);
        }
        if let Some(url) = &args.base_url {
            options = options.base_url(url);
        }
        for (key, value) in args.context.iter().chain(context) {
            options = options.context(key, value).map_err(|problem| {
                Failure::usage(
                    format!("the context cannot have {key}={value}: {problem}"),
                    "keys and their types are those of [context] in the team file",
                )
            })?;
        }
        Ok(Self {
            max_turns: args.max_turns.map(Into::into),
            chosen: args.context.iter().map(|(key, _)| key.clone()).collect(),
            timeout: args.timeout,
            ..Self::new(file.path(), options.open()?)
        })
    }

    /// The same team with another value of the context.
    pub(crate) fn with_value(&self, key: &str, text: &str) -> Result<Self, String> {
        let context = self.open.context().clone().parse_value(key, text)?;
        let mut team = self.clone();
        team.open = self.open.with_context(context);
        team.chosen.insert(key.to_owned());
        Ok(team)
    }

    /// The same team with the context of another one.
    pub(crate) fn with_context_of(&self, other: &Self) -> Self {
        Self {
            open: self.open.with_context(other.open.context().clone()),
            chosen: other.chosen.clone(),
            ..self.clone()
        }
    }

    /// The values of the context that the user has set, by path.
    pub(crate) fn chosen_context(&self) -> Map<String, Value> {
        let context = self.open.context();
        let values = self.chosen.iter();
        values
            .filter_map(|path| Some((path.clone(), context.get(path)?.clone())))
            .collect()
    }

    /// All agents.
    pub(crate) fn agents(&self) -> &[Agent<Context>] {
        self.open.team().agents()
    }

    /// The names of all agents.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.agents().iter().map(Agent::name)
    }

    /// The agent of this name, if the team has one.
    pub(crate) fn get(&self, name: &str) -> Option<&Agent<Context>> {
        self.open.team().get(name)
    }

    /// The agent of a name that the user typed.
    pub(crate) fn agent(&self, name: &str) -> Result<&Agent<Context>, Failure> {
        self.get(name).ok_or_else(|| {
            let help = match closest(name, self.names()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => {
                    let names: Vec<&str> = self.names().collect();
                    format!("the agents of {} are: {}", self.name, names.join(", "))
                }
            };
            Failure::usage(format!("there is no agent \"{name}\""), help)
        })
    }

    /// A runner that starts with the team's first agent.
    pub(crate) fn runner(&self) -> Runner<Context, Arc<Context>> {
        let runner = self.open.runner();
        match self.max_turns {
            Some(turns) => runner.max_turns(turns),
            None => runner,
        }
    }
}
