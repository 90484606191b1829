//! The key of the provider's prompt cache.

use std::sync::{Arc, Mutex};

use switchboard_core::callback::BoxError;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, MemorySession, Model, ModelRequest, ModelResponse, ModelSettings, Runner, tool,
};

use crate::{DescribedSession, stored};

/// Notes the keys of its requests.
#[derive(Clone)]
struct Noting {
    script: ScriptedModel,
    keys: Arc<Mutex<Vec<String>>>,
}

impl Noting {
    fn new() -> Self {
        let script = ScriptedModel::new().call("look", "{}").say("Done.");
        let script = script.call("look", "{}").say("Done.");
        let keys = Arc::default();
        Self { script, keys }
    }

    fn keys(&self) -> Vec<String> {
        self.keys.lock().unwrap().clone()
    }
}

impl Model for Noting {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let key = request.prompt_cache_key().unwrap();
        self.keys.lock().unwrap().push(key.to_string());
        self.script.respond(request).await
    }
}

fn agent() -> Agent {
    Agent::new("A").tool(tool("look").run(|_ctx, (): ()| "nothing"))
}

#[tokio::test]
async fn the_requests_of_a_run_share_a_key_and_runs_do_not() {
    let (agent, model) = (agent(), Noting::new());
    let runner = Runner::new(&agent).model(model.clone());
    runner.run("x").await.unwrap();
    runner.run("x").await.unwrap();
    let keys = model.keys();
    assert!(keys[0].starts_with("switchboard:run:"), "{keys:?}");
    assert_eq!(keys[0], keys[1]);
    assert_eq!(keys[2], keys[3]);
    assert_ne!(keys[0], keys[2]);
}

#[tokio::test]
async fn a_run_that_was_stored_keeps_its_key() {
    let (agent, model) = (agent(), Noting::new());
    let runner = Runner::new(&agent).model(model.clone()).max_turns(1);
    let run = runner.run("x").await.unwrap_err().into_run().unwrap();
    let runner = runner.max_turns(2);
    runner.resume(stored(&run)).await.unwrap();
    let keys = model.keys();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
}

#[tokio::test]
async fn a_run_whose_model_asks_for_no_key_stores_none() {
    let agent: Agent = Agent::new("A").model(ScriptedModel::new().say("Hi."));
    let result = Runner::new(&agent).run("x").await.unwrap();
    let stored = serde_json::to_string(result.run()).unwrap();
    assert!(!stored.contains("cache_key"), "{stored}");
}

#[tokio::test]
async fn the_runs_of_a_session_share_a_key() {
    let (agent, model) = (agent(), Noting::new());
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    runner.run("x").await.unwrap();
    runner.run("y").await.unwrap();
    let keys = model.keys();
    assert!(keys[0].starts_with("switchboard:session:"), "{keys:?}");
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");

    // By the identifier of the session, in every process, without quoting it.
    let expected = "switchboard:session:a2d341cbc9ad42d046bc165b82542003";
    for _ in 0..2 {
        let model = Noting::new();
        let session = DescribedSession {
            id: Some(" ada@example.com "),
            ..DescribedSession::default()
        };
        let runner = Runner::new(&agent).model(model.clone()).session(session);
        runner.run("x").await.unwrap();
        assert_eq!(model.keys()[0], expected);
    }
}

#[tokio::test]
async fn the_runs_of_a_group_of_traces_share_a_key_unless_they_have_a_session() {
    let (agent, model) = (agent(), Noting::new());
    let grouped = Runner::new(&agent)
        .model(model.clone())
        .trace_group(" chat_7 ");
    grouped.run("x").await.unwrap();
    let failing = grouped.max_turns(1);
    let run = failing.run("y").await.unwrap_err().into_run().unwrap();
    // The key of a stored run does not change with its settings.
    let other = Runner::new(&agent).model(model.clone());
    other.resume(stored(&run)).await.unwrap();
    let expected = "switchboard:group:4a9453c3d60024ea82facb832c7a9713";
    assert_eq!(model.keys(), [expected; 4]);

    let (session, model) = (MemorySession::new(), Noting::new());
    let runner = Runner::new(&agent).model(model.clone());
    let runner = runner.trace_group("chat_7").session(&session);
    runner.run("x").await.unwrap();
    let keys = model.keys();
    assert!(keys[0].starts_with("switchboard:session:"), "{keys:?}");
}

#[tokio::test]
async fn a_conversation_at_the_provider_and_the_settings_go_first() {
    let (agent, model) = (agent(), Noting::new());
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    let settings = ModelSettings {
        prompt_cache_key: Some("mine".into()),
        ..ModelSettings::default()
    };
    runner.model_settings(settings).run("x").await.unwrap();
    assert_eq!(model.keys(), ["mine", "mine"]);

    let model = Noting::new();
    let runner = Runner::new(&agent).model(model.clone()).conversation("c");
    runner.run("x").await.unwrap();
    let keys = model.keys();
    assert!(keys[0].starts_with("switchboard:conversation:"), "{keys:?}");
    assert_eq!(keys[0], keys[1]);
}
