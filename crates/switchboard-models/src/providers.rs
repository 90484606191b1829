//! Models by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use switchboard_core::{BoxError, ModelHandle};

use crate::offline::OfflineModel;

/// The name of the model that needs no network.
const OFFLINE: &str = "offline";

/// Makes the model of a name.
type Make = dyn Fn(&str) -> Result<ModelHandle, BoxError> + Send + Sync;

/// Models by name. The longest registered prefix that ends at a `/` chooses the provider, the rest
/// is the model's name there. Names have no control characters, and spaces around them do not count.
///
/// | name | model |
/// | --- | --- |
/// | `openai/gpt-5.2`, `gpt-5.2` | over Responses |
/// | `chat/llama3.1` | over Chat Completions |
/// | `offline` | [`OfflineModel`] |
/// | `yours/anything` | what you registered |
///
/// ```
/// use switchboard_core::ModelHandle;
/// use switchboard_models::Providers;
/// use switchboard_models::OfflineModel;
///
/// let providers = Providers::from_env().register("demo", |_name| Ok(OfflineModel::new().into()));
/// let model: ModelHandle = providers.model("demo/any")?;
/// # Ok::<(), switchboard_models::ModelNotFound>(())
/// ```
#[derive(Clone)]
pub struct Providers {
    makers: BTreeMap<String, Arc<Make>>,
    /// The provider of names without one.
    plain: Option<String>,
    /// The model of who names none.
    default: String,
}

impl Providers {
    /// Only the offline model.
    pub fn new() -> Self {
        Self {
            makers: BTreeMap::new(),
            plain: None,
            default: OFFLINE.to_owned(),
        }
    }

    /// OpenAI, or the server the environment names: `OPENAI_API_KEY`, `OPENAI_BASE_URL`,
    /// `OPENAI_ORG_ID`, `OPENAI_PROJECT_ID`.
    ///
    /// The model of who names none is `OPENAI_DEFAULT_MODEL`. Where that is not set it is one of
    /// OpenAI's, or, without a key, the offline model. A model that the environment names is never
    /// replaced: at OpenAI and without a key, [`Providers::default_model`] is then an error.
    #[cfg(feature = "http")]
    pub fn from_env() -> Self {
        Self::from_vars(|name| std::env::var(name).ok())
    }

