//! Random teams whose models decide by what they are shown, so that a process that begins anew decides alike.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use switchboard_core::approval::Decision;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::Conversations;
use switchboard_core::guardrail::{InputGuardrail, InputVerdict};
use switchboard_core::hooks::{HookResult, RunHooks};
use switchboard_core::journal::Later;
use switchboard_core::tool::ToolContext;
use switchboard_core::{
    Agent, Item, Model, ModelRequest, ModelResponse, RunContext, Runner, Session as _, Team, Tool,
    filters, handoff, tool,
};
use switchboard_durable::{DurableRun, DurableRunner, Embedded, RunRecord, RunStatus};

/// Notes a side effect.
pub(crate) type Note = Arc<dyn Fn(&str) + Send + Sync>;

/// The lease of runs in tests.
pub(crate) const LEASE: Duration = Duration::from_millis(60);

/// The start of the text that a model gets for a tool that may run once and was interrupted.
pub(crate) const UNKNOWN: &str = "was interrupted. Its outcome is unknown";

/// A model that answers with the last message, after a while.
struct Echo;

impl Model for Echo {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let last = request
            .input
            .last()
            .and_then(|item| Some(item.text()?.into_owned()));
        let text = format!("re: {}", last.unwrap_or_default());
        Ok(ModelResponse::new([Item::output_message("m", &text)]))
    }
}

/// An agent that answers with the last message.
pub(crate) fn echo() -> Agent {
    Agent::new("Support").model(Echo)
}

/// A model that decides by its seed and the calls in the conversation.
struct SeededModel {
    seed: u64,
    note: Note,
}

impl Model for SeededModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        (self.note)("model");
        Ok(decide(self.seed, &request))
    }
}

fn decide(seed: u64, request: &ModelRequest) -> ModelResponse {
    let mut hash = seed;
    let mut add = |text: &str| {
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(request.agent.as_deref().unwrap_or_default());
    // Not the outputs: that of a tool that was interrupted is another one.
    for item in &request.input {
        match item.output() {
            Some(_) => add(&item.call_id().unwrap_or_default()),
            None => add(item.as_json()),
        }
    }
    let mut random = fastrand::Rng::with_seed(hash);
    let calls = request
        .input
        .iter()
        .filter(|item| item.output().is_some())
        .count();
    let id = |random: &mut fastrand::Rng| format!("c{:012x}", random.u64(..) >> 16);
    let answers = request.tools.is_empty() || random.usize(..10) < 2 + calls;
    if answers {
        let text = format!("Answer {:x}.", random.u32(..));
        return ModelResponse::new([Item::output_message(&id(&mut random), &text)]);
    }
    let mut items = Vec::new();
    for _ in 0..random.usize(1..=3) {
        let tool = &request.tools[random.usize(..request.tools.len())];
        let arguments = match &*tool.name {
            "ask" => r#"{"input":"What now?"}"#,
            _ => "{}",
        };
        items.push(Item::function_call(&id(&mut random), &tool.name, arguments));
    }
    if !request.handoffs.is_empty() && random.bool() {
        let handoff = &request.handoffs[random.usize(..request.handoffs.len())];
        items.push(Item::function_call(
            &id(&mut random),
            &handoff.tool_name,
            "{}",
        ));
    }
    ModelResponse::new(items)
}

/// Hooks with a side effect.
struct Noted(Note);

impl RunHooks<()> for Noted {
    async fn on_agent_start(&self, _ctx: &RunContext<()>, agent: &Agent<()>) -> HookResult {
        (self.0)(&format!("hook {}", agent.name()));
        Ok(())
    }
}

/// A runner of a random team.
pub(crate) fn runner(seed: u64, note: &Note) -> Runner {
    runner_with(seed, note, "send")
}

/// A tool that has not finished when it is called first.
fn later(note: &Note) -> Tool {
    let note = note.clone();
    tool("later").run(move |ctx: ToolContext, (): ()| {
        let note = note.clone();
        async move {
            let begin = async { Ok::<_, BoxError>(SystemTime::now()) };
            let due = ctx.run_context().step("begin", begin).await? + Duration::from_millis(25);
            if SystemTime::now() < due {
                return Err(Later::at(due).into());
            }
            note(&format!("later {}", ctx.idempotency_key()));
            Ok::<_, BoxError>("later is done")
        }
    })
}

/// A runner of a random team in which the tool that needs approval has this name.
pub(crate) fn runner_with(seed: u64, note: &Note, sending: &'static str) -> Runner {
    let effect = |name: &'static str| {
        let note = note.clone();
        move |ctx: ToolContext, (): ()| {
            let note = note.clone();
            async move {
                note(&format!("{name} {}", ctx.idempotency_key()));
                tokio::task::yield_now().await;
                format!("{name} is done")
            }
        }
    };
    let read: Tool = tool("read").run(effect("read"));
    let pay: Tool = tool("pay").at_most_once().run(effect("pay"));
    let send: Tool = tool(sending).needs_approval().run(effect("send"));
    let sometimes: Tool = tool("sometimes")
        .enabled_if(|_ctx, agent: Agent| agent.name() != "B")
        .run(effect("sometimes"));
    let expert: Agent = Agent::new("Expert").tool(read.clone()).tool(send.clone());
    let callback = |name: &'static str| {
        let note = note.clone();
        move |ctx: switchboard_core::handoff::HandoffContext| {
            note(&format!("{name} {}", ctx.call_id()))
        }
    };
    let team: Team = Team::new()
        .agent(
            Agent::new("A")
                .tool(read.clone())
                .tool(pay.clone())
                .tool(sometimes.clone())
                .tool(later(note))
                .tool(expert.as_tool("ask"))
                .handoff(
                    handoff("B")
                        .filter(filters::keep_last(4))
                        .on_handoff(callback("to B")),
                )
                .handoff(handoff("C").needs_approval()),
        )
        .agent(
            Agent::new("B")
                .tool(send)
                .tool(pay.clone())
                .tool(sometimes)
                .handoff(handoff("C").filter(filters::remove_all_tools())),
        )
        .agent(
            Agent::new("C")
                .tool(read)
                .tool(pay)
                .tool(later(note))
                .handoff("A"),
        )
        .build()
        .unwrap();
    let model = SeededModel {
        seed,
        note: note.clone(),
    };
    let guardrail = {
        let note = note.clone();
        InputGuardrail::new("polite", move |_ctx, _agent, _input| {
            note("guardrail");
            InputVerdict::Allow
        })
    };
    let beside = InputGuardrail::beside_model("short", async |_ctx, _agent, _input| {
        tokio::task::yield_now().await;
        InputVerdict::Allow
    });
    Runner::new(&team["A"])
        .model(model)
        .hooks(Noted(note.clone()))
        .input_guardrail(guardrail)
        .input_guardrail(beside)
        .max_turns(14)
}

