//! A team of three agents that hand off to each other, with everything that policies decide about: handoffs
//! with payloads, callbacks and guardrails, tools with and without approval, an agent used as a tool. Runs
//! can be killed after each step and go on from their state in a new process, in effect.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use switchboard_core::approval::Decision;
use switchboard_core::conversation::{Conversation, Conversations};
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict, ToolGuardrail, ToolVerdict};
use switchboard_core::handoff::HandoffDecision;
use switchboard_core::items::{ItemKind, Items};
use switchboard_core::run::{
    AtBudget, AtLoopLimit, Budgets, HandoffOutcome, HandoffPolicy, SeveralHandoffs, UnknownTool,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Item, ModelRequest, ModelResponse, Run, RunConfig, Runner, Step, Team, Tool, handoff,
    tool,
};

/// The names of the agents. The first begins, and each hands off to the others.
pub(crate) const AGENTS: [&str; 3] = ["Ann", "Bob", "Cid"];

/// The settings of a run.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) policy: HandoffPolicy,
    pub(crate) budgets: Option<Budgets>,
    pub(crate) max_turns: u32,
    pub(crate) callback: Choice,
    pub(crate) guardrail: Option<Choice>,
    pub(crate) handoffs_need_approval: bool,
    /// Set if the guardrail on the tool `pay` refuses every second time that it is asked.
    pub(crate) has_fickle_guardrail: bool,
    /// The decisions on calls, chosen by the identifier of the call.
    pub(crate) decisions: Vec<Verdict>,
    /// Set if all calls that wait are decided before the run goes on, and not only the first.
    pub(crate) decides_all: bool,
    pub(crate) in_conversation: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            policy: HandoffPolicy::production(),
            budgets: None,
            max_turns: 12,
            callback: Choice::Proceed,
            guardrail: None,
            handoffs_need_approval: false,
            has_fickle_guardrail: false,
            decisions: vec![Verdict::Approve],
            decides_all: true,
            in_conversation: false,
        }
    }
}

/// The decision of a callback or a guardrail on a handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Proceed,
    Refuse,
    /// To the last agent, unless the handoff leads there.
    Redirect,
    AskApproval,
    /// The callback fails; a guardrail trips.
    Fail,
}

/// The decision of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Approve,
    Reject,
    ApproveAlways,
    RejectAlways,
}

impl Verdict {
    fn decision(self) -> Decision {
        match self {
            Self::Approve => Decision::approve(),
            Self::Reject => Decision::reject().message("No."),
            Self::ApproveAlways => Decision::approve().always(),
            Self::RejectAlways => Decision::reject().always(),
        }
    }
}

/// One item of a scripted answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Words,
    Announcement,
    Look,
    Pay,
    Ask,
    Handoff(usize),
    /// A handoff whose payload is not what it asks for.
    InvalidHandoff(usize),
}

/// The world outside: models, which go on where they were, and what tools and callbacks have done.
#[derive(Clone)]
struct World {
    model: ScriptedModel,
    expert: ScriptedModel,
    effects: Arc<Mutex<Vec<Effect>>>,
    guardrail_calls: Arc<AtomicUsize>,
}

/// A side effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Effect {
    /// The agent and the tool, or the two agents of a callback.
    what: (String, String),
    call_id: String,
}

impl World {
    fn new(script: &[Vec<Part>]) -> Self {
        let mut model = ScriptedModel::new();
        let mut count = 0;
        for answer in script {
            let items = answer.iter().map(|part| {
                count += 1;
                item(*part, count)
            });
            model = model.reply(items.collect::<Vec<_>>());
        }
        for _ in 0..20 {
            model = model.say("That is all.");
        }
        let asked = Arc::new(AtomicUsize::new(0));
        let expert = (0..60).fold(ScriptedModel::new(), |model, _| {
            let asked = asked.clone();
            model.respond_by(move |request| Ok(expert_answer(request, &asked)))
        });
        Self {
            model,
            expert,
            effects: Arc::default(),
            guardrail_calls: Arc::default(),
        }
    }

    fn effect(&self, agent: &str, what: &str, call_id: &str) {
        self.effects.lock().unwrap().push(Effect {
            what: (agent.to_owned(), what.to_owned()),
            call_id: call_id.to_owned(),
        });
    }

    fn tool(&self, name: &'static str) -> Tool {
        let world = self.clone();
        let builder = if name == "pay" {
            tool::<()>(name).needs_approval()
        } else {
            tool::<()>(name)
        };
        builder.run(move |ctx, (): ()| {
            world.effect(ctx.agent().name(), name, ctx.call_id());
            "done"
        })
    }

