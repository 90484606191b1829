//! The settings of a connection to a provider.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use switchboard_core::model::RetrySettings;
use url::Url;

use crate::wire::client::{Client, display_address, is_openai, parse_address};
use crate::wire::model_error::ModelError;
use crate::wire::retry_advice;
use crate::wire::secret::Secret;

/// The address of OpenAI's API.
const OPENAI: &str = "https://api.openai.com/v1";

/// Defines methods that set a field each.
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $value:expr;)*) => {
        $(
            $(#[$doc])*
            pub fn $field(mut self, $field: $type) -> Self {
                self.$field = $value;
                self
            }
        )*
    };
}

/// The address and settings of a provider: OpenAI, or any server with a compatible API (Ollama,
/// vLLM, llama.cpp, a gateway).
///
/// ```
/// use switchboard_models::{ChatModel, Endpoint};
///
/// let ollama = Endpoint::at("http://localhost:11434/v1").connect()?;
/// let model = ChatModel::new(&ollama, "llama3.1");
/// # Ok::<(), switchboard_models::ModelError>(())
/// ```
///
/// The proxy comes from `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` unless
/// [`Endpoint::proxy`] sets one; SOCKS proxies are not supported. Certificates come from the system,
/// or from `SSL_CERT_FILE` and `SSL_CERT_DIR`, and are loaded once per process.
#[derive(Clone)]
#[must_use]
pub struct Endpoint {
    pub(crate) base_url: String,
    pub(crate) key: Option<Secret>,
    pub(crate) key_variable: Option<String>,
    pub(crate) organization: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) body: BTreeMap<String, Value>,
    pub(crate) retries: RetrySettings,
    pub(crate) connect_timeout: Duration,
    pub(crate) read_timeout: Duration,
    pub(crate) total_timeout: Option<Duration>,
    pub(crate) max_response_bytes: usize,
    pub(crate) proxy: Option<Secret>,
    pub(crate) certificates: Option<PathBuf>,
}

impl Endpoint {
    /// OpenAI's API. Set the key with [`Endpoint::key`].
    pub fn openai() -> Self {
        Self::at(OPENAI)
    }

