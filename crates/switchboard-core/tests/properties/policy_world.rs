//! A team of three agents that hand off to each other, with everything that policies decide about: handoffs
//! with payloads, callbacks and guardrails, ways back, conditions that hand off, people, tools with and without
//! approval, an agent used as a tool. Runs can be killed after each step and go on from their state in a new
//! process, in effect.

mod invariants;
mod observation;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use switchboard_core::approval::Decision;
use switchboard_core::conversation::Conversation;
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict, ToolGuardrail, ToolVerdict};
use switchboard_core::handoff::{
    EdgeDecision, HandoffBuilder, HandoffContext, HandoffDecision, PayloadDelivery,
};
use switchboard_core::model::Usage;
use switchboard_core::people::PersonAnswer;
use switchboard_core::run::{Budgets, HandoffPolicy, UnknownTool};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Handoff, Item, ModelRequest, ModelResponse, RunConfig, RunContext, Runner, Team, Tool,
    handoff, tool,
};

pub(crate) use observation::{Kills, Observation, observe};

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
    /// The agent that a person answers for, and the answers. The last one is given from then on, so it is a
    /// reply: a person may hand over as often as it likes.
    pub(crate) person: Option<(usize, &'static [Answer])>,
    pub(crate) way_back: Option<WayBack>,
    pub(crate) edges: Option<Edges>,
    pub(crate) delivery: Option<PayloadDelivery>,
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
            person: None,
            way_back: None,
            edges: None,
            delivery: None,
        }
    }
}

impl Setting {
    /// The name of the agent that a person answers for.
    fn person_name(&self) -> Option<&'static str> {
        self.person.map(|(person, _)| AGENTS[person])
    }

    /// The number of messages. In a stored conversation, the next one comes to the agent that has it then.
    fn messages(&self) -> usize {
        if self.person.is_some() && self.in_conversation {
            2
        } else {
            1
        }
    }
}

/// The answer of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Reply,
    ReplyAndHandBack,
    HandBack,
    /// With a payload that is not what the handoff asks for.
    HandBackInvalid,
    HandTo(usize),
}

impl Answer {
    /// The answer with words and a payload. A person with nobody to hand to replies.
    fn given(self, from: Option<&str>, may_hand_to: &[Arc<str>]) -> PersonAnswer {
        let reply = || PersonAnswer::reply("I am a person.");
        let payload = json!({"reason": "asked_a_person"});
        let can_hand_to = |name: &str| may_hand_to.iter().any(|known| **known == *name);
        match self {
            Self::HandTo(to) if can_hand_to(AGENTS[to]) => PersonAnswer::hand_to(AGENTS[to])
                .message("My colleague will help.")
                .note("Be kind.")
                .payload(payload),
            Self::HandBack if from.is_some() => PersonAnswer::hand_back().payload(payload),
            Self::HandBackInvalid if from.is_some() => {
                PersonAnswer::hand_back().payload(json!({"reason": 7}))
            }
            Self::ReplyAndHandBack if from.is_some() => reply().then_hand_back().payload(payload),
            _ => reply(),
        }
    }
}

/// The way in which agents hand the conversation back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WayBack {
    /// Each handoff returns something.
    HandBack,
    Previous,
    Start,
}

impl WayBack {
    fn tool(self) -> &'static str {
        match self {
            Self::HandBack => HAND_BACK,
            Self::Previous => "return_to_previous",
            Self::Start => "return_to_start",
        }
    }
}

/// The tool by which the target of a handoff that returns something hands back.
const HAND_BACK: &str = "hand_back";

/// The conditions that hand off without a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edges {
    /// From the first agent to the second, before its turns.
    Before,
    /// The same, after its turns.
    After,
    /// Once a model was called, by a handoff that no model is offered.
    HiddenBefore,
    /// From each agent to the next, before its turns.
    AroundBefore,
    /// The same, after its turns.
    AroundAfter,
}

impl Edges {
    fn is_before_turn(self) -> bool {
        !matches!(self, Self::After | Self::AroundAfter)
    }

