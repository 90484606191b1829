//! A team whose model answers by rules, a server for it, and a client.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::{Value, json};
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::Conversations;
use switchboard_core::model::{ModelEvent, Usage};
use switchboard_core::run::{FanOut, HandoffPolicy, SeveralHandoffs};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Item, Model, ModelRequest, ModelResponse, RunConfig, Team, Tool, tool,
};
use switchboard_server::{RunningServer, ServedTeam, Server, Service, ServiceBuilder};
use tokio::sync::Semaphore;

/// The longest time that anything in a test may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A model that answers by rules: handoffs, tools, pauses and failures, by words of the user's last message.
#[derive(Clone)]
pub(crate) struct RuleModel {
    /// A permit is needed before the second word of an answer to a message with "slow".
    pub(crate) gate: Arc<Semaphore>,
    calls: Arc<AtomicU64>,
    /// Set once the model has failed for a message with "breaks once".
    has_broken: Arc<AtomicBool>,
}

impl RuleModel {
    pub(crate) fn new() -> Self {
        Self {
            gate: Arc::new(Semaphore::new(0)),
            calls: Arc::default(),
            has_broken: Arc::default(),
        }
    }

    /// Returns `true` from the second time on.
    fn has_broken(&self) -> bool {
        self.has_broken.swap(true, Ordering::Relaxed)
    }

    fn call(&self, name: &str, arguments: &Value) -> ModelResponse {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let id = format!("call_{number}");
        ModelResponse::new([Item::function_call(&id, name, &arguments.to_string())])
    }

    fn decide(&self, request: &ModelRequest) -> Result<ModelResponse, BoxError> {
        let items: Vec<&Item> = request.input.iter().collect();
        let words = items
            .iter()
            .rfind(|item| item.role().as_deref() == Some("user"));
        let words = words
            .and_then(|item| item.text())
            .unwrap_or_default()
            .into_owned();
        let agent = request.agent.as_deref().unwrap_or("Nobody");
        let has = |name: &str| request.tools.iter().any(|tool| *tool.name == *name);
        let can_go = |name: &str| {
            request
                .handoffs
                .iter()
                .any(|handoff| *handoff.tool_name == *name)
        };
        let last = items.last().and_then(|item| item.output_text());
        let is_transfer = last
            .as_deref()
            .is_some_and(|output| output.contains("\"assistant\""));
        if let Some(output) = last.filter(|_| !is_transfer) {
            let breaks_again = !words.contains("once") || !self.has_broken();
            if words.contains("breaks") && breaks_again {
                return Err("the provider is down".into());
            }
            let outputs = items.iter().filter_map(|item| item.output_text());
            let refunds = outputs.filter(|output| output.starts_with("refunded"));
            if words.contains("twice") && refunds.count() == 1 {
                return Ok(self.call("refund", &json!({"amount": 5})));
            }
            let how = if words.contains("slowly") {
                " slowly"
            } else {
                ""
            };
            return Ok(self.say(agent, &format!("I got {output}{how}.")));
        }
        if words.contains("expert") && has("ask_expert") {
            let question = words.replace("expert", "");
            return Ok(self.call("ask_expert", &json!({"input": question.trim()})));
        }
        if words.contains("bill") && can_go("transfer_to_billing") {
            return Ok(self.call("transfer_to_billing", &json!({})));
        }
        if words.contains("person") && can_go("transfer_to_ann") {
            return Ok(self.call("transfer_to_ann", &json!({})));
        }
        if words.contains("weather") && has("get_weather") {
            return Ok(self.call("get_weather", &json!({"city": "Oslo"})));
        }
        if words.contains("lookup") && has("lookup") {
            return Ok(self.call("lookup", &json!({"account": 7})));
        }
        if words.contains("refund") && has("refund") {
            return Ok(self.call("refund", &json!({"amount": 5})));
        }
        if words.contains("fail") {
            return Err("the provider is down".into());
        }
        if words.contains("instructions") {
            let told = request.instructions.as_deref().unwrap_or_default();
            return Ok(self.say(agent, &format!("you said {words} ({told})")));
        }
        Ok(self.say(agent, &format!("you said {words}")))
    }