    /// The team, as each process builds it.
    fn runner(&self, setting: &Setting, session: Option<&Conversation>) -> Runner {
        let mut team = Team::new();
        let settings = RunConfig {
            model: Some(self.expert.clone().into()),
            ..RunConfig::default()
        };
        for from in AGENTS {
            let expert: Agent = Agent::new("Expert").tool(self.tool("pay"));
            let mut agent = Agent::new(from)
                .instructions(from)
                .tool(self.tool("look"))
                .tool(self.tool("pay"))
                .tool(expert.as_tool("ask").config(settings.clone()));
            for to in AGENTS.into_iter().filter(|to| *to != from) {
                let (world, callback) = (self.clone(), setting.callback);
                let schema = json!({
                    "type": "object",
                    "properties": {"reason": {"type": "string"}},
                    "required": ["reason"],
                });
                let mut edge = handoff(to).payload_schema(schema);
                if setting.handoffs_need_approval {
                    edge = edge.needs_approval();
                }
                if let Some(choice) = setting.guardrail {
                    edge =
                        edge.guardrail(HandoffGuardrail::<()>::new(
                            "g",
                            move |_request| match choice {
                                Choice::Refuse => HandoffVerdict::refuse("not now"),
                                Choice::Redirect if to != AGENTS[2] && from != AGENTS[2] => {
                                    HandoffVerdict::redirect(AGENTS[2])
                                }
                                Choice::AskApproval => HandoffVerdict::AskApproval,
                                Choice::Fail => HandoffVerdict::trip("no"),
                                _ => HandoffVerdict::Allow,
                            },
                        ));
                }
                agent = agent.handoff(edge.on_handoff(move |ctx, _payload| match callback {
                    Choice::Refuse => Ok(HandoffDecision::refuse("closed")),
                    Choice::Redirect if to != AGENTS[2] && from != AGENTS[2] => Ok(
                        HandoffDecision::redirect_with(AGENTS[2], json!({"reason": "r"})),
                    ),
                    Choice::AskApproval if !ctx.is_approved() => Ok(HandoffDecision::AskApproval),
                    Choice::Fail => Err("the database is down"),
                    _ => {
                        world.effect(from, to, &ctx.call_id());
                        Ok(HandoffDecision::Proceed)
                    }
                }));
            }
            team = team.agent(agent);
        }
        let team = team.build().unwrap();
        let mut runner = Runner::new(&team[AGENTS[0]])
            .model(self.model.clone())
            .max_turns(setting.max_turns)
            .unknown_tool(UnknownTool::TellModel)
            .handoff_policy(setting.policy.clone());
        if let Some(budgets) = &setting.budgets {
            runner = runner.budgets(budgets.clone());
        }
        if setting.has_fickle_guardrail {
            let calls = self.guardrail_calls.clone();
            runner = runner.tool_guardrail(ToolGuardrail::<()>::on_call("fickle", move |ctx| {
                let is_asked = ctx.tool() == "pay";
                let count = if is_asked {
                    calls.fetch_add(1, Ordering::SeqCst)
                } else {
                    0
                };
                if count % 2 == 1 {
                    ToolVerdict::Replace("Refused.".into())
                } else {
                    ToolVerdict::Allow
                }
            }));
        }
        match session {
            Some(session) => runner.session(session),
            None => runner,
        }
    }
}