    fn is_of(self, from: &str, to: &str) -> bool {
        let place = |name: &str| AGENTS.iter().position(|known| *known == name);
        match self {
            Self::AroundBefore | Self::AroundAfter => {
                place(to) == place(from).map(|from| (from + 1) % AGENTS.len())
            }
            _ => from == AGENTS[0] && to == AGENTS[1],
        }
    }

    fn on(self, edge: HandoffBuilder<()>) -> HandoffBuilder<()> {
        let taken = || EdgeDecision::hand_off_with(json!({"reason": "by_condition"}));
        match self {
            Self::Before | Self::AroundBefore => edge.before_turn_if(move |_ctx, _agent| taken()),
            Self::After | Self::AroundAfter => edge.after_turn_if(move |_ctx, _agent| taken()),
            Self::HiddenBefore => {
                let condition = move |ctx: RunContext, _agent| {
                    if ctx.usage().requests > 0 {
                        taken()
                    } else {
                        EdgeDecision::Stay
                    }
                };
                edge.before_turn_if(condition).hidden()
            }
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
    /// The way back of the setting.
    Back,
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
    agent: String,
    tool: String,
    /// The agent that a callback of a handoff was called for.
    to: Option<String>,
    call_id: String,
}

impl World {
    fn new(setting: &Setting, script: &[Vec<Part>]) -> Self {
        let mut model = ScriptedModel::new();
        let mut count = 0;
        for answer in script {
            let items = answer.iter().map(|part| {
                count += 1;
                item(setting, *part, count)
            });
            model = model.respond_with(response(items));
        }
        for number in 0..20 {
            let said = Item::output_message(&format!("last_{number}"), "That is all.");
            model = model.respond_with(response([said]));
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

    fn effect(&self, agent: &str, tool: &str, to: Option<&str>, call_id: &str) {
        self.effects.lock().unwrap().push(Effect {
            agent: agent.to_owned(),
            tool: tool.to_owned(),
            to: to.map(str::to_owned),
            call_id: observation::without_run(call_id),
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
            world.effect(ctx.agent().name(), name, None, ctx.call_id());
            "done"
        })
    }

    /// A handoff with the payload, the approval, the guardrail and the callback of the setting.
    fn edge(&self, setting: &Setting, edge: HandoffBuilder<()>, tool: String) -> Handoff {
        let mut edge = edge.payload_schema(reason_schema());
        if let Some(delivery) = setting.delivery {
            edge = edge.deliver(delivery);
        }
        if setting.handoffs_need_approval {
            edge = edge.needs_approval();
        }
        if let Some(choice) = setting.guardrail {
            let guardrail = HandoffGuardrail::<()>::new("g", move |request| match choice {
                Choice::Refuse => HandoffVerdict::refuse("not now"),
                Choice::Redirect if may_redirect(&request.from, &request.to) => {
                    HandoffVerdict::redirect(AGENTS[2])
                }
                Choice::AskApproval => HandoffVerdict::AskApproval,
                Choice::Fail => HandoffVerdict::trip("no"),
                _ => HandoffVerdict::Allow,
            });
            edge = edge.guardrail(guardrail);
        }
        let (world, callback) = (self.clone(), setting.callback);
        let edge = edge.on_handoff(move |ctx, _payload| world.call_back(callback, &tool, &ctx));
        edge.build()
    }

    /// The callback of a handoff.
    fn call_back(
        &self,
        choice: Choice,
        tool: &str,
        ctx: &HandoffContext<()>,
    ) -> Result<HandoffDecision, &'static str> {
        match choice {
            Choice::Refuse => Ok(HandoffDecision::refuse("closed")),
            Choice::Redirect if may_redirect(ctx.from(), ctx.to()) => Ok(
                HandoffDecision::redirect_with(AGENTS[2], json!({"reason": "redirected"})),
            ),
            Choice::AskApproval if !ctx.is_approved() => Ok(HandoffDecision::AskApproval),
            Choice::Fail => Err("the database is down"),
            _ => {
                let to = Some(ctx.to().name());
                self.effect(ctx.from().name(), tool, to, &ctx.call_id());
                Ok(HandoffDecision::Proceed)
            }
        }
    }

    /// The team, as each process builds it.
    fn runner(&self, setting: &Setting, session: Option<&Conversation>) -> Runner {
        let mut team = Team::new();
        let settings = RunConfig {
            model: Some(self.expert.clone().into()),
            ..RunConfig::default()
        };
        let expert: Agent = Agent::new("Expert").tool(self.tool("pay"));
        for from in AGENTS {
            let mut agent = if setting.person_name() == Some(from) {
                Agent::person(from)
            } else {
                let agent = Agent::new(from)
                    .tool(self.tool("look"))
                    .tool(self.tool("pay"))
                    .tool(expert.as_tool("ask").config(settings.clone()));
                if setting.delivery == Some(PayloadDelivery::Context) {
                    agent.instructions_fn(move |ctx: RunContext, _agent| {
                        match ctx.handoff_payload::<Value>() {
                            Some(payload) => format!("{from} {payload}"),
                            None => from.to_owned(),
                        }
                    })
                } else {
                    agent.instructions(from)
                }
            };
            for to in AGENTS.into_iter().filter(|to| *to != from) {
                let mut edge = handoff(to);
                if let Some(edges) = setting.edges.filter(|edges| edges.is_of(from, to)) {
                    edge = edges.on(edge);
                }
                if setting.way_back == Some(WayBack::HandBack) {
                    let (world, callback) = (self.clone(), setting.callback);
                    edge = edge.returns_schema(reason_schema()).on_return(
                        move |ctx, _result: Value| world.call_back(callback, HAND_BACK, &ctx),
                    );
                }
                let tool = transfer(to);
                agent = agent.handoff(self.edge(setting, edge, tool));
            }
            let back = match setting.way_back {
                Some(WayBack::Previous) => Some(Handoff::to_previous()),
                Some(WayBack::Start) => Some(Handoff::to_start()),
                _ => None,
            };
            if let (Some(edge), Some(way)) = (back, setting.way_back) {
                agent = agent.handoff(self.edge(setting, edge, way.tool().to_owned()));
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

fn reason_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"reason": {"type": "string"}},
        "required": ["reason"],
    })
}

/// Returns `true` if a handoff can be redirected to the last agent.
fn may_redirect(from: &Agent, to: &Agent) -> bool {
    from.name() != AGENTS[2] && to.name() != AGENTS[2]
}

fn transfer(to: &str) -> String {
    format!("transfer_to_{}", to.to_lowercase())
}

/// The number of tokens of each response.
pub(crate) const TOKENS: u64 = 15;

fn response(items: impl IntoIterator<Item = Item>) -> ModelResponse {
    ModelResponse::new(items).usage(Usage {
        requests: 1,
        input_tokens: 10,
        output_tokens: TOKENS - 10,
        ..Usage::default()
    })
}

fn item(setting: &Setting, part: Part, count: usize) -> Item {
    let id = format!("call_{count}");
    let reason = format!(r#"{{"reason":"reason_{count}"}}"#);
    match part {
        Part::Words => Item::output_message(&format!("msg_{count}"), "Hm."),
        Part::Announcement => {
            let text = "One moment, I'll transfer you to Bob.";
            Item::output_message(&format!("msg_{count}"), text)
        }
        Part::Look => Item::function_call(&id, "look", "{}"),
        Part::Pay => Item::function_call(&id, "pay", "{}"),
        Part::Ask => Item::function_call(&id, "ask", r#"{"input":"x"}"#),
        Part::Handoff(to) => Item::function_call(&id, &transfer(AGENTS[to]), &reason),
        Part::InvalidHandoff(to) => {
            Item::function_call(&id, &transfer(AGENTS[to]), r#"{"reason":7}"#)
        }
        Part::Back => match setting.way_back {
            Some(way) => Item::function_call(&id, way.tool(), &reason),
            None => Item::function_call(&id, "look", "{}"),
        },
    }
}

/// The expert pays, and then says so.
fn expert_answer(request: &ModelRequest, asked: &AtomicUsize) -> ModelResponse {
    let number = asked.fetch_add(1, Ordering::SeqCst);
    let has_paid = request.input.iter().any(|item| item.output().is_some());
    response(if has_paid {
        [Item::output_message(&format!("expert_{number}"), "Paid.")]
    } else {
        [Item::function_call(&format!("inner_{number}"), "pay", "{}")]
    })
}