    /// Like [`Providers::from_env`], with variables looked up by `var`: for tests, or where keys come
    /// from a vault.
    #[cfg(feature = "http")]
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        let endpoint = crate::Endpoint::from_vars(&var);
        let named = var("OPENAI_DEFAULT_MODEL").unwrap_or_default();
        let default = match (named.trim(), endpoint.has_key()) {
            ("", true) => DEFAULT_MODEL.to_owned(),
            ("", false) => OFFLINE.to_owned(),
            (name, _) => name.to_owned(),
        };
        Self {
            default,
            ..Self::new().at(endpoint)
        }
    }

    /// Serves `openai/…`, `chat/…` and names without a provider from this endpoint. Connections are
    /// made when a model is first asked for.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn at(self, endpoint: crate::Endpoint) -> Self {
        use crate::{ChatModel, ResponsesModel};
        use std::sync::OnceLock;

        // Both share their connections, which are made when a model is first asked for.
        let client = Arc::new(OnceLock::new());
        let connect = move || -> Result<crate::Client, BoxError> {
            if let Some(client) = client.get() {
                return Ok(crate::Client::clone(client));
            }
            if endpoint.needs_key() {
                return Err(
                    "there is no key: set OPENAI_API_KEY, name another server with \
                            OPENAI_BASE_URL, or use the model \"offline\""
                        .into(),
                );
            }
            let made = endpoint.connect()?;
            Ok(client.get_or_init(|| made).clone())
        };
        let connect_chat = connect.clone();
        let mut with = self
            .register("openai", move |name| {
                is_named(name)?;
                Ok(ResponsesModel::new(&connect()?, name).into())
            })
            .register("chat", move |name| {
                is_named(name)?;
                Ok(ChatModel::new(&connect_chat()?, name).into())
            });
        with.plain = Some("openai".to_owned());
        with
    }

    /// A provider of your own: `make` is given what comes after `prefix/`, or nothing where the
    /// whole name is `prefix`. Of several prefixes that fit, such as `house` and `house/fast`, the
    /// longest is taken. An empty one stands for names without a provider.
    #[must_use]
    pub fn register(
        mut self,
        prefix: impl Into<String>,
        make: impl Fn(&str) -> Result<ModelHandle, BoxError> + Send + Sync + 'static,
    ) -> Self {
        let prefix = prefix.into();
        let prefix = prefix.trim().trim_matches('/').to_owned();
        if prefix.is_empty() {
            self.plain = Some(String::new());
        }
        self.makers.insert(prefix, Arc::new(make));
        self
    }

    /// The model of this name.
    ///
    /// # Errors
    /// Where there is no such provider, or it cannot be used as it is set up.
    pub fn model(&self, name: &str) -> Result<ModelHandle, ModelNotFound> {
        let name = name.trim();
        let no_model = |why: String| ModelNotFound {
            name: name.to_owned(),
            why,
        };
        if name.is_empty() {
            return Err(no_model("the name is empty".to_owned()));
        }
        if name.contains(char::is_control) {
            return Err(no_model("a name has no control characters".to_owned()));
        }
        if name == OFFLINE && !self.makers.contains_key(OFFLINE) {
            return Ok(OfflineModel::new().into());
        }
        let Some((make, rest)) = self.maker(name) else {
            return Err(no_model(format!("there are: {}", self.known())));
        };
        let rest = rest.trim();
        if rest.is_empty() && name.ends_with('/') {
            return Err(no_model(
                "the model's name is missing behind the /".to_owned(),
            ));
        }
        make(rest).map_err(|error| no_model(error.to_string()))
    }

    /// Who makes the model of this name, and its name there.
    fn maker<'n>(&self, name: &'n str) -> Option<(&Make, &'n str)> {
        let ends = name.rmatch_indices('/').map(|(at, _)| at);
        for end in [name.len()].into_iter().chain(ends) {
            let prefix = name[..end].trim_end();
            if !prefix.is_empty()
                && let Some(make) = self.makers.get(prefix)
            {
                return Some((&**make, name.get(end + 1..).unwrap_or_default()));
            }
        }
        let plain = self.plain.as_ref().filter(|_| !name.contains('/'))?;
        Some((&**self.makers.get(plain)?, name))
    }

    /// The names there are, for who asked for another.
    fn known(&self) -> String {
        let prefixes = self.makers.keys().filter(|prefix| !prefix.is_empty());
        let known = prefixes.map(|prefix| format!("{prefix}/…"));
        let known: Vec<String> = known.chain([OFFLINE.to_owned()]).collect();
        known.join(", ")
    }

    /// The name of the model of who names none.
    pub fn default_name(&self) -> &str {
        &self.default
    }

    /// The model of who names none; `Providers::from_env` says which that is.
    ///
    /// # Errors
    /// See [`Providers::model`].
    pub fn default_model(&self) -> Result<ModelHandle, ModelNotFound> {
        self.model(&self.default)
    }
}

#[cfg(feature = "http")]
fn is_named(name: &str) -> Result<(), BoxError> {
    if name.is_empty() {
        Err("the model's name is missing, as in openai/gpt-5.2 or chat/llama3.1".into())
    } else {
        Ok(())
    }
}

/// OpenAI's model of who names none.
#[cfg(feature = "http")]
const DEFAULT_MODEL: &str = "gpt-5.6-luna";

impl Default for Providers {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.makers.keys().collect();
        write!(f, "Providers({names:?}, default {})", self.default)
    }
}

/// Why [`Providers::model`] has no model of a name: no such provider, or one that cannot be used as
/// it is set up.
#[derive(Debug)]
pub struct ModelNotFound {
    name: String,
    why: String,
}

impl fmt::Display for ModelNotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no model {:?}: {}", self.name, self.why)
    }
}

impl std::error::Error for ModelNotFound {}

#[cfg(all(test, feature = "http"))]
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
        for (name, why) in [
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
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn names_of_ones_own_are_found() {
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
    fn a_default_that_was_chosen_is_not_replaced() {
        let chosen = |name: &str| (name == "OPENAI_DEFAULT_MODEL").then(|| " gpt-9\n".to_owned());
        let providers = Providers::from_vars(chosen);
        assert_eq!(providers.default_name(), "gpt-9");
        let error = providers.default_model().unwrap_err().to_string();
        assert!(error.contains("OPENAI_API_KEY"), "{error}");
    }

    #[test]
    fn without_a_key_the_default_is_offline_and_openai_says_what_is_missing() {
        let providers = Providers::from_vars(|_| None);
        assert_eq!(providers.default_model().unwrap().name(), "offline");
        let error = providers.model("openai/gpt-5.2").unwrap_err().to_string();
        assert!(error.contains("OPENAI_API_KEY"), "{error}");
        // A server of one's own may need none.
        let local = |name: &str| {
            (name == "OPENAI_BASE_URL").then(|| "http://localhost:11434/v1".to_owned())
        };
        Providers::from_vars(local).model("chat/llama3.1").unwrap();
        let offline = Providers::new().model("openai/x").unwrap_err().to_string();
        assert!(offline.contains("offline"), "{offline}");
    }
}