    fn say(&self, agent: &str, text: &str) -> ModelResponse {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let item = Item::output_message(&format!("msg_{number}"), &format!("{agent}: {text}"));
        let usage = Usage {
            requests: 1,
            input_tokens: 10,
            output_tokens: 5,
            ..Usage::default()
        };
        ModelResponse::new([item]).usage(usage)
    }
}

impl Model for RuleModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        self.decide(&request)
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl futures_util::Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let response = self.decide(&request);
        let item = response
            .as_ref()
            .ok()
            .and_then(|response| response.output.first().cloned());
        let text = item
            .as_ref()
            .and_then(|item| item.text())
            .unwrap_or_default()
            .into_owned();
        let id: Arc<str> = item
            .and_then(|item| Some(item.id()?.into_owned()))
            .unwrap_or_default()
            .into();
        let words: Vec<String> = text.split_inclusive(' ').map(ToOwned::to_owned).collect();
        let is_slow = text.contains("slow");
        let thought = text.contains("think").then(|| ModelEvent::ReasoningDelta {
            item: "rs_1".into(),
            text: "Hm.".to_owned(),
        });
        let gate = self.gate.clone();
        let words = stream::iter(words.into_iter().enumerate()).then(move |(at, text)| {
            let (gate, item) = (gate.clone(), id.clone());
            async move {
                if is_slow && at == 1 {
                    gate.acquire().await.unwrap().forget();
                }
                Ok(ModelEvent::TextDelta { item, text })
            }
        });
        let thought = stream::iter(thought.map(Ok));
        thought.chain(words).chain(stream::once(
            async move { response.map(ModelEvent::Completed) },
        ))
    }

    fn name(&self) -> &str {
        "rules"
    }
}

/// A tool that needs approval.
fn refund() -> Tool {
    tool::<()>("refund")
        .description("Pays money back.")
        .needs_approval()
        .run_raw(&json!({"type": "object"}), |ctx| {
            format!("refunded {}", ctx.arguments())
        })
}

fn lookup() -> Tool {
    tool::<()>("lookup")
        .description("Looks an account up.")
        .run_raw(&json!({"type": "object"}), |_ctx| "open")
}

/// Desk, which has an expert as a tool.
pub(crate) fn desk(model: &RuleModel) -> Team {
    let expert = Agent::new("Expert")
        .tool(lookup())
        .tool(refund())
        .model(model.clone());
    Team::new()
        .agent(
            Agent::new("Desk")
                .tool(expert.as_tool("ask_expert"))
                .model(model.clone()),
        )
        .build()
        .unwrap()
}

/// A team whose first agent hands off to two at once, which answer side by side. It answers one message.
pub(crate) fn crew() -> ServedTeam {
    let calls = [("transfer_to_bills", "{}"), ("transfer_to_law", "{}")];
    let lead = ScriptedModel::new().calls(calls).say("Both say yes.");
    let answering = |name: &str, text: &str| {
        Agent::new(name)
            .handoff_description("Answers.")
            .model(ScriptedModel::new().say(text))
    };
    let team: Team = Team::new()
        .agent(
            Agent::new("Lead")
                .handoff("Bills")
                .handoff("Law")
                .model(lead),
        )
        .agent(answering("Bills", "Bills: yes."))
        .agent(answering("Law", "Law: yes."))
        .build()
        .unwrap();
    let mut config = RunConfig::default();
    let several = SeveralHandoffs::FanOut(FanOut::to_caller());
    config.handoff_policy = HandoffPolicy::production().several(several);
    ServedTeam::with_config("crew", team, (), config)
}

/// Triage, which hands off to Billing and to Ann, a person; Billing has a tool that needs approval.
pub(crate) fn team(model: &RuleModel) -> Team {
    Team::new()
        .agent(
            Agent::new("Triage")
                .tool(lookup())
                .handoff("Billing")
                .handoff("Ann")
                .model(model.clone()),
        )
        .agent(
            Agent::new("Billing")
                .handoff_description("Bills.")
                .handoff("Triage")
                .tool(refund())
                .model(model.clone()),
        )
        .agent(
            Agent::person("Ann")
                .handoff_description("A person.")
                .handoff("Triage"),
        )
        .build()
        .unwrap()
}

