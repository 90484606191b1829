//! The models of a run in stages: scripts of agents, and the calls that they got.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use switchboard_core::callback::BoxError;
use switchboard_core::model::ModelHandle;
use switchboard_core::run::ModelFilter;
use switchboard_core::{Agent, Model, ModelRequest, ModelResponse, RunContext};

use crate::case::{Case, ScriptedReply};
use crate::lock::lock;
use crate::scenario::CaseContext;
use crate::serialize;

/// The key under which a request carries the id of the agent tool call that it is made inside of.
const IN: &str = "in";

/// The key under which a request carries the number of log entries before it.
const LOG_LENGTH: &str = "log_length";

/// A filter that notes on each request where it is made. Models know nothing of the run.
pub(super) fn tag_calls() -> ModelFilter<CaseContext> {
    ModelFilter::new(
        |ctx: RunContext<CaseContext>, _agent: Agent<CaseContext>, mut request: ModelRequest| {
            let metadata = &mut Arc::make_mut(&mut request.settings).metadata;
            if let Some(call) = ctx.outer_call() {
                metadata.insert(IN.to_owned(), call.call_id.to_string());
            }
            metadata.insert(LOG_LENGTH.to_owned(), ctx.log_length().to_string());
            request
        },
    )
}

/// The scripts of a case, and the calls that were made.
pub(super) struct Scripts {
    /// The script of the agents that have none of their own.
    shared: ScriptModel,
    own: HashMap<String, ScriptModel>,
    calls: Calls,
}

type Calls = Arc<Mutex<Vec<Call>>>;

struct Call {
    /// The agent whose script answered.
    of: Option<Arc<str>>,
    request: ModelRequest,
}

impl Scripts {
    pub(super) fn new(case: &Case) -> Result<Self, String> {
        let calls = Calls::default();
        let mut own = HashMap::new();
        for agent in &case.agents {
            if let Some(script) = &agent.model {
                let of = Some(agent.name.as_str().into());
                let model = ScriptModel::new(of, script, &calls)?;
                own.insert(agent.name.clone(), model);
            }
        }
        Ok(Self {
            shared: ScriptModel::new(None, &case.model, &calls)?,
            own,
            calls,
        })
    }

    /// The model of each agent.
    pub(super) fn models(&self, case: &Case) -> HashMap<String, ModelHandle> {
        let models = case.agents.iter().map(|agent| {
            let model = self.own.get(&agent.name).unwrap_or(&self.shared);
            (agent.name.clone(), model.clone().into())
        });
        models.collect()
    }

    /// Serializes the calls since the last time. `agent_tools` has pairs of an agent and a tool.
    pub(super) fn take_calls(&self, agent_tools: &HashSet<(String, String)>) -> Value {
        let calls = std::mem::take(&mut *lock(&self.calls));
        calls.iter().map(|call| call.to_json(agent_tools)).collect()
    }
}

impl Call {
    fn to_json(&self, agent_tools: &HashSet<(String, String)>) -> Value {
        let request = &self.request;
        let mut json = serialize::model_call(request);
        let agent = request.agent.as_deref().unwrap_or_default();
        for (index, tool) in request.tools.iter().enumerate() {
            if agent_tools.contains(&(agent.to_owned(), tool.name.to_string())) {
                json["tools"][index]["parameters"] = serialize::schema(&tool.parameters);
            }
        }
        let metadata = &request.settings.metadata;
        json["of"] = self.of.as_deref().into();
        json[IN] = metadata.get(IN).cloned().into();
        json[LOG_LENGTH] = metadata
            .get(LOG_LENGTH)
            .and_then(|length| length.parse::<usize>().ok())
            .into();
        json
    }
}

/// A model that answers a call with the first reply that is left and fits it.
#[derive(Clone)]
struct ScriptModel {
    of: Option<Arc<str>>,
    replies: Arc<Mutex<Vec<Reply>>>,
    calls: Calls,
}

struct Reply {
    /// The text that the input must contain.
    when: Option<String>,
    response: Result<ModelResponse, String>,
}

impl ScriptModel {
    fn new(of: Option<Arc<str>>, script: &[ScriptedReply], calls: &Calls) -> Result<Self, String> {
        let replies = script.iter().map(|reply| {
            Ok(Reply {
                when: reply.when.clone(),
                response: reply.response()?,
            })
        });
        let replies = replies.collect::<Result<Vec<Reply>, String>>()?;
        Ok(Self {
            of,
            replies: Arc::new(Mutex::new(replies)),
            calls: calls.clone(),
        })
    }

    fn take_reply(&self, request: &ModelRequest) -> Option<Reply> {
        let input = serialize::items(&request.input).to_string();
        let fits = |reply: &Reply| reply.when.as_ref().is_none_or(|text| input.contains(text));
        let mut replies = lock(&self.replies);
        let index = replies.iter().position(fits)?;
        Some(replies.remove(index))
    }
}

impl Model for ScriptModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let reply = self.take_reply(&request);
        let of = self.of.clone();
        lock(&self.calls).push(Call { of, request });
        let reply = reply.ok_or("the script has no reply that fits the call")?;
        Ok(reply.response?)
    }
}
