//! The promises that hold for a whole conversation, on every store, shown by the requests that a
//! provider received over HTTP and by what the store holds.

use std::sync::atomic::{AtomicU32, Ordering};

use fake_provider::{FakeProvider, Reply};
use serde_json::{Value, json};
use switchboard_core::conversation::{
    Conversation, ConversationError, ConversationErrorKind, Conversations,
};
use switchboard_core::guardrail::{InputGuardrail, InputVerdict, OutputGuardrail, OutputVerdict};
use switchboard_core::run::Compaction;
use switchboard_core::{
    Agent, Error, ErrorKind, FinalOutput, Input, Runner, Session as _, Team, filters, handoff,
};
use switchboard_models::{Endpoint, ResponsesModel};

use crate::backends::Backend;
use crate::*;

/// A provider and the model that asks it.
struct Provider {
    server: FakeProvider,
    model: ResponsesModel,
}

impl Provider {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let server = FakeProvider::on_thread().unwrap();
        server.script("key", replies);
        let endpoint = Endpoint::at(server.url()).key("key").retries(0);
        let model = ResponsesModel::new(&endpoint.connect().unwrap(), "m");
        Self { server, model }
    }

    /// The texts of the user's messages in each request.
    fn words(&self) -> Vec<Vec<String>> {
        self.server.assert_valid();
        let requests = self.server.requests();
        let words = |body: &Value| {
            let items = body["input"].as_array().unwrap().iter();
            let of_user = items.filter(|item| item["role"] == "user");
            let text = |item: &Value| item["content"].as_str().unwrap_or_default().to_owned();
            of_user.map(text).collect()
        };
        requests
            .iter()
            .map(|request| words(&request.body))
            .collect()
    }

    /// All that the provider received.
    fn received(&self) -> String {
        let requests = self.server.requests();
        requests
            .iter()
            .map(|request| request.body.to_string())
            .collect()
    }
}