/// The questions of the conversation `talk`.
pub(crate) async fn questions(store: &Conversations) -> Vec<String> {
    let items = store.get("talk").load(None).await.unwrap();
    let questions = items
        .iter()
        .filter(|item| item.role().as_deref() == Some("user"));
    questions
        .filter_map(|item| Some(item.text()?.into_owned()))
        .collect()
}

/// Approves and rejects what a run waits for until it ends.
pub(crate) async fn decide_until_ended(run: &DurableRun) -> RunRecord {
    loop {
        let record = run.wait().await.unwrap();
        let RunStatus::Waiting { interruptions } = &record.status else {
            return record;
        };
        let Some(waiting) = interruptions.first() else {
            return record;
        };
        let decision = match waiting.call_id.bytes().last().unwrap_or_default() % 3 {
            0 => Decision::reject(),
            _ => Decision::approve(),
        };
        // Another process may have decided it.
        let _ = run.decide(waiting, decision).await;
    }
}

/// The outcome of a run: its status, and the items of its conversation. The outputs of tools that were interrupted and may
/// run once are replaced by those of tools that ran.
pub(crate) async fn outcome(store: &Conversations, record: &RunRecord) -> Vec<String> {
    let items = store.get(&*record.conversation).load(None).await.unwrap();
    let mut lines: Vec<String> = items.iter().map(|item| item.as_json().to_owned()).collect();
    for line in &mut lines {
        if line.contains(UNKNOWN) {
            let mut item: serde_json::Value = serde_json::from_str(line).unwrap();
            item["output"] = "pay is done".into();
            *line = item.to_string();
        }
    }
    lines.push(serde_json::to_string(&record.status).unwrap());
    lines
}

/// The outcome of a run that nothing interrupts, with the number of its writes.
pub(crate) async fn undisturbed(seed: u64) -> (Vec<String>, usize) {
    let (lines, writes, _) = noted(seed).await;
    (lines, writes)
}

/// The outcome of a run that nothing interrupts, with the number of its writes and its side effects.
pub(crate) async fn noted(seed: u64) -> (Vec<String>, usize, Vec<String>) {
    let store = Conversations::in_memory();
    let counted = crate::fault_store::FaultStore::new(store.clone(), None, None);
    let engine = Embedded::new(Conversations::new(counted.clone()));
    let notes: Arc<Mutex<Vec<String>>> = Arc::default();
    let note: Note = {
        let notes = notes.clone();
        Arc::new(move |effect: &str| notes.lock().unwrap().push(effect.to_owned()))
    };
    let durable = DurableRunner::new(engine, runner(seed, &note));
    let run = durable.start("talk", "m1", "Hello").await.unwrap();
    let record = decide_until_ended(&run).await;
    let lines = outcome(&store, &record).await;
    let notes = notes.lock().unwrap().clone();
    (lines, counted.writes(), notes)
}

/// Checks the side effects of a run that was interrupted against those of one that was not: tools that may be repeated
/// ran at least once for each call, and those that may not at most once.
pub(crate) fn check_against(notes: &[String], undisturbed: &[String]) {
    check_effects(notes);
    let calls = |notes: &[String], tool: &str| {
        let of_tool = notes.iter().filter_map(|note| note.strip_prefix(tool));
        of_tool.map(str::to_owned).collect::<BTreeSet<_>>().len()
    };
    for tool in ["read ", "send ", "sometimes ", "later ", "to B "] {
        assert_eq!(calls(notes, tool), calls(undisturbed, tool), "{tool}");
    }
    assert!(calls(notes, "pay ") <= calls(undisturbed, "pay "));
}

/// Checks the side effects of a run that may have been interrupted: those that may happen once did at most once.
pub(crate) fn check_effects(notes: &[String]) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for note in notes.iter().filter(|note| note.starts_with("pay ")) {
        *counts.entry(note).or_default() += 1;
    }
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
}
