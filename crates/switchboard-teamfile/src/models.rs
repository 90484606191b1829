//! The models that a file names.

use std::collections::BTreeMap;
use std::time::Duration;

use indexmap::IndexMap;
use switchboard_core::ModelHandle;
use switchboard_models::{ChatModel, Endpoint, OfflineModel, Providers, ResponsesModel};

use crate::suggest::{did_you_mean, listed};
use crate::tools::Vars;
use crate::types::{ApiShape, ModelShape, ValueShape};

/// The model that needs no network.
pub(crate) const OFFLINE: &str = "offline";

/// Whether a name can be the name of a model in a file.
///
/// # Errors
/// What is wrong with it, what was probably meant, and what to do.
pub(crate) fn check(
    name: &str,
    models: &IndexMap<String, ModelShape>,
) -> Result<(), (String, Option<String>, String)> {
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
    Err((
        format!("there is no model {name:?}"),
        did_you_mean(name, known()),
        format!(
            "models are {}, openai/NAME (Responses) and chat/NAME (Chat Completions); [models] is \
             where others are described",
            listed(known())
        ),
    ))
}

/// Makes models by name, each once.
pub(crate) struct Models<'a> {
    described: &'a IndexMap<String, ModelShape>,
    vars: Vars<'a>,
    /// Made when a model is named that the file does not describe: only then is the environment asked.
    providers: Option<Providers>,
    base_url: Option<&'a str>,
    made: BTreeMap<String, ModelHandle>,
}

/// Why a model cannot be used as things are.
pub(crate) struct Unusable {
    pub(crate) message: String,
    pub(crate) help: String,
}

impl<'a> Models<'a> {
    pub(crate) fn new(
        described: &'a IndexMap<String, ModelShape>,
        vars: Vars<'a>,
        base_url: Option<&'a str>,
    ) -> Self {
        Self {
            described,
            vars,
            providers: None,
            base_url,
            made: BTreeMap::new(),
        }
    }

    pub(crate) fn model(&mut self, name: &str) -> Result<ModelHandle, Unusable> {
        if let Some(model) = self.made.get(name) {
            return Ok(model.clone());
        }
        let model = match self.described.get(name) {
            Some(shape) => self.at_server(shape)?,
            None if name == OFFLINE => OfflineModel::new().into(),
            None => self.providers().model(name).map_err(|error| Unusable {
                message: error.to_string(),
                help: "or try the team with the model \"offline\", which needs no key".to_owned(),
            })?,
        };
        self.made.insert(name.to_owned(), model.clone());
        Ok(model)
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

    fn at_server(&self, shape: &ModelShape) -> Result<ModelHandle, Unusable> {
        let mut endpoint = match &shape.base_url {
            Some(url) => Endpoint::at(url),
            None => Endpoint::openai(),
        };
        if let Some(key) = &shape.key {
            let value = self.variable(&key.env)?;
            endpoint = endpoint.key(format!("{}{value}", key.prefix));
        }
        for (name, value) in &shape.headers {
            endpoint = match value {
                ValueShape::Text(text) => endpoint.header(name, text),
                ValueShape::Env(variable) => {
                    let value = self.variable(&variable.env)?;
                    endpoint.header(name, format!("{}{value}", variable.prefix))
                }
            };
        }
        if let Some(retries) = shape.retries {
            endpoint = endpoint.retries(retries);
        }
        if let Some(seconds) = shape.timeout_seconds {
            endpoint = endpoint.total_timeout(Duration::try_from_secs_f64(seconds).ok());
        }
        let client = endpoint.connect().map_err(|error| Unusable {
            message: error.to_string(),
            help: "correct this model".to_owned(),
        })?;
        Ok(match shape.api {
            ApiShape::Responses => ResponsesModel::new(&client, shape.name.as_str()).into(),
            ApiShape::Chat => ChatModel::new(&client, shape.name.as_str()).into(),
        })
    }

    fn variable(&self, name: &str) -> Result<String, Unusable> {
        let value = (self.vars)(name).map(|value| value.trim().to_owned());
        value
            .filter(|value| !value.is_empty())
            .ok_or_else(|| Unusable {
                message: format!("the environment has no variable {name}"),
                help: format!(
                    "set it, as in export {name}=…, or run the team with --model offline"
                ),
            })
    }
}