fn item(part: Part, count: usize) -> Item {
    let id = format!("call_{count}");
    let transfer = |to: usize| format!("transfer_to_{}", AGENTS[to].to_lowercase());
    match part {
        Part::Words => Item::output_message(&format!("msg_{count}"), "Hm."),
        Part::Announcement => {
            let text = "One moment, I'll transfer you to Bob.";
            Item::output_message(&format!("msg_{count}"), text)
        }
        Part::Look => Item::function_call(&id, "look", "{}"),
        Part::Pay => Item::function_call(&id, "pay", "{}"),
        Part::Ask => Item::function_call(&id, "ask", r#"{"input":"x"}"#),
        Part::Handoff(to) => Item::function_call(&id, &transfer(to), r#"{"reason":"x"}"#),
        Part::InvalidHandoff(to) => Item::function_call(&id, &transfer(to), r#"{"reason":7}"#),
    }
}

/// The expert pays, and then says so.
fn expert_answer(request: &ModelRequest, asked: &AtomicUsize) -> ModelResponse {
    let number = asked.fetch_add(1, Ordering::SeqCst);
    let has_paid = request.input.iter().any(|item| item.output().is_some());
    ModelResponse::new(if has_paid {
        [Item::output_message(&format!("expert_{number}"), "Paid.")]
    } else {
        [Item::function_call(&format!("inner_{number}"), "pay", "{}")]
    })
}

/// The moments at which the process is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kills {
    Never,
    AfterStep(usize),
    /// The state is read after each step; the team is built anew after every fourth.
    AfterEachStep,
}

/// Everything that can be observed of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Observation {
    pub(crate) outcome: Result<String, String>,
    pub(crate) steps: usize,
    pub(crate) agent: String,
    pub(crate) history: Vec<String>,
    /// The record of the conversation.
    pub(crate) recorded: Vec<String>,
    pub(crate) requests: Vec<(String, Vec<String>)>,
    pub(crate) effects: Vec<Effect>,
    /// The outcomes of the handoffs, with their agents.
    pub(crate) handoffs: Vec<(String, String, HandoffOutcome)>,
}

fn json_of(items: &Items) -> Vec<String> {
    items.iter().map(|item| item.as_json().to_owned()).collect()
}

/// Runs to the end, and checks what must hold with every policy.
pub(crate) fn observe(setting: &Setting, script: &[Vec<Part>], kills: Kills) -> Observation {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let world = World::new(script);
    let observation = runtime.unwrap().block_on(drive(setting, &world, kills));
    check(setting, &world, &observation);
    observation
}

async fn drive(setting: &Setting, world: &World, kills: Kills) -> Observation {
    let conversations = Conversations::in_memory();
    let session = setting.in_conversation.then(|| conversations.get("c"));
    let mut process = world.runner(setting, session.as_ref());
    let mut run = process.begin("Hello");
    let mut approved = Approved::default();
    let mut spent = None;
    let mut steps = 0;
    let outcome = loop {
        if let Step::Done(output) = run.step() {
            break Ok(output.text().into_owned());
        }
        let waiting = run.interruptions();
        let decided = if setting.decides_all {
            waiting.len()
        } else {
            waiting.len().min(1)
        };
        for waiting in &waiting[..decided] {
            let number: usize = waiting.call_id.bytes().map(usize::from).sum();
            let verdict = setting.decisions[number % setting.decisions.len()];
            run.decide(waiting, verdict.decision()).unwrap();
            approved.note(verdict, waiting);
        }
        if !waiting.is_empty() {
            spent.get_or_insert_with(|| run.clone());
        }
        if let Err(error) = process.step(&mut run).await {
            break Err(error.to_string());
        }
        steps += 1;
        assert!(steps < 120, "the run does not end: {setting:?}");
        let is_killed = match kills {
            Kills::Never => false,
            Kills::AfterStep(at) => steps == at,
            Kills::AfterEachStep => true,
        };
        if is_killed {
            let stored = serde_json::to_string(&run).unwrap();
            // Building the team is most of the work.
            if matches!(kills, Kills::AfterStep(_)) || steps % 4 == 1 {
                process = world.runner(setting, session.as_ref());
            }
            run = Run::from_json(&stored).unwrap();
            assert_eq!(serde_json::to_string(&run).unwrap(), stored);
        }
    };
    let effects = world.effects.lock().unwrap().clone();
    approved.check(setting, &effects);
    // A state that was resumed is spent.
    if let (Some(spent), Ok(_)) = (spent, &outcome) {
        assert!(process.resume(spent).await.is_err());
        assert_eq!(*world.effects.lock().unwrap(), effects);
    }
    let mut recorded = Vec::new();
    if let Some(session) = &session {
        let record = session.record(None).await.unwrap();
        let items = record.iter().filter_map(|entry| entry.content.item());
        recorded.extend(items.map(|item| item.as_json().to_owned()));
    }
    let requests = world.model.requests().into_iter().map(|request| {
        let agent = request.instructions.unwrap_or_default().to_string();
        (agent, json_of(&request.input))
    });
    let handoffs = run.handoffs().iter().map(|record| {
        let (from, to) = (record.from.to_string(), record.to.to_string());
        (from, to, record.outcome.clone())
    });
    Observation {
        outcome,
        steps,
        agent: run.agent().to_owned(),
        history: json_of(&run.to_input_list()),
        recorded,
        requests: requests.collect(),
        handoffs: handoffs.collect(),
        effects,
    }
}

/// The calls and tools that a person has approved.
#[derive(Default)]
struct Approved {
    calls: Vec<String>,
    always: Vec<(String, String)>,
}

impl Approved {
    fn note(&mut self, verdict: Verdict, waiting: &switchboard_core::approval::Interruption) {
        match verdict {
            Verdict::Approve => self.calls.push(waiting.call_id.to_string()),
            Verdict::ApproveAlways => {
                self.calls.push(waiting.call_id.to_string());
                self.always
                    .push((waiting.agent.to_string(), waiting.tool.to_string()));
            }
            Verdict::Reject | Verdict::RejectAlways => {}
        }
    }

    /// Nothing that needs approval has run without it.
    fn check(&self, setting: &Setting, effects: &[Effect]) {
        for effect in effects {
            let (agent, what) = &effect.what;
            let is_handoff = AGENTS.contains(&what.as_str());
            let asks = |choice: Option<Choice>| choice == Some(Choice::AskApproval);
            let is_free = if is_handoff {
                !setting.handoffs_need_approval
                    && !asks(setting.guardrail)
                    && !asks(Some(setting.callback))
            } else {
                what != "pay"
            };
            let tool = if is_handoff {
                format!("transfer_to_{}", what.to_lowercase())
            } else {
                what.clone()
            };
            let is_approved = self.calls.contains(&effect.call_id)
                || self.always.contains(&(agent.clone(), tool));
            assert!(
                is_free || is_approved,
                "{effect:?} was not approved: {setting:?}"
            );
        }
    }
}

/// Asserts what every policy promises.
fn check(setting: &Setting, world: &World, observation: &Observation) {
    for request in world
        .model
        .requests()
        .iter()
        .chain(&world.expert.requests())
    {
        assert!(
            is_paired(&request.input),
            "{:#?} {setting:?}",
            request.input
        );
    }
    let mut counts: BTreeMap<&Effect, usize> = BTreeMap::new();
    for effect in &observation.effects {
        *counts.entry(effect).or_default() += 1;
    }
    assert!(
        counts.values().all(|count| *count == 1),
        "{counts:?} {setting:?}"
    );

    check_limits(setting, world, observation);
    // Agents side by side are asked without having the conversation.
    if matches!(setting.policy.several, SeveralHandoffs::FanOut(_)) {
        return;
    }
    // The agent changes by handoffs alone, between turns.
    let is_taken = |outcome: &HandoffOutcome| *outcome == HandoffOutcome::Taken;
    let mut taken = observation
        .handoffs
        .iter()
        .filter(|(_, _, outcome)| is_taken(outcome));
    let mut current = AGENTS[0].to_owned();
    for (agent, _) in &observation.requests {
        while current != *agent {
            let (from, to, _) = taken.next().unwrap();
            assert_eq!(*from, current);
            current.clone_from(to);
        }
    }
}

/// Asserts what every limit and every budget promises.
fn check_limits(setting: &Setting, world: &World, observation: &Observation) {
    let count = |is_it: fn(&HandoffOutcome) -> bool| {
        let outcomes = observation.handoffs.iter().map(|(_, _, outcome)| outcome);
        outcomes.filter(|outcome| is_it(outcome)).count()
    };
    let policy = &setting.policy;
    let failed = count(|outcome| matches!(outcome, HandoffOutcome::Failed(_)));
    let allowed = policy.retries.map_or(0, |retries| retries.per_run as usize);
    assert!(failed <= allowed, "{failed} failed handoffs: {setting:?}");
    if let Some(limit) = policy.loops.handoffs
        && !matches!(policy.loops.at_limit, AtLoopLimit::Redirect(_))
        && setting.budgets.is_none()
    {
        let taken = count(|outcome| *outcome == HandoffOutcome::Taken);
        assert!(taken <= limit as usize, "{taken} handoffs: {setting:?}");
    }
    assert!(observation.requests.len() <= setting.max_turns as usize);
    let Some(budgets) = &setting.budgets else {
        return;
    };
    // Another agent may go on beyond a budget.
    if matches!(budgets.at_limit, AtBudget::HandTo(_)) {
        return;
    }
    let requests = world.model.requests().into_iter();
    let mut asked: Vec<_> = requests.chain(world.expert.requests()).collect();
    if let Some(turns) = budgets.run.turns {
        assert!(
            asked.len() <= turns as usize,
            "{} turns: {setting:?}",
            asked.len()
        );
    }
    for (agent, budget) in &budgets.agents {
        asked.retain(|request| request.agent.as_ref() == Some(agent));
        if let Some(turns) = budget.turns {
            assert!(asked.len() <= turns as usize, "{agent}: {setting:?}");
        }
    }
}

/// Returns `true` if every call has exactly one output, after it, and every output has a call.
fn is_paired(items: &Items) -> bool {
    let of = |kind: ItemKind| {
        let items = items.iter().enumerate();
        let items = items.filter(move |(_, item)| item.kind() == kind);
        let ids = items.map(|(index, item)| (item.call_id().unwrap().into_owned(), index));
        ids.collect::<Vec<_>>()
    };
    let (calls, outputs) = (of(ItemKind::FunctionCall), of(ItemKind::FunctionCallOutput));
    calls.len() == outputs.len()
        && calls.iter().all(|(id, call)| {
            let matching: Vec<_> = outputs.iter().filter(|(other, _)| other == id).collect();
            matches!(matching.as_slice(), [(_, output)] if output > call)
        })
}