/// A server with that team, as `support`.
pub(crate) struct TestServer {
    pub(crate) model: RuleModel,
    pub(crate) service: Service,
    pub(crate) running: RunningServer,
    pub(crate) client: Client,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::with(|builder| builder).await
    }

    /// Starts a server with further settings.
    pub(crate) async fn with(configure: impl FnOnce(ServiceBuilder) -> ServiceBuilder) -> Self {
        let model = RuleModel::new();
        let served = ServedTeam::new("support", team(&model), ());
        let builder = Service::builder()
            .team(served)
            .conversations(Conversations::in_memory());
        Self {
            model,
            ..Self::of(configure(builder).build().unwrap()).await
        }
    }

    /// Starts a server for a service.
    pub(crate) async fn of(service: Service) -> Self {
        let server = Server::bind(service.clone(), "127.0.0.1:0").await.unwrap();
        let client = Client::new(&format!("http://{}", server.address()), None);
        Self {
            model: RuleModel::new(),
            service,
            running: server.start(),
            client,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.client.base
    }

    pub(crate) fn client_with(&self, key: &str) -> Client {
        Client::new(self.url(), Some(key))
    }
}

/// A client of the service.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) http: reqwest::Client,
    base: String,
    key: Option<String>,
}

/// A response that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    /// The JSON of a successful response.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        self.json()
    }

    pub(crate) fn error_code(&self) -> (u16, String) {
        (
            self.status,
            self.json()["error"]["code"].as_str().unwrap().to_owned(),
        )
    }
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SseEvent {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl SseEvent {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

impl Client {
    pub(crate) fn new(base: &str, key: Option<&str>) -> Self {
        install_crypto();
        Self {
            http: reqwest::Client::builder()
                .no_proxy()
                .timeout(PATIENCE)
                .build()
                .unwrap(),
            base: base.to_owned(),
            key: key.map(ToOwned::to_owned),
        }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().unwrap();
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        answer(self.request("GET", path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        answer(self.request("DELETE", path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        answer(with_json(self.request("POST", path), &body)).await
    }

    /// Begins to read a stream of events.
    pub(crate) async fn open(&self, request: reqwest::RequestBuilder) -> Events {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let headers = response.headers().clone();
        assert_eq!(headers["content-type"], "text/event-stream");
        Events {
            headers,
            body: Box::pin(response.bytes_stream()),
            buffer: String::new(),
        }
    }

    /// Posts a body and reads the events of the answer.
    pub(crate) async fn events(&self, path: &str, body: Value) -> Vec<SseEvent> {
        self.open(with_json(self.request("POST", path), &body))
            .await
            .rest()
            .await
    }
}

/// A stream of events that is being read.
pub(crate) struct Events {
    pub(crate) headers: reqwest::header::HeaderMap,
    body: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    buffer: String,
}

impl Events {
    pub(crate) async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.buffer = rest;
                if let Some(event) = parse(&event) {
                    return Some(event);
                }
                continue;
            }
            let bytes = self.body.next().await?.ok()?;
            self.buffer.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    pub(crate) async fn rest(mut self) -> Vec<SseEvent> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

fn parse(text: &str) -> Option<SseEvent> {
    let mut event = SseEvent {
        id: None,
        name: None,
        data: String::new(),
    };
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("id", id)) => event.id = Some(id.to_owned()),
            Some(("event", name)) => event.name = Some(name.to_owned()),
            Some(("data", data)) => event.data.push_str(data),
            _ => {}
        }
    }
    (!event.data.is_empty()).then_some(event)
}

pub(crate) fn with_json(request: reqwest::RequestBuilder, body: &Value) -> reqwest::RequestBuilder {
    request
        .header("content-type", "application/json")
        .body(body.to_string())
}

pub(crate) async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    Answer {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        text: response.text().await.unwrap(),
    }
}

/// Waits until something holds.
pub(crate) async fn until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.expect("what was waited for did not happen");
}

pub(crate) fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