    /// A server at this address, such as `http://localhost:11434/v1`. A path of a request at its end
    /// (`/responses`, `/chat/completions`) is removed.
    pub fn at(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            key_variable: None,
            organization: None,
            project: None,
            headers: Vec::new(),
            body: BTreeMap::new(),
            retries: retry_advice::default_settings(),
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(120),
            total_timeout: Some(Duration::from_secs(600)),
            max_response_bytes: 64 << 20,
            proxy: None,
            certificates: None,
        }
    }

    /// Checks that a text is the address of a server. Errors do not quote it, as it may hold a password.
    ///
    /// ```
    /// use switchboard_models::Endpoint;
    ///
    /// assert!(Endpoint::check_address("http://localhost:11434/v1").is_ok());
    /// assert!(Endpoint::check_address("localhost").is_err());
    /// ```
    ///
    /// # Errors
    /// If the text is no address of HTTP.
    pub fn check_address(address: &str) -> Result<(), ModelError> {
        let checked = parse_address(address);
        checked.map(drop).map_err(ModelError::configuration)
    }

    /// The endpoint that the environment sets: `OPENAI_API_KEY`, `OPENAI_BASE_URL` (OpenAI's by
    /// default), `OPENAI_ORG_ID`, `OPENAI_PROJECT_ID`. Empty variables count as not set.
    pub fn from_env() -> Self {
        Self::from_vars(|name| std::env::var(name).ok())
    }

    /// Like [`Endpoint::from_env`], with variables looked up by `var`: for tests, or for keys from a
    /// vault.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        let var = |name| {
            let value = var(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let base_url = var("OPENAI_BASE_URL").unwrap_or_else(|| OPENAI.to_owned());
        Self {
            key: var("OPENAI_API_KEY").map(Secret::new),
            key_variable: Some("OPENAI_API_KEY".to_owned()),
            organization: var("OPENAI_ORG_ID"),
            project: var("OPENAI_PROJECT_ID"),
            ..Self::at(base_url)
        }
    }

    /// Returns `true` if a key is set.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Returns `true` if this is OpenAI, which needs a key, and none is set.
    pub(crate) fn needs_key(&self) -> bool {
        let is_authorization = |name: &str| name.eq_ignore_ascii_case("authorization");
        let has_authorization = self.headers.iter().any(|(name, _)| is_authorization(name));
        let url = Url::parse(self.base_url.trim());
        url.is_ok_and(|url| is_openai(&url)) && self.key.is_none() && !has_authorization
    }

    /// Sets the key, sent as `Authorization: Bearer …`. An empty one removes it.
    pub fn key(mut self, key: impl AsRef<str>) -> Self {
        let key = key.as_ref();
        self.key = (!key.trim().is_empty()).then(|| Secret::new(key));
        self.key_variable = None;
        self
    }

    /// Adds a header to every request. Its value is treated as a secret. Headers of the connection,
    /// such as `host` and `content-length`, cannot be set.
    pub fn header(mut self, name: impl Into<String>, value: impl AsRef<str>) -> Self {
        let value = Secret::new(value.as_ref());
        self.headers.push((name.into(), value));
        self
    }

    /// Adds a field to every request's body. It replaces one of the same name; a null removes that
    /// one. `stream` cannot be set.
    pub fn body_field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.body.insert(name.into(), value.into());
        self
    }

    /// Sets the retries: their maximum number, 2 by default, or all of their settings. A request whose
    /// own settings have retries ([`ModelSettings::retry`](switchboard_core::ModelSettings)) does not
    /// use these.
    ///
    /// ```
    /// use switchboard_core::model::{RetryPolicy, RetrySettings};
    /// use switchboard_models::Endpoint;
    ///
    /// let thrice = Endpoint::openai().retries(3);
    /// let rate_limits = RetryPolicy::http_status([429]);
    /// let patient = Endpoint::openai().retries(RetrySettings::new(5).policy(rate_limits));
    /// ```
    pub fn retries(mut self, retries: impl Into<RetrySettings>) -> Self {
        self.retries = retry_advice::default_settings().overridden_by(&retries.into());
        self
    }

    setters! {
        /// Names the environment variable that the key is from, for errors. [`Endpoint::key`] removes it.
        key_variable: impl Into<String> = Some(key_variable.into());

        /// Sets the organisation that is charged.
        organization: impl Into<String> = Some(organization.into());

        /// Sets the project that is charged.
        project: impl Into<String> = Some(project.into());

        /// Sets the timeout for connecting; 10 seconds by default.
        connect_timeout: Duration = connect_timeout;

        /// Sets the longest time without a byte from the server; 2 minutes by default. Models that reason
        /// for long without streaming need more.
        read_timeout: Duration = read_timeout;

        /// Sets the timeout for one attempt as a whole; 10 minutes by default. `None` removes it.
        total_timeout: impl Into<Option<Duration>> = total_timeout.into();

        /// Sets the maximum size of a response body, streamed or not; 64 MiB by default.
        max_response_bytes: usize = max_response_bytes;

        /// Sets the proxy, `http://…` or `https://…`, instead of the environment's.
        proxy: impl AsRef<str> = Some(Secret::new(proxy.as_ref()));

        /// Sets a PEM file of certificates to trust in addition to the system's.
        certificates: impl Into<PathBuf> = Some(certificates.into());
    }

    /// Makes a client of this endpoint. Connections are opened when they are first needed.
    ///
    /// # Errors
    /// If the address, a header, the proxy or a certificate is invalid.
    pub fn connect(&self) -> Result<Client, ModelError> {
        Client::new(self)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("Endpoint")
            .field("server", &display_address(&self.base_url))
            .field("key", &self.key)
            .field("headers", &headers)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_variables_count_as_not_set() {
        let vars = |name: &str| match name {
            "OPENAI_API_KEY" => Some(" key \n".to_owned()),
            "OPENAI_BASE_URL" => Some(String::new()),
            "OPENAI_ORG_ID" => Some("org\n".to_owned()),
            _ => None,
        };
        let endpoint = Endpoint::from_vars(vars);
        assert_eq!(endpoint.base_url, OPENAI);
        assert_eq!(endpoint.key.as_ref().map(Secret::expose), Some("key"));
        assert_eq!(endpoint.organization.as_deref(), Some("org"));
        assert!(!Endpoint::from_vars(|_| None).has_key());
        assert!(!Endpoint::openai().key(" ").has_key());
    }

    #[test]
    fn openai_needs_a_key_however_its_address_is_written() {
        for address in [
            OPENAI,
            "https://api.openai.com/v1/",
            "https://API.openai.com",
        ] {
            assert!(Endpoint::at(address).needs_key(), "{address}");
            assert!(!Endpoint::at(address).key("k").needs_key(), "{address}");
        }
        assert!(!Endpoint::at("http://localhost:1/v1").needs_key());
        assert!(!Endpoint::openai().header("Authorization", "x").needs_key());
    }

    #[test]
    fn debug_shows_no_secrets() {
        let endpoint = Endpoint::at("http://user:pass1@host:8/v1?token=pass2")
            .key("pass3")
            .header("api-key", "pass4")
            .proxy("http://u:pass5@proxy");
        let printed = format!("{endpoint:?}");
        assert!(!printed.contains("pass"), "{printed}");
        assert!(printed.contains("http://host:8"), "{printed}");
        let client = endpoint.connect().unwrap();
        assert!(!format!("{client:?}").contains("pass"));
    }

    #[test]
    fn invalid_settings_are_errors_of_connect() {
        let error_of = |endpoint: Endpoint| endpoint.connect().unwrap_err().to_string();
        let error = error_of(Endpoint::at("localhost:11434"));
        assert!(error.contains("http://localhost:11434"), "{error}");
        let error = error_of(Endpoint::at("not an address"));
        assert!(error.contains("address"), "{error}");
        let error = error_of(Endpoint::openai().key("new\nline"));
        assert!(error.contains("key") && !error.contains("new"), "{error}");
        let error = error_of(Endpoint::openai().header("Content-Length", "5"));
        assert!(error.contains("content-length"), "{error}");
        let error = error_of(Endpoint::openai().proxy("socks5://u:hunter2@h:1"));
        assert!(error.contains("http://") && !error.contains("hunter2"));
        let error = error_of(Endpoint::openai().certificates("/nowhere/ca.pem"));
        assert!(error.contains("ca.pem"), "{error}");
    }
}
