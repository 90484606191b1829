//! Models by the names that a file uses.

use std::collections::BTreeMap;
use std::time::Duration;

use indexmap::IndexMap;
use switchboard_core::model::ModelHandle;
use switchboard_models::{
    ChatModel, Endpoint, ModelError, OfflineModel, Providers, RemoteAgent, ResponsesModel,
};

use crate::diagnostics::Problem;
use crate::suggest::{did_you_mean, quoted_list};
use crate::tools::Vars;
use crate::types::{ApiSpec, EnvVarSpec, ModelSpec, RemoteSpec, ValueSpec};

/// The name of agents of other servers, where models have names, and for their price.
pub(crate) const REMOTE: &str = "a2a";

/// The model that needs no network.
pub(crate) const OFFLINE: &str = "offline";

/// Checks that a model of this name exists. The problem has no position.
pub(crate) fn check_name(
    name: &str,
    models: &IndexMap<String, ModelSpec>,
) -> Result<(), Box<Problem>> {
    let known = || models.keys().map(String::as_str).chain([OFFLINE]);
    if known().any(|known| known == name) {
        return Ok(());
    }
    if let Some((provider, model)) = name.split_once('/')
        && matches!(provider, "openai" | "chat")
        && !model.trim().is_empty()
    {
        return Ok(());
    }
    let problem = Problem::without_file("unknown-model", format!("there is no model {name:?}"));
    let suggestion = did_you_mean(name, known()).or_else(|| provider_suggestion(name));
    Err(Box::new(problem.suggestion(suggestion).help(format!(
        "models are {}, openai/NAME (Responses) and chat/NAME (Chat Completions), at another \
         provider's server with --base-url; [models] is where others are described",
        quoted_list(known())
    ))))
}

/// The suggestion for a name without the prefix of a provider.
fn provider_suggestion(name: &str) -> Option<String> {
    let has_provider = name.contains('/');
    let name = name.rsplit('/').next().unwrap_or(name).trim();
    let is_name = name.chars().any(|c| c.is_ascii_digit() || c == '-');
    let is_name = is_name || has_provider && !name.is_empty();
    is_name.then(|| format!("did you mean \"openai/{name}\" or \"chat/{name}\"?"))
}

/// The name by which a model reports its usage.
pub(crate) fn name_at_server<'n>(
    name: &'n str,
    models: &'n IndexMap<String, ModelSpec>,
) -> &'n str {
    if let Some(spec) = models.get(name) {
        return &spec.name;
    }
    let provided = name
        .strip_prefix("openai/")
        .or_else(|| name.strip_prefix("chat/"));
    provided.unwrap_or(name).trim()
}

/// Creates models by name, each once.
pub(crate) struct Models<'a> {
    specs: &'a IndexMap<String, ModelSpec>,
    vars: Vars<'a>,
    /// Created when a model is used that the file does not describe: only then is the environment read.
    providers: Option<Providers>,
    base_url: Option<&'a str>,
    cache: BTreeMap<String, ModelHandle>,
}

/// The error for a model that cannot be used in this environment; it has no position.
fn unusable(message: impl Into<String>, help: impl Into<String>) -> Box<Problem> {
    Box::new(Problem::without_file("model", message).help(help))
}

impl<'a> Models<'a> {
    pub(crate) fn new(
        specs: &'a IndexMap<String, ModelSpec>,
        vars: Vars<'a>,
        base_url: Option<&'a str>,
    ) -> Self {
        Self {
            specs,
            vars,
            providers: None,
            base_url,
            cache: BTreeMap::new(),
        }
    }

    pub(crate) fn model(&mut self, name: &str) -> Result<ModelHandle, Box<Problem>> {
        if let Some(model) = self.cache.get(name) {
            return Ok(model.clone());
        }
        let model = match self.specs.get(name) {
            Some(spec) => self.connect(spec)?,
            None if name == OFFLINE => OfflineModel::new().into(),
            None => self.checked_providers()?.model(name).map_err(|error| {
                let help = "or try the team with the model \"offline\", which needs no key";
                unusable(error.to_string(), help)
            })?,
        };
        self.cache.insert(name.to_owned(), model.clone());
        Ok(model)
    }

