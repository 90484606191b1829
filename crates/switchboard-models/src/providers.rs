//! Models by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use switchboard_core::callback::BoxError;
use switchboard_core::model::ModelHandle;

/// The name of the model that needs no network.
const OFFLINE: &str = "offline";

/// The default model at OpenAI.
#[cfg(feature = "http")]
const DEFAULT_MODEL: &str = "gpt-5.6-luna";

/// Makes a model from its name at a provider.
type ModelFactory = dyn Fn(&str) -> Result<ModelHandle, BoxError> + Send + Sync;

/// A registry of models by name. The longest registered prefix that ends at a `/` chooses the
/// provider, and the rest is the model's name there. White space around names is ignored; control
/// characters are an error.
///
/// | name | model |
/// | --- | --- |
/// | `openai/gpt-5.2`, `gpt-5.2` | over Responses |
/// | `chat/llama3.1` | over Chat Completions |
/// | `offline` | [`OfflineModel`](crate::OfflineModel) |
/// | `yours/anything` | what you registered |
///
/// A GPT-5 model over HTTP has default settings
/// ([`default_model_settings`](crate::default_model_settings)) for agents without settings of their own.
///
/// ```
/// use switchboard_core::model::ModelHandle;
/// use switchboard_models::Providers;
/// use switchboard_models::OfflineModel;
///
/// let providers = Providers::from_env().register("demo", |_name| Ok(OfflineModel::new().into()));
/// let model: ModelHandle = providers.model("demo/any")?;
/// # Ok::<(), switchboard_models::ModelNotFound>(())
/// ```
#[derive(Clone)]
pub struct Providers {
    factories: BTreeMap<String, Arc<ModelFactory>>,
    /// The prefix of the provider for names without one.
    fallback: Option<String>,
    default_name: String,
}

impl Providers {
    /// A registry of the offline model alone, or an empty one without the feature `offline`.
    pub fn new() -> Self {
        Self {
            factories: BTreeMap::new(),
            fallback: None,
            default_name: OFFLINE.to_owned(),
        }
    }

    /// A registry of OpenAI, or of the server that the environment sets: `OPENAI_API_KEY`,
    /// `OPENAI_BASE_URL`, `OPENAI_ORG_ID`, `OPENAI_PROJECT_ID`.
    ///
    /// The default model is `OPENAI_DEFAULT_MODEL`; if that is not set, one of OpenAI's with a key
    /// and else the offline model (with the feature `offline`). A model that the environment names is
    /// never replaced by the offline one: without a key for OpenAI, [`Providers::default_model`] is
    /// then an error.
    #[cfg(feature = "http")]
    pub fn from_env() -> Self {
        Self::from_vars(|name| std::env::var(name).ok())
    }

