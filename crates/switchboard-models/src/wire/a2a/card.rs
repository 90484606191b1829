//! The card of a remote agent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Uri;
use http::header::CACHE_CONTROL;
use serde::Deserialize;
use url::{Origin, Url};

use crate::wire::client::Client;
use crate::wire::model_error::{ModelError, ModelErrorKind};

/// The path of a card below the address of its agent.
const CARD_PATH: &str = ".well-known/agent-card.json";

/// The most bytes of a card.
const MAX_CARD: usize = 1 << 20;

/// The time for which a card is kept where the server does not say, and the longest.
const DEFAULT_AGE: Duration = Duration::from_secs(300);
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The card of a remote agent: its name, its description, and how to talk to it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentCard {
    /// The name.
    pub name: String,
    /// The description, which may serve as that of a handoff.
    pub description: String,
    /// The names of its skills.
    pub skills: Vec<String>,
    pub(super) url: Url,
    pub(super) binding: Binding,
    pub(super) tenant: Option<String>,
    pub(super) is_streaming: bool,
}

/// The bindings that this client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    JsonRpc,
    HttpJson,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CardFields {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    supported_interfaces: Vec<InterfaceFields>,
    #[serde(default)]
    capabilities: CapabilityFields,
    #[serde(default)]
    skills: Vec<SkillFields>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InterfaceFields {
    #[serde(default)]
    url: String,
    #[serde(default)]
    protocol_binding: String,
    #[serde(default)]
    protocol_version: String,
    #[serde(default)]
    tenant: Option<String>,
}

#[derive(Default, Deserialize)]
struct CapabilityFields {
    #[serde(default)]
    streaming: Option<bool>,
}

#[derive(Deserialize)]
struct SkillFields {
    #[serde(default)]
    name: String,
}

/// The card of a client's server, fetched when it is needed.
pub(super) struct CardCache {
    client: Client,
    url: Uri,
    /// The origins of other servers that the card may name.
    allowed: Vec<Origin>,
    cached: Mutex<Option<(Instant, Arc<AgentCard>)>>,
}

impl CardCache {
    pub(super) fn new(client: &Client) -> Self {
        let base = client.url("");
        let is_card = base.path().trim_end_matches('/').ends_with(".json");
        let url = if is_card {
            without_slash(&base).unwrap_or(base)
        } else {
            client.url(CARD_PATH)
        };
        Self {
            client: client.clone(),
            url,
            allowed: Vec::new(),
            cached: Mutex::default(),
        }
    }

    /// The same card, which may also name a server at the origin of this address.
    pub(super) fn allowing(&self, address: &str) -> Result<Self, ModelError> {
        let origin = Url::parse(address).map(|url| url.origin());
        let Ok(origin @ Origin::Tuple(..)) = origin else {
            return Err(ModelError::configuration(format!(
                "{address:?} is no address of a server, such as https://travel.example"
            )));
        };
        let allowed = self.allowed.iter().cloned().chain([origin]);
        Ok(Self {
            client: self.client.clone(),
            url: self.url.clone(),
            allowed: allowed.collect(),
            cached: Mutex::default(),
        })
    }

    /// The address without its parameters, which may be secrets, as conversations have it.
    pub(super) fn id(&self) -> String {
        let (scheme, authority) = (self.url.scheme_str(), self.url.authority());
        let authority = authority.map_or("", |authority| authority.as_str());
        format!(
            "{}://{authority}{}",
            scheme.unwrap_or_default(),
            self.url.path()
        )
    }

    pub(super) fn url(&self) -> &Uri {
        &self.url
    }

    pub(super) async fn get(&self) -> Result<Arc<AgentCard>, ModelError> {
        if let Some((until, card)) = &*self.lock()
            && Instant::now() < *until
        {
            return Ok(card.clone());
        }
        let (age, card) = self.fetch().await?;
        let card = Arc::new(card);
        *self.lock() = Some((Instant::now() + age, card.clone()));
        Ok(card)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Arc<AgentCard>)>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self) -> Result<(Duration, AgentCard), ModelError> {
        let mut body = self.client.get(&self.url, MAX_CARD).await?;
        let age = body
            .header(&CACHE_CONTROL)
            .and_then(|value| max_age(&value))
            .unwrap_or(DEFAULT_AGE);
        let card = body.read_bytes().await?;
        let from = Url::parse(&self.url.to_string())
            .map_err(|error| ModelError::configuration(error.to_string()))?;
        let card = parse_card(&card, &from, &self.allowed)?;
        Ok((age.min(MAX_AGE), card))
    }
}

/// The address without a slash at the end of its path.
fn without_slash(address: &Uri) -> Option<Uri> {
    let mut url = Url::parse(&address.to_string()).ok()?;
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    url.as_str().parse().ok()
}