    /// Returns `true` if a model was created that the base URL applies to.
    pub(crate) fn uses_base_url(&self) -> bool {
        self.providers.is_some()
    }

    /// The providers, if the address of their server can be used.
    fn checked_providers(&mut self) -> Result<&Providers, Box<Problem>> {
        let address = match self.base_url {
            Some(_) => None,
            None => (self.vars)("OPENAI_BASE_URL").filter(|address| !address.trim().is_empty()),
        };
        if let Some(address) = address {
            Endpoint::check_address(&address).map_err(|error| {
                unusable(
                    format!("OPENAI_BASE_URL cannot be used: {error}"),
                    "write it in full, as in http://localhost:11434/v1, or unset the variable",
                )
            })?;
        }
        Ok(self.providers())
    }

    fn providers(&mut self) -> &Providers {
        let (vars, base_url) = (self.vars, self.base_url);
        self.providers.get_or_insert_with(|| {
            Providers::from_vars(|name| match (name, base_url) {
                ("OPENAI_BASE_URL", Some(url)) => Some(url.to_owned()),
                _ => vars(name),
            })
        })
    }

    /// An agent of another server.
    pub(crate) fn remote(&self, spec: &RemoteSpec) -> Result<ModelHandle, Box<Problem>> {
        let mut endpoint = Endpoint::at(spec.url());
        if let Some(table) = spec.table() {
            endpoint = self.with_secrets(endpoint, table.key.as_ref(), &table.headers)?;
            if let Some(seconds) = table.timeout_seconds {
                let time = Duration::try_from_secs_f64(seconds).ok();
                endpoint = endpoint.total_timeout(time);
            }
        }
        let wrong =
            |error: ModelError| unusable(error.to_string(), "correct the address of the agent");
        let client = endpoint.connect().map_err(wrong)?;
        let mut agent = RemoteAgent::new(&client);
        for address in spec.table().into_iter().flat_map(|table| &table.endpoints) {
            agent = agent.allow_endpoint(address.trim()).map_err(wrong)?;
        }
        Ok(agent.into())
    }

    /// Sets the key and the headers of an endpoint.
    fn with_secrets(
        &self,
        mut endpoint: Endpoint,
        key: Option<&EnvVarSpec>,
        headers: &IndexMap<String, ValueSpec>,
    ) -> Result<Endpoint, Box<Problem>> {
        if let Some(key) = key {
            let value = self.variable(&key.env)?;
            endpoint = endpoint
                .key(format!("{}{value}", key.prefix))
                .key_variable(&key.env);
        }
        for (name, value) in headers {
            endpoint = match value {
                ValueSpec::Text(text) => endpoint.header(name, text),
                ValueSpec::Env(variable) => {
                    let value = self.variable(&variable.env)?;
                    endpoint.header(name, format!("{}{value}", variable.prefix))
                }
            };
        }
        Ok(endpoint)
    }

    fn connect(&self, spec: &ModelSpec) -> Result<ModelHandle, Box<Problem>> {
        let mut endpoint = match &spec.base_url {
            Some(url) => Endpoint::at(url),
            None => Endpoint::openai(),
        };
        endpoint = self.with_secrets(endpoint, spec.key.as_ref(), &spec.headers)?;
        if let Some(retries) = spec.retries {
            endpoint = endpoint.retries(retries);
        }
        if let Some(seconds) = spec.timeout_seconds {
            endpoint = endpoint.total_timeout(Duration::try_from_secs_f64(seconds).ok());
        }
        let client = endpoint
            .connect()
            .map_err(|error| unusable(error.to_string(), "correct this model"))?;
        Ok(match spec.api {
            ApiSpec::Responses => ResponsesModel::new(&client, spec.name.as_str()).into(),
            ApiSpec::Chat => ChatModel::new(&client, spec.name.as_str()).into(),
        })
    }

    fn variable(&self, name: &str) -> Result<String, Box<Problem>> {
        let value = (self.vars)(name).unwrap_or_default().trim().to_owned();
        if value.is_empty() {
            return Err(unusable(
                format!("the environment has no variable {name}"),
                format!("set it, as in export {name}=…, or run the team with --model offline"),
            ));
        }
        Ok(value)
    }
}