    /// Like [`Providers::from_env`], with variables looked up by `var`: for tests, or for keys from
    /// a vault.
    #[cfg(feature = "http")]
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        let endpoint = crate::Endpoint::from_vars(&var);
        let named = var("OPENAI_DEFAULT_MODEL").unwrap_or_default();
        let default_name = match (named.trim(), endpoint.has_key()) {
            ("", false) if cfg!(feature = "offline") => OFFLINE.to_owned(),
            ("", _) => DEFAULT_MODEL.to_owned(),
            (name, _) => name.to_owned(),
        };
        Self {
            default_name,
            ..Self::new().endpoint(endpoint)
        }
    }

    /// Serves `openai/…`, `chat/…` and names without a provider from this endpoint. The client is
    /// made when a model is first requested.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn endpoint(self, endpoint: crate::Endpoint) -> Self {
        use crate::{ChatModel, Client, ResponsesModel, default_model_settings};
        use std::sync::OnceLock;

        let client = Arc::new(OnceLock::new());
        let connect = move |name: &str| -> Result<Client, BoxError> {
            if name.is_empty() {
                return Err(
                    "the model's name is missing, as in openai/gpt-5.2 or chat/llama3.1".into(),
                );
            }
            if let Some(client) = client.get() {
                return Ok(Client::clone(client));
            }
            if endpoint.needs_key() {
                return Err(NO_KEY.into());
            }
            let connected = endpoint.connect()?;
            Ok(client.get_or_init(|| connected).clone())
        };
        let connect_chat = connect.clone();
        let mut providers = self
            .register("openai", move |name| {
                let model = ModelHandle::new(ResponsesModel::new(&connect(name)?, name));
                Ok(model.default_settings(default_model_settings(name)))
            })
            .register("chat", move |name| {
                let model = ModelHandle::new(ChatModel::new(&connect_chat(name)?, name));
                Ok(model.default_settings(default_model_settings(name)))
            });
        providers.fallback = Some("openai".to_owned());
        providers
    }

    /// Registers a provider. `make` gets the part of the name after `prefix/`, which is empty if the
    /// whole name is `prefix`. Of several prefixes that match, such as `house` and `house/fast`, the
    /// longest is used. An empty prefix serves names without a provider.
    #[must_use]
    pub fn register(
        mut self,
        prefix: impl Into<String>,
        make: impl Fn(&str) -> Result<ModelHandle, BoxError> + Send + Sync + 'static,
    ) -> Self {
        let prefix = prefix.into().trim().trim_matches('/').to_owned();
        if prefix.is_empty() {
            self.fallback = Some(String::new());
        }
        self.factories.insert(prefix, Arc::new(make));
        self
    }

    /// Makes the model with this name.
    ///
    /// # Errors
    /// If there is no such provider, or its settings are invalid.
    pub fn model(&self, name: &str) -> Result<ModelHandle, ModelNotFound> {
        let name = name.trim();
        let not_found = |reason: String| ModelNotFound {
            name: name.to_owned(),
            reason,
        };
        if name.is_empty() {
            return Err(not_found("the name is empty".to_owned()));
        }
        if name.contains(char::is_control) {
            return Err(not_found("a name has no control characters".to_owned()));
        }
        if name == OFFLINE && !self.factories.contains_key(OFFLINE) {
            return offline().map_err(not_found);
        }
        let Some((make, rest)) = self.factory(name) else {
            return Err(not_found(self.known_names()));
        };
        let rest = rest.trim();
        if rest.is_empty() && name.ends_with('/') {
            return Err(not_found(
                "the model's name is missing behind the /".to_owned(),
            ));
        }
        make(rest).map_err(|error| not_found(error.to_string()))
    }

    /// The provider of a name, and the model's name there.
    fn factory<'n>(&self, name: &'n str) -> Option<(&ModelFactory, &'n str)> {
        let slashes = name.rmatch_indices('/').map(|(at, _)| at);
        for end in [name.len()].into_iter().chain(slashes) {
            let prefix = name[..end].trim_end();
            if !prefix.is_empty()
                && let Some(make) = self.factories.get(prefix)
            {
                return Some((&**make, name.get(end + 1..).unwrap_or_default()));
            }
        }
        let fallback = self.fallback.as_ref().filter(|_| !name.contains('/'))?;
        Some((&**self.factories.get(fallback)?, name))
    }

    fn known_names(&self) -> String {
        let prefixes = self.factories.keys().filter(|prefix| !prefix.is_empty());
        let offline = cfg!(feature = "offline").then(|| OFFLINE.to_owned());
        let names: Vec<String> = prefixes
            .map(|prefix| format!("{prefix}/…"))
            .chain(offline)
            .collect();
        if names.is_empty() {
            "no provider is registered".to_owned()
        } else {
            format!("there are: {}", names.join(", "))
        }
    }

    /// The name of the default model.
    pub fn default_name(&self) -> &str {
        &self.default_name
    }

    /// Makes the default model; see [`Providers::from_env`].
    ///
    /// # Errors
    /// See [`Providers::model`].
    pub fn default_model(&self) -> Result<ModelHandle, ModelNotFound> {
        self.model(&self.default_name)
    }
}

#[cfg(feature = "offline")]
fn offline() -> Result<ModelHandle, String> {
    Ok(ModelHandle::new(crate::OfflineModel::new()))
}

#[cfg(not(feature = "offline"))]
fn offline() -> Result<ModelHandle, String> {
    Err("this program was built without it: \
         turn on the feature \"offline\" of switchboard-models, or name another model"
        .to_owned())
}

#[cfg(all(feature = "http", feature = "offline"))]
const NO_KEY: &str = "there is no key: set OPENAI_API_KEY, name another server with \
                      OPENAI_BASE_URL, or use the model \"offline\"";
#[cfg(all(feature = "http", not(feature = "offline")))]
const NO_KEY: &str =
    "there is no key: set OPENAI_API_KEY, or name another server with OPENAI_BASE_URL";

impl Default for Providers {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.factories.keys().collect();
        write!(f, "Providers({names:?}, default {})", self.default_name)
    }
}

