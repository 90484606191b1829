//! rig, which has no handoffs: it calls a tool instead, with the same number of model calls.

mod script;

use common::{Case, Failed, HistoryItem, INPUT, Peer, Protocol, SECOND, history};
use futures_util::StreamExt as _;
use rig_agent::{Agent, AgentBuilder};
use rig_core::Model;
use rig_core::completion::Message;
use rig_core::message::{AssistantContent, AssistantMessage, CallId, ToolName};
use rig_core::providers::openai::{OpenAIConfig, Route};
use rig_core::tool::{DynamicTool, ToolOutput};
use serde_json::json;

use script::{Script, Scripted};

fn main() -> Result<(), Failed> {
    common::main::<Rig>()
}

struct Rig {
    agent: Agent,
    history: Vec<Message>,
    max_turns: usize,
    script: Option<Script>,
    streamed: bool,
}

impl Peer for Rig {
    fn new(case: &Case) -> Result<Self, Failed> {
        let mut script = None;
        let builder = match &case.wire {
            Some(wire) => {
                let route = match wire.protocol {
                    Protocol::Responses => Route::Responses,
                    Protocol::Chat => Route::Chat,
                };
                let config = OpenAIConfig::new("bench")
                    .with_base_url(&wire.url)
                    .with_route(route);
                AgentBuilder::new(config.client().completion("m"))
            }
            None => {
                let made = Script::new(case);
                script = Some(made.clone());
                AgentBuilder::new(Model::new(Scripted, made))
            }
        };
        // By the output of the tool, the provider recognizes the second request.
        let tool = DynamicTool::new(
            ToolName::new("transfer_to_billing")?,
            "Handoff to another agent",
            json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
            |_| Box::pin(async { Ok(ToolOutput::text(SECOND)) }),
        );
        Ok(Self {
            agent: builder.preamble("Route.").dynamic_tool(tool).build(),
            history: history(case.items)?
                .into_iter()
                .map(message)
                .collect::<Result<_, _>>()?,
            max_turns: case.handoffs + 2,
            script,
            streamed: case.wire.as_ref().is_some_and(|wire| wire.streamed),
        })
    }

    async fn run(&self) -> Result<(), Failed> {
        let run = self.agent.prompt(INPUT).max_turns(self.max_turns);
        let run = run.history(self.history.iter().cloned());
        if self.streamed {
            let mut stream = run.stream();
            while let Some(item) = stream.next().await {
                item?;
            }
        } else {
            run.run().await?;
        }
        if let Some(script) = &self.script {
            script.forget();
        }
        Ok(())
    }
}

fn message(past: HistoryItem) -> Result<Message, Failed> {
    Ok(match past {
        HistoryItem::User(text) => Message::user(text),
        HistoryItem::Assistant(text) => Message::assistant(text),
        HistoryItem::Call {
            id,
            name,
            arguments,
        } => {
            let arguments = serde_json::from_str(&arguments)?;
            let call = AssistantContent::tool_call(id, ToolName::new(name)?, arguments);
            Message::Assistant(AssistantMessage::new(vec![call]))
        }
        HistoryItem::Output { id, text } => {
            Message::tool_result(CallId::from_wire(id), ToolName::new("lookup")?, text)
        }
    })
}
