//! The start of a real support system: refunds and the closing of accounts wait for a person, runs that
//! wait survive a restart, a customer who comes when billing is closed gets the night desk, agents that
//! pass a customer around are stopped, and every run has a budget.
//!
//! `cargo run --features sqlite --example production_support`

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::approval::{Decision, Interruption, InterruptionKind};
use switchboard::callback::BoxError;
use switchboard::conversation::{Conversation, Conversations};
use switchboard::handoff::HandoffDecision;
use switchboard::run::{
    AtBudget, AtLoopLimit, Budget, Budgets, HandoffOutcome, HandoffPolicy, LoopLimits, RunStatus,
};
use switchboard::sessions::SqliteStore;
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, RunResult, Runner, Team, Tool, handoff, tool};

/// The systems outside, which outlast a restart of this program. Each does an order once, by its
/// idempotency key.
#[derive(Default)]
struct Backend {
    refunds: Mutex<BTreeMap<String, u32>>,
    closures: Mutex<BTreeMap<String, String>>,
}

impl Backend {
    fn refund(&self, key: String, euros: u32) {
        lock(&self.refunds).insert(key, euros);
    }

    fn note_closure(&self, key: String, reason: String) {
        lock(&self.closures).insert(key, reason);
    }

    /// The number of refunds, and their sum.
    fn paid(&self) -> (usize, u32) {
        let refunds = lock(&self.refunds);
        (refunds.len(), refunds.values().sum())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The application's own state, which models never see.
struct App {
    backend: Arc<Backend>,
    billing_is_open: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Refund {
    /// The number of the order.
    order: u32,
    euros: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Closure {
    /// The customer's reason.
    reason: String,
}

/// Refunds of more than 50 euros wait for a person.
fn refund() -> Tool<App> {
    tool::<App>("refund")
        .description("Pays an order back.")
        .needs_approval_if(|_ctx, arguments| arguments["euros"].as_u64() > Some(50))
        .run(|ctx, refund: Refund| {
            ctx.backend.refund(ctx.idempotency_key(), refund.euros);
            format!(
                "{} euros of order {} are paid back.",
                refund.euros, refund.order
            )
        })
}

fn team() -> Result<Team<App>, switchboard::Error> {
    let to_billing = || {
        handoff::<App>("Billing").on_handoff(|ctx| {
            if ctx.billing_is_open {
                HandoffDecision::Proceed
            } else {
                HandoffDecision::redirect("Night desk")
            }
        })
    };
    let to_closure = handoff::<App>("Account closure")
        .payload::<Closure>()
        .needs_approval()
        .on_handoff(|ctx, closure| {
            ctx.backend
                .note_closure(ctx.idempotency_key(), closure.reason);
        });
    Team::new()
        .agent(
            Agent::new("Triage")
                .instructions("Pass the customer to the right colleague.")
                .handoff(to_billing())
                .handoff("Night desk")
                .handoff(to_closure),
        )
        .agent(
            Agent::new("Billing")
                .instructions("You explain bills and pay orders back.")
                .handoff_description("Bills and refunds.")
                .tool(refund())
                .handoff("Triage"),
        )
        .agent(
            Agent::new("Account closure")
                .instructions("You close the account.")
                .handoff_description("Closes accounts.")
                .handoff("Triage"),
        )
        .agent(
            Agent::new("Night desk")
                .instructions("You take messages for colleagues who are not here.")
                .handoff("Triage"),
        )
        .build()
}

/// One start of the program. Everything in it is made anew; only the file and the backend are the same.
struct Service {
    team: Team<App>,
    app: Arc<App>,
    conversations: Conversations,
}

impl Service {
    async fn start(
        file: &Path,
        backend: &Arc<Backend>,
        billing_is_open: bool,
    ) -> Result<Self, BoxError> {
        Ok(Self {
            team: team()?,
            app: Arc::new(App {
                backend: backend.clone(),
                billing_is_open,
            }),
            conversations: Conversations::new(SqliteStore::open(file).await?),
        })
    }

    async fn stop(self) {
        self.conversations.close().await;
    }

    fn conversation(&self, customer: &str) -> Conversation {
        self.conversations.get(customer)
    }

    fn runner(&self, customer: &str, model: &ScriptedModel) -> Runner<App, Arc<App>> {
        let policy = HandoffPolicy::production().loops(
            LoopLimits::none()
                .per_edge(2)
                .without_progress(1)
                .at_limit(AtLoopLimit::Redirect("Night desk".into())),
        );
        let budgets = Budgets::new()
            .run(Budget::new().turns(8).time(Duration::from_secs(60)))
            .agent("Billing", Budget::new().turns(3))
            .at_limit(AtBudget::Finish("A colleague will call you back.".into()));
        Runner::new(&self.team["Triage"])
            .context(self.app.clone())
            .model(model.clone())
            .session(self.conversation(customer))
            .handoff_policy(policy)
            .budgets(budgets)
    }

    /// A message of a customer.
    async fn message(
        &self,
        customer: &str,
        text: &str,
        model: &ScriptedModel,
    ) -> Result<(), BoxError> {
        println!("{customer}: {text}");
        let result = self.runner(customer, model).run(text).await?;
        report(&result, 0);
        Ok(())
    }

    /// Decides all calls that wait in the conversation of a customer, and goes on with its run.
    async fn decide(
        &self,
        customer: &str,
        decide: impl Fn(&Interruption) -> Decision,
        model: &ScriptedModel,
    ) -> Result<(), BoxError> {
        let waiting_run = self.conversation(customer).waiting_run().await?;
        let mut run = waiting_run.ok_or("nothing waits for a decision")?;
        for waiting in run.interruptions() {
            let decision = decide(&waiting);
            let word = if decision.is_approved() {
                "approved"
            } else {
                "rejected"
            };
            println!("[{word}: {} {}]", waiting.tool, waiting.arguments);
            run.decide(&waiting, decision)?;
        }
        let reported = run.handoffs().len();
        let result = self.runner(customer, model).resume(run).await?;
        report(&result, reported);
        Ok(())
    }
}

/// Prints what became of a message, without the handoffs that were reported before.
fn report<C>(result: &RunResult<C>, reported: usize) {
    for made in result.handoffs().iter().skip(reported) {
        match &made.outcome {
            HandoffOutcome::Taken => match &made.redirected_from {
                Some(asked) => println!("[{} → {}, instead of {asked}]", made.from, made.to),
                None => println!("[{} → {}]", made.from, made.to),
            },
            HandoffOutcome::Refused(reason) => println!("[not to {}: {reason}]", made.to),
            HandoffOutcome::Failed(problem) => println!("[not to {}: {problem}]", made.to),
            _ => {}
        }
    }
    if result.status() != RunStatus::Interrupted {
        println!("{}: {}\n", result.last_agent().name(), result.final_text());
        return;
    }
    for waiting in result.interruptions() {
        let call = match &waiting.kind {
            InterruptionKind::Handoff { to } => format!("a handoff to {to}"),
            _ => waiting.tool.to_string(),
        };
        println!("[{} waits: {call} {}]", waiting.agent, waiting.arguments);
    }
    println!();
}

/// A manager who does not pay more than 500 euros back.
fn manager(waiting: &Interruption) -> Decision {
    let refund: Result<Refund, _> = serde_json::from_str(&waiting.arguments);
    match refund {
        Ok(refund) if refund.euros > 500 => {
            Decision::reject().message("More than 500 euros need the director's signature.")
        }
        _ => Decision::approve(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("support.db");
    let backend = Arc::new(Backend::default());

    // Any model will do. These follow a script, so that the example needs no key.
    println!("Monday\n");
    let monday = Service::start(&file, &backend, true).await?;
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .calls([
            ("refund", r#"{"order": 7, "euros": 20}"#),
            ("refund", r#"{"order": 8, "euros": 80}"#),
            ("refund", r#"{"order": 9, "euros": 900}"#),
        ]);
    monday
        .message("ann", "Orders 7, 8 and 9 never came", &model)
        .await?;
    let model = ScriptedModel::new().call(
        "transfer_to_account_closure",
        r#"{"reason": "too expensive"}"#,
    );
    monday
        .message("bob", "Please close my account", &model)
        .await?;
    // What needs no approval has run.
    assert_eq!(backend.paid(), (1, 20));
    monday.stop().await;

    println!("Tuesday, after a restart\n");
    let tuesday = Service::start(&file, &backend, true).await?;
    let model =
        ScriptedModel::new().say("Orders 7 and 8 are paid back; the director looks at order 9.");
    tuesday.decide("ann", manager, &model).await?;
    assert_eq!(backend.paid(), (2, 100));
    // The wait is over: nobody can have the refunds paid a second time.
    assert!(tuesday.decide("ann", manager, &model).await.is_err());
    let model = ScriptedModel::new().say("Your account is closed. We are sorry to see you go.");
    tuesday.decide("bob", manager, &model).await?;
    tuesday.stop().await;

    println!("Tuesday night\n");
    let night = Service::start(&file, &backend, false).await?;
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Billing is back at nine. I have left them a note.");
    night
        .message("cleo", "What is this charge?", &model)
        .await?;
    night.stop().await;

    println!("Wednesday\n");
    let wednesday = Service::start(&file, &backend, true).await?;
    // Two agents that send the customer to each other.
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .call("transfer_to_triage", "{}")
        .call("transfer_to_billing", "{}")
        .say("I have noted it, and somebody will call you.");
    wednesday
        .message("dan", "My bill does not work on my phone", &model)
        .await?;
    // An agent that does not come to an end.
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .call("refund", r#"{"order": 1, "euros": 1}"#)
        .call("refund", r#"{"order": 2, "euros": 1}"#)
        .call("refund", r#"{"order": 3, "euros": 1}"#)
        .call("refund", r#"{"order": 4, "euros": 1}"#);
    wednesday
        .message("eve", "Pay everything back", &model)
        .await?;
    assert_eq!(model.left(), 1);
    wednesday.stop().await;

    let (refunds, euros) = backend.paid();
    println!("{refunds} refunds, {euros} euros");
    for reason in lock(&backend.closures).values() {
        println!("closed: {reason}");
    }
    Ok(())
}