/// A message with an identifier of its own, as those of a real provider have.
fn says(text: &str) -> Reply {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let id = format!("msg_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    let message = json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content});
    Reply::items([message])
}

fn transfer() -> Reply {
    Reply::call("c1", "transfer_to_billing", "{}")
}

fn down() -> Reply {
    Reply::status(400, json!({"error": {"message": "no"}}))
}

/// A conversation as another process would open it.
async fn reopened(backend: &impl Backend) -> Conversation {
    Conversations::new(backend.open().await).get("c")
}

/// Everything that is stored of a conversation.
async fn stored(session: &Conversation) -> String {
    serde_json::to_string(&session.export().await.unwrap()).unwrap()
}

fn cause(error: &Error) -> Option<ConversationErrorKind> {
    let cause = error.cause()?.downcast_ref::<ConversationError>()?;
    Some(cause.kind())
}

/// A team whose first agent redacts what it hands over and refuses passwords.
fn team() -> Team {
    let refuses = InputGuardrail::new("no_secrets", |_ctx, _agent, input: Input| {
        let items = input.items();
        let has_secret = items.iter().any(|item| item.as_json().contains("password"));
        InputVerdict::trip_if(has_secret, "a password")
    });
    Team::new()
        .agent(
            Agent::new("Triage")
                .handoff(handoff("Billing").filter(filters::redact_pii()))
                .input_guardrail(refuses),
        )
        .agent(Agent::new("Billing").handoff("Triage"))
        .build()
        .unwrap()
}

tests! {
    async fn what_was_filtered_stays_filtered(backend) {
        let provider = Provider::new([transfer(), says("Which?"), says("Paid."), says("Bye.")]);
        let team = team();
        for words in ["My card is 4111 1111 1111 1111", "The one of May", "Thanks"] {
            let session = reopened(&backend).await;
            let runner = Runner::new(&team["Triage"]).model(provider.model.clone()).session(&session);
            runner.run(words).await.unwrap();
        }
        let words = provider.words();
        assert_eq!(words[0], ["My card is 4111 1111 1111 1111"]);
        assert_eq!(words[3], ["My card is [CARD]", "The one of May", "Thanks"]);
        assert!(stored(&reopened(&backend).await).await.contains("4111 1111"));
    }

    async fn a_refused_message_is_neither_sent_nor_stored(backend) {
        let provider = Provider::new([transfer(), says("Which?"), says("Paid.")]);
        let team = team();
        for (words, is_refused) in [("my password is hunter2", true), ("My bill", false), ("password: hunter2", true), ("The one of May", false)] {
            let session = reopened(&backend).await;
            let runner = Runner::new(&team["Triage"]).model(provider.model.clone()).session(&session);
            let ran = runner.run(words).await;
            assert_eq!(ran.err().map(|error| error.kind()), is_refused.then_some(ErrorKind::InputGuardrail));
        }
        assert_eq!(provider.words()[2], ["My bill", "The one of May"]);
        assert!(!provider.received().contains("hunter2"));
        let stored = stored(&reopened(&backend).await).await;
        assert!(!stored.contains("hunter2"));
        assert_eq!(stored.matches("no_secrets").count(), 2);
    }

    async fn a_refused_answer_is_neither_shown_nor_stored(backend) {
        let provider = Provider::new([says("It is Falcon.").pieces(3), says("Hello!")]);
        let codename = OutputGuardrail::new("codename", |_ctx, _agent, output: FinalOutput| {
            OutputVerdict::trip_if(output.text().contains("Falcon"), "the codename")
        });
        let agent: Agent = Agent::new("A").output_guardrail(codename);
        let session = reopened(&backend).await;
        let runner = Runner::new(&agent).model(provider.model.clone()).session(&session);
        let mut stream = runner.stream("What is it?");
        let mut shown = String::new();
        while let Some(event) = stream.next().await {
            shown += &serde_json::to_string(&event).unwrap();
        }
        assert_eq!(stream.finish().await.unwrap_err().kind(), ErrorKind::OutputGuardrail);
        assert!(!shown.contains("Falcon"), "{shown}");
        runner.run("Hi").await.unwrap();
        assert_eq!(provider.words()[1], ["Hi"]);
        assert!(!stored(&session).await.contains("Falcon"));
    }

    async fn a_failed_turn_leaves_the_conversation_as_it_was(backend) {
        let provider = Provider::new([down(), down(), says("Hello!"), transfer(), down(), says("Which?")]);
        let team = team();
        let session = reopened(&backend).await;
        let runner = Runner::new(&team["Triage"]).model(provider.model.clone()).session(&session);
        runner.run("Hi").await.unwrap_err();
        runner.run("Hi").await.unwrap_err();
        runner.run("Hi").await.unwrap();
        assert_eq!(provider.words()[2], ["Hi"]);
        // Before the second turn: the handoff stays, and the run goes on when it is resumed elsewhere.
        let error = runner.run("My bill").await.unwrap_err();
        assert_eq!(session.agent().await.unwrap().as_deref(), Some("Billing"));
        let run = serde_json::to_string(error.run().unwrap()).unwrap();
        let session = reopened(&backend).await;
        let runner = Runner::new(&team["Triage"]).model(provider.model.clone()).session(&session);
        runner.resume(serde_json::from_str(&run).unwrap()).await.unwrap();
        assert_eq!(provider.words()[5], ["Hi", "My bill"]);
        assert_eq!(session.load(None).await.unwrap().len(), 6);
    }

    async fn of_two_runs_one_is_stored_and_the_other_told(backend) {
        let provider = Provider::new([
            says("Slow.").delay(Duration::from_millis(300)),
            says("Fast."),
        ]);
        let agent: Agent = Agent::new("A");
        let session = reopened(&backend).await;
        let runner = Runner::new(&agent).model(provider.model.clone()).session(&session);
        let slow = tokio::spawn(runner.run("1"));
        while provider.server.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        runner.run("2").await.unwrap();
        let error = slow.await.unwrap().unwrap_err();
        assert_eq!(cause(&error), Some(ConversationErrorKind::Conflict));
        assert_eq!(texts(&backend.open().await, "c").await.len(), 3);
    }

    async fn a_message_that_is_refused_meanwhile_does_not_make_another_one_fail(backend) {
        let provider = Provider::new([
            transfer().delay(Duration::from_millis(300)),
            says("Which?"),
            says("Paid."),
        ]);
        let team = team();
        let session = reopened(&backend).await;
        let runner = Runner::new(&team["Triage"]).model(provider.model.clone()).session(&session);
        let slow = tokio::spawn(runner.run("My card is 4111 1111 1111 1111"));
        while provider.server.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let refused = runner.run("my password is hunter2").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InputGuardrail);
        slow.await.unwrap().unwrap();
        runner.run("The one of May").await.unwrap();
        assert_eq!(provider.words()[2], ["My card is [CARD]", "The one of May"]);
        assert!(!stored(&session).await.contains("hunter2"));
    }

    async fn the_team_and_the_agent_are_part_of_the_conversation(backend) {
        let provider = Provider::new([transfer(), says("Which?"), says("Paid."), says("Welcome!")]);
        let first = team();
        let session = reopened(&backend).await;
        let runner = Runner::new(&first["Triage"]).model(provider.model.clone()).session(&session);
        runner.run("My bill").await.unwrap();
        let session = reopened(&backend).await;
        let hotel: Agent = Agent::new("Hotel").model(provider.model.clone());
        let other = Runner::new(&hotel).session(&session);
        let error = other.run("Hi").await.unwrap_err();
        assert_eq!(cause(&error), Some(ConversationErrorKind::OtherTeam));
        assert_eq!(provider.words().len(), 2);
        let runner = Runner::new(&first["Triage"]).model(provider.model.clone()).session(&session);
        let result = runner.run("The one of May").await.unwrap();
        assert_eq!(result.last_agent().name(), "Billing");
        // A copy goes on with any team.
        let copy = session.fork("copy", None).await.unwrap();
        copy.set_agent(None).await.unwrap();
        Runner::new(&hotel).session(&copy).run("Hi").await.unwrap();
        assert_eq!(provider.words()[3], ["My bill", "The one of May", "Hi"]);
    }

    async fn runs_take_turns_with_a_lease(backend) {
        let provider = Provider::new((0..4).map(|_| says("Ok.").delay(Duration::from_millis(10))));
        let agent: Agent = Agent::new("A");
        let runs = (0..4).map(|number| {
            let (agent, model) = (&agent, provider.model.clone());
            let backend = &backend;
            async move {
                let session = reopened(backend).await;
                let runner = Runner::new(agent).model(model).session(&session);
                runner.exclusive(LONG).run(format!("{number}")).await.unwrap();
            }
        });
        futures_util::future::join_all(runs).await;
        let sizes: Vec<usize> = provider.words().iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 2, 3, 4]);
    }

    async fn a_summary_takes_the_place_of_the_older_part_and_undo_brings_it_back(backend) {
        let provider = Provider::new([
            says("One."), says("A parcel was lost."), says("Two."), says("Three."),
        ]);
        let agent: Agent = Agent::new("A");
        let session = reopened(&backend).await;
        let runner = Runner::new(&agent).model(provider.model.clone()).session(&session);
        runner.run("A long story about a parcel. ".repeat(40)).await.unwrap();
        let short = runner.clone().compact(Compaction::new(100).keep_last(0));
        short.run("And?").await.unwrap();
        assert_eq!(provider.words()[2], ["And?"]);
        assert_eq!(session.load(None).await.unwrap().len(), 4);
        // Before the first message: neither the story nor its summary.
        session.undo().await.unwrap();
        session.undo().await.unwrap();
        runner.run("Hello").await.unwrap();
        assert_eq!(provider.words()[3], ["Hello"]);
    }
}