/// The error of [`Providers::model`]: there is no such provider, or its settings are invalid.
#[derive(Debug)]
pub struct ModelNotFound {
    name: String,
    reason: String,
}

impl fmt::Display for ModelNotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no model {:?}: {}", self.name, self.reason)
    }
}

impl std::error::Error for ModelNotFound {}

#[cfg(all(test, not(feature = "offline")))]
mod tests_without_offline {
    use super::*;

    #[test]
    fn the_error_for_the_offline_model_names_the_feature() {
        let error = Providers::new().default_model().unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no model \"offline\": this program was built without it: turn on the feature \
             \"offline\" of switchboard-models, or name another model"
        );
    }

    #[test]
    #[cfg(feature = "http")]
    fn without_a_key_the_error_says_what_to_set() {
        let error = Providers::from_vars(|_| None).default_model().unwrap_err();
        assert!(error.to_string().contains("set OPENAI_API_KEY"), "{error}");
    }
}

#[cfg(all(test, feature = "http", feature = "offline"))]
mod tests {
    use super::*;

    fn with_key(name: &str) -> Option<String> {
        (name == "OPENAI_API_KEY").then(|| "sk-something".to_owned())
    }

    #[test]
    fn a_name_chooses_a_provider() {
        let providers = Providers::from_vars(with_key);
        for (name, model) in [
            ("openai/gpt-5.2", "gpt-5.2"),
            ("gpt-5.2", "gpt-5.2"),
            ("chat/meta-llama/Llama-3", "meta-llama/Llama-3"),
            ("offline", "offline"),
            (" openai / gpt-5.2 ", "gpt-5.2"),
            ("ft:gpt-4o:acme::x", "ft:gpt-4o:acme::x"),
        ] {
            assert_eq!(providers.model(name).unwrap().name(), model, "{name}");
        }
        assert_eq!(providers.default_name(), DEFAULT_MODEL);
        for (name, reason) in [
            ("foo/bar", "openai/…"),
            ("openai/", "missing"),
            (" ", "empty"),
            ("openai", "missing"),
            ("chat", "missing"),
            ("chat/ ", "missing"),
            ("/x", "openai/…"),
            ("gpt\r\nX: y", "control"),
        ] {
            let error = providers.model(name).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn the_longest_registered_prefix_is_used() {
        let named = |prefix: &'static str| {
            move |name: &str| -> Result<ModelHandle, BoxError> {
                Err(format!("{prefix} makes {name:?}").into())
            }
        };
        let providers = Providers::from_vars(with_key)
            .register("house", named("house"))
            .register(" house/fast/ ", named("fast"));
        let made = |name: &str| providers.model(name).unwrap_err().to_string();
        assert!(made("house/a/b").ends_with(r#"house makes "a/b""#));
        assert!(made("house").ends_with(r#"house makes """#));
        assert!(made("house/fast/a").ends_with(r#"fast makes "a""#));
        assert_eq!(providers.model("plain").unwrap().name(), "plain");
        let providers = providers.register("", named("none"));
        let error = providers.model("plain").unwrap_err().to_string();
        assert!(error.ends_with(r#"none makes "plain""#), "{error}");
    }

    #[test]
    fn a_default_model_that_is_set_is_not_replaced() {
        let set = |name: &str| (name == "OPENAI_DEFAULT_MODEL").then(|| " gpt-9\n".to_owned());
        let providers = Providers::from_vars(set);
        assert_eq!(providers.default_name(), "gpt-9");
        let error = providers.default_model().unwrap_err().to_string();
        assert!(error.contains("OPENAI_API_KEY"), "{error}");
    }

    #[test]
    fn without_a_key_the_default_is_offline_and_openai_is_an_error() {
        let providers = Providers::from_vars(|_| None);
        assert_eq!(providers.default_model().unwrap().name(), "offline");
        let error = providers.model("openai/gpt-5.2").unwrap_err().to_string();
        assert!(error.contains("OPENAI_API_KEY"), "{error}");
        // Other servers may need no key.
        let local = |name: &str| {
            (name == "OPENAI_BASE_URL").then(|| "http://localhost:11434/v1".to_owned())
        };
        Providers::from_vars(local).model("chat/llama3.1").unwrap();
        let offline = Providers::new().model("openai/x").unwrap_err().to_string();
        assert!(offline.contains("offline"), "{offline}");
    }
}