/// The seconds of `max-age`.
fn max_age(cache_control: &str) -> Option<Duration> {
    let mut directives = cache_control.split(',').map(str::trim);
    if directives.clone().any(|directive| directive == "no-store") {
        return Some(Duration::ZERO);
    }
    let seconds = directives.find_map(|directive| directive.strip_prefix("max-age="))?;
    seconds.parse().ok().map(Duration::from_secs)
}

/// Reads a card. Its interface must be at the server that the card is from, or at one that is allowed: otherwise
/// whoever can change the card could lead requests, with their key, to any address that this machine reaches.
fn parse_card(json: &[u8], from: &Url, allowed: &[Origin]) -> Result<AgentCard, ModelError> {
    let bad = |message: String| ModelError::new(ModelErrorKind::BadAnswer, message);
    let fields: CardFields = serde_json::from_slice(json)
        .map_err(|error| bad(format!("this is no agent card: {error}")))?;
    let known = fields.supported_interfaces.iter().find_map(|interface| {
        let binding = match &*interface.protocol_binding {
            "JSONRPC" => Binding::JsonRpc,
            "HTTP+JSON" => Binding::HttpJson,
            _ => return None,
        };
        let version = &interface.protocol_version;
        let is_known = version == "1.0" || version.starts_with("1.0.");
        is_known.then_some((binding, interface))
    });
    let Some((binding, interface)) = known else {
        return Err(bad(
            "the agent card has no interface for JSONRPC or HTTP+JSON in version 1.0".to_owned(),
        ));
    };
    let url = from
        .join(&interface.url)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| bad("the agent card has an interface without an address".to_owned()))?;
    let origin = url.origin();
    if from.scheme() == "https" && url.scheme() == "http" {
        return Err(ModelError::configuration(format!(
            "the agent card names {}, which has no TLS",
            origin.ascii_serialization()
        )));
    }
    if origin != from.origin() && !allowed.contains(&origin) {
        return Err(ModelError::configuration(format!(
            "the agent card of {} names another server, {}, which is not asked; if the agent is there, write it \
             under endpoints of a2a in the team file; or allow it with RemoteAgent::allow_endpoint",
            from.origin().ascii_serialization(),
            origin.ascii_serialization()
        )));
    }
    let skills = fields.skills.into_iter().map(|skill| skill.name);
    Ok(AgentCard {
        name: fields.name,
        description: fields.description,
        skills: skills.collect(),
        url,
        binding,
        tenant: interface.tenant.clone().filter(|tenant| !tenant.is_empty()),
        is_streaming: fields.capabilities.streaming == Some(true),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn card(interfaces: Value) -> Result<AgentCard, ModelError> {
        card_with(interfaces, &[])
    }

    fn card_with(interfaces: Value, allowed: &[&str]) -> Result<AgentCard, ModelError> {
        let from = Url::parse("https://a.example/x/.well-known/agent-card.json").unwrap();
        let json = json!({"name": "A", "supportedInterfaces": interfaces, "unknown": [1]});
        let allowed = allowed.iter().map(|url| Url::parse(url).unwrap().origin());
        parse_card(
            json.to_string().as_bytes(),
            &from,
            &allowed.collect::<Vec<_>>(),
        )
    }

    #[test]
    fn the_first_interface_that_is_known_is_taken() {
        let found = card(json!([
            {"url": "https://a.example/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            {"url": "https://a.example/old", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": "https://a.example/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": "https://a.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        ]));
        let found = found.unwrap();
        assert_eq!(found.url.as_str(), "https://a.example/rest");
        assert_eq!(found.binding, Binding::HttpJson);
        let old = json!([{"url": "https://a.example/", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]);
        assert!(card(old).is_err());
        assert!(card(json!([])).is_err());
    }

    #[test]
    fn a_card_names_its_own_server_or_one_that_is_allowed() {
        let at = |url: &str| json!([{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
        for elsewhere in [
            "https://b.example/",
            "https://a.example:8443/",
            "https://169.254.169.254/latest",
            "https://a.example@b.example/",
        ] {
            let refused = card(at(elsewhere)).unwrap_err();
            assert_eq!(refused.kind(), ModelErrorKind::Configuration);
            assert!(refused.to_string().contains("names another server"));
        }
        assert!(card(at("https://a.example/rpc")).is_ok());
        assert!(card(at("/rpc")).is_ok());
        let allowed = &["https://b.example/whatever"];
        assert!(card_with(at("https://b.example/rpc"), allowed).is_ok());
        assert!(card_with(at("https://c.example/rpc"), allowed).is_err());
        // Not without TLS, if the card came with it.
        for url in ["http://a.example/", "http://b.example/"] {
            assert!(card_with(at(url), &["http://b.example"]).is_err());
        }
    }

    #[test]
    fn the_age_of_a_card_is_that_of_its_headers() {
        let seconds = |text| max_age(text).map(|age| age.as_secs());
        assert_eq!(seconds("public, max-age=60"), Some(60));
        assert_eq!(seconds("no-store, max-age=60"), Some(0));
        assert_eq!(seconds("public"), None);
    }
}
