//! Where a provider is, and how to talk to it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use serde_json::Value;

use crate::wire::client::{Client, is_openai, shown};
use crate::wire::error::ModelError;
use crate::wire::secret::Secret;

/// OpenAI's own address.
const OPENAI: &str = "https://api.openai.com/v1";

/// Where a provider is, and how to talk to it: OpenAI, or any server that speaks one of its
/// protocols (Ollama, vLLM, llama.cpp, a gateway).
///
/// ```
/// use switchboard_models::{ChatModel, Endpoint};
///
/// let ollama = Endpoint::at("http://localhost:11434/v1").connect()?;
/// let model = ChatModel::new(&ollama, "llama3.1");
/// # Ok::<(), switchboard_models::ModelError>(())
/// ```
///
/// A proxy is taken from `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, certificates from
/// the system or from `SSL_CERT_FILE` and `SSL_CERT_DIR`, read once per process. Only proxies at `http://` and `https://`
/// are supported.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) base_url: String,
    pub(crate) key: Option<Secret>,
    pub(crate) organization: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) body: BTreeMap<String, Value>,
    pub(crate) retries: u32,
    pub(crate) connect_timeout: Duration,
    pub(crate) read_timeout: Duration,
    pub(crate) total_timeout: Option<Duration>,
    pub(crate) max_response_bytes: usize,
    pub(crate) proxy: Option<Secret>,
    pub(crate) certificates: Option<PathBuf>,
}

impl Endpoint {
    /// OpenAI. The key comes from [`Endpoint::key`].
    pub fn openai() -> Self {
        Self::at(OPENAI)
    }

    /// A server at this address, which is what comes before `/responses` and `/chat/completions`:
    /// `http://localhost:11434/v1`. One of these at its end is taken off.
    pub fn at(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            organization: None,
            project: None,
            headers: Vec::new(),
            body: BTreeMap::new(),
            retries: 2,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(120),
            total_timeout: Some(Duration::from_secs(600)),
            max_response_bytes: 64 << 20,
            proxy: None,
            certificates: None,
        }
    }

    /// What the environment says: `OPENAI_API_KEY`, `OPENAI_BASE_URL`, `OPENAI_ORG_ID`,
    /// `OPENAI_PROJECT_ID`. Without an address it is OpenAI's.
    pub fn from_env() -> Self {
        Self::from_vars(|name| std::env::var(name).ok())
    }

    /// Like [`Endpoint::from_env`], with variables looked up by `var`: for tests, or where keys come
    /// from a vault.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        // An empty variable is how many tools say that it is not set.
        let var = |name| {
            let value = var(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let base_url = var("OPENAI_BASE_URL").unwrap_or_else(|| OPENAI.to_owned());
        Self {
            key: var("OPENAI_API_KEY").map(Secret::new),
            organization: var("OPENAI_ORG_ID"),
            project: var("OPENAI_PROJECT_ID"),
            ..Self::at(base_url)
        }
    }

    /// Whether there is a key.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Whether this is OpenAI, which needs a key, and there is none.
    pub(crate) fn needs_key(&self) -> bool {
        let has_header = self
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let url = Url::parse(self.base_url.trim());
        url.is_ok_and(|url| is_openai(&url)) && self.key.is_none() && !has_header
    }

    /// The key, sent as `Authorization: Bearer …`. An empty one is none.
    #[must_use]
    pub fn key(mut self, key: impl AsRef<str>) -> Self {
        let key = key.as_ref();
        self.key = (!key.trim().is_empty()).then(|| Secret::new(key));
        self
    }

    /// The organisation that is charged.
    #[must_use]
    pub fn organization(mut self, organization: impl Into<String>) -> Self {
        self.organization = Some(organization.into());
        self
    }

    /// The project that is charged.
    #[must_use]
    pub fn project(mut self, project: impl Into<String>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// A further header of every request. Its value is treated as a secret. Headers of the
    /// connection, such as `host` and `content-length`, cannot be set.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl AsRef<str>) -> Self {
        let value = Secret::new(value.as_ref());
        self.headers.push((name.into(), value));
        self
    }

    /// A further field of every request's body. It takes the place of one of the same name; a null
    /// leaves that one out. `stream` cannot be set.
    #[must_use]
    pub fn body_field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.body.insert(name.into(), value.into());
        self
    }

    /// How often a request is sent again after a failure, where that is safe; 2 unless this says
    /// otherwise.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// How long connecting may take; 10 seconds unless this says otherwise.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the server may send nothing at all; 2 minutes unless this says otherwise. Models
    /// that think for long without streaming need more.
    #[must_use]
    pub fn read_timeout(mut self, timeout: Duration) -> Self {
        self.read_timeout = timeout;
        self
    }

    /// How long one attempt may take in all; 10 minutes unless this says otherwise.
    #[must_use]
    pub fn total_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.total_timeout = timeout.into();
        self
    }

    /// How many bytes an answer may have; 64 MiB unless this says otherwise.
    #[must_use]
    pub fn max_response_bytes(mut self, bytes: usize) -> Self {
        self.max_response_bytes = bytes;
        self
    }

    /// The proxy to go through, instead of the environment's: `http://…` or `https://…`.
    #[must_use]
    pub fn proxy(mut self, url: impl AsRef<str>) -> Self {
        self.proxy = Some(Secret::new(url.as_ref()));
        self
    }

    /// A PEM file of certificates to trust, beside the system's.
    #[must_use]
    pub fn certificates(mut self, file: impl Into<PathBuf>) -> Self {
        self.certificates = Some(file.into());
        self
    }

    /// A client of this endpoint. Nothing is sent yet. Clones of the client share its connections.
    ///
    /// # Errors
    /// Where the address, a header, the proxy or a certificate cannot be used.
    pub fn connect(&self) -> Result<Client, ModelError> {
        Client::new(self)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("Endpoint")
            .field("server", &shown(&self.base_url))
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
    fn the_environment_is_read_and_empty_variables_are_not_set() {
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
    fn nothing_secret_is_printed() {
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
    fn what_cannot_work_is_told_at_once() {
        let told = |endpoint: Endpoint| endpoint.connect().unwrap_err().to_string();
        let error = told(Endpoint::at("localhost:11434"));
        assert!(error.contains("http://localhost:11434"), "{error}");
        let error = told(Endpoint::at("not an address"));
        assert!(error.contains("address"), "{error}");
        let error = told(Endpoint::openai().key("new\nline"));
        assert!(error.contains("key") && !error.contains("new"), "{error}");
        let error = told(Endpoint::openai().header("Content-Length", "5"));
        assert!(error.contains("content-length"), "{error}");
        let error = told(Endpoint::openai().proxy("socks5://u:hunter2@h:1"));
        assert!(error.contains("http://") && !error.contains("hunter2"));
        let error = told(Endpoint::openai().certificates("/nowhere/ca.pem"));
        assert!(error.contains("ca.pem"), "{error}");
    }
}
