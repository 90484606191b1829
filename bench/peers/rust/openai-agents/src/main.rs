//! The crate `openai-agents`, with its own loop and handoffs. It takes a history only through a session, and
//! supports only Chat Completions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_trait::async_trait;
use common::{Case, Failed, HistoryItem, INPUT, Peer, SECOND, Wait, history};
use futures_util::StreamExt as _;
use openai_agents::models::{
    CompletionRequest, CompletionResponse, CompletionStream, Message, ModelProvider,
    OpenAIChatCompletionsModel, ToolCall,
};
use openai_agents::session::Session;
use openai_agents::{Agent, Handoff, RunConfig, Runner};
use serde_json::{Value, json};

fn main() -> Result<(), Failed> {
    common::main::<OpenAiAgents>()
}

struct OpenAiAgents {
    agent: Agent,
    config: RunConfig,
    script: Option<Arc<Script>>,
    streamed: bool,
}

impl Peer for OpenAiAgents {
    fn new(case: &Case) -> Result<Self, Failed> {
        let last = if case.handoffs == 1 {
            "Billing".to_owned()
        } else {
            format!("Agent {}", case.handoffs)
        };
        let mut agent = Agent::builder(last).instructions(SECOND).build();
        for n in (0..case.handoffs).rev() {
            let name = format!("Agent {n}");
            agent = Agent::builder(name)
                .instructions("Route.")
                .handoff(Handoff::new(agent))
                .build();
        }
        let mut script = None;
        let model: Arc<dyn ModelProvider> = match &case.wire {
            Some(wire) => {
                let config = OpenAIConfig::new()
                    .with_api_key("bench")
                    .with_api_base(&wire.url);
                Arc::new(OpenAIChatCompletionsModel::with_client(
                    Client::with_config(config),
                ))
            }
            None => {
                let made = Arc::new(Script::new(case));
                script = Some(made.clone());
                made
            }
        };
        let past: Vec<Value> = history(case.items)?.into_iter().map(message).collect();
        let session = (case.items > 0).then(|| Arc::new(FixedHistory(past)) as Arc<dyn Session>);
        Ok(Self {
            agent,
            config: RunConfig {
                max_turns: case.handoffs + 2,
                session,
                model_override: Some(model),
                ..RunConfig::default()
            },
            script,
            streamed: case.wire.as_ref().is_some_and(|wire| wire.streamed),
        })
    }

    async fn run(&self) -> Result<(), Failed> {
        if self.streamed {
            let result =
                Runner::run_streamed_with_config(&self.agent, INPUT, self.config.clone()).await?;
            let mut events = result.stream_events();
            while events.next().await.is_some() {}
            result.final_output().await?;
        } else {
            Runner::run_with_config(&self.agent, INPUT, self.config.clone()).await?;
        }
        if let Some(script) = &self.script {
            script.forget();
        }
        Ok(())
    }
}

fn message(past: HistoryItem) -> Value {
    let (role, content) = match past {
        HistoryItem::User(text) => ("user", text),
        HistoryItem::Assistant(text) => ("assistant", text),
        // It has no messages for calls.
        HistoryItem::Call { arguments, .. } => ("assistant", arguments),
        HistoryItem::Output { text, .. } => ("user", text),
    };
    json!(Message {
        role: role.to_owned(),
        content
    })
}

/// A session with a fixed history.
struct FixedHistory(Vec<Value>);

#[async_trait]
impl Session for FixedHistory {
    async fn get_items(&self, _limit: Option<usize>) -> openai_agents::Result<Vec<Value>> {
        Ok(self.0.clone())
    }

    async fn add_items(&self, _items: Vec<Value>) -> openai_agents::Result<()> {
        Ok(())
    }

    async fn pop_item(&self) -> openai_agents::Result<Option<Value>> {
        Ok(None)
    }

    async fn clear_session(&self) -> openai_agents::Result<()> {
        Ok(())
    }
}

/// A model that calls each handoff of the chain and then responds.
struct Script {
    handoffs: usize,
    names: Vec<String>,
    next: AtomicUsize,
    wait: Wait,
    kept: Option<Mutex<Vec<CompletionRequest>>>,
}

impl Script {
    fn new(case: &Case) -> Self {
        let name = |n: usize| match case.handoffs {
            1 => "transfer_to_billing".to_owned(),
            _ => format!("transfer_to_agent_{n}"),
        };
        Self {
            handoffs: case.handoffs,
            names: (1..=case.handoffs).map(name).collect(),
            next: AtomicUsize::new(0),
            wait: case.wait,
            kept: case.keeps_requests.then(Mutex::default),
        }
    }

    fn forget(&self) {
        if let Some(kept) = &self.kept {
            kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    fn response(&self, call: Option<&str>) -> CompletionResponse {
        let calls = call.map(|name| ToolCall {
            id: "call_1".to_owned(),
            name: name.to_owned(),
            arguments: json!({}),
        });
        CompletionResponse {
            content: call.is_none().then(|| "Done.".to_owned()),
            tool_calls: calls.into_iter().collect(),
            finish_reason: None,
        }
    }
}

#[async_trait]
impl ModelProvider for Script {
    async fn complete(
        &self,
        request: CompletionRequest,
    ) -> openai_agents::Result<CompletionResponse> {
        let first = request.tools.is_some();
        if let Some(kept) = &self.kept {
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(request);
        }
        match self.wait {
            Wait::No => {
                let at = self.next.fetch_add(1, Ordering::Relaxed) % (self.handoffs + 1);
                return Ok(self.response(self.names.get(at).map(String::as_str)));
            }
            Wait::Yields => tokio::task::yield_now().await,
            Wait::Parks if first => {}
            Wait::Parks => std::future::pending().await,
        }
        Ok(self.response(first.then_some("transfer_to_billing")))
    }

    async fn stream(&self, _request: CompletionRequest) -> openai_agents::Result<CompletionStream> {
        Ok(CompletionStream::new(futures_util::stream::empty()))
    }
}
