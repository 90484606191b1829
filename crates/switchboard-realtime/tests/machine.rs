//! Properties of the machine, without a session: inputs in any order, repeated and cut off.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in a test, a panic is the report"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use switchboard_core::approval::Decision;
use switchboard_core::{ErrorKind, Tool, tool};
use switchboard_realtime::machine::{
    CallFailure, HandoffAnswer, HandoffRedirect, MachineCommand, MachineInput, MachineSettings,
    Offer, Prepared, RealtimeMachine, ResolvedAgent, ResolvedOffer, Task, TaskOutcome, Ticket,
    ToolAnswer, UserAction,
};
use switchboard_realtime::model::{
    RealtimeModelCommand, RealtimeModelEvent, RealtimeModelSettings, RealtimeToolCall,
    RealtimeTurnEnd,
};
use switchboard_realtime::{RealtimeEvent, RealtimePolicy};

const AGENTS: [&str; 3] = ["Desk", "Billing", "Sales"];

/// An agent, of which one tool is offered only if `is_open`.
fn resolved(agent: &str, is_open: bool) -> ResolvedAgent {
    let ResolvedOffer {
        settings, offer, ..
    } = resolved_offer(agent, is_open);
    let settings = RealtimeModelSettings {
        instructions: Some(agent.into()),
        ..settings
    };
    ResolvedAgent::new(agent, settings, offer)
}

fn resolved_offer(agent: &str, is_open: bool) -> ResolvedOffer {
    let others = AGENTS.iter().filter(|other| **other != agent);
    let handoffs = others.map(|other| Arc::from(format!("to_{other}")));
    let tools: &[&str] = if is_open {
        &["tool", "slow", "extra"]
    } else {
        &["tool", "slow"]
    };
    let specs = tools.iter().map(|name| {
        let tool: Tool = tool(*name).run(|_ctx, (): ()| "done");
        tool.spec().clone()
    });
    let settings = RealtimeModelSettings {
        tools: Some(specs.collect()),
        ..RealtimeModelSettings::default()
    };
    let tools = tools.iter().map(|name| Arc::from(*name));
    ResolvedOffer::new(settings, Offer::new(tools, handoffs, true))
}

/// Something that happens, chosen by a test.
#[derive(Debug, Clone)]
enum Happening {
    Call {
        name: usize,
        id: u8,
    },
    TurnStarted,
    TurnEnded,
    /// A task in progress ends; the verdict decides how.
    TaskEnds {
        which: usize,
        verdict: u8,
    },
    /// The first command that waits is sent, or cannot be.
    Sent {
        fails: bool,
    },
    /// The server takes or refuses the first update that waits.
    Update {
        refuses: bool,
    },
    Decide {
        approves: bool,
    },
    UpdateAgent(usize),
    /// The condition of a tool holds from now on, or no longer.
    ContextChanged {
        is_open: bool,
    },
    Interrupt,
    /// The machine is stored and read back.
    Store,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        5 => (0..6_usize, 0..6_u8).prop_map(|(name, id)| Happening::Call { name, id }),
        2 => Just(Happening::TurnStarted),
        2 => Just(Happening::TurnEnded),
        8 => (0..8_usize, 0..8_u8).prop_map(|(which, verdict)| Happening::TaskEnds { which, verdict }),
        8 => prop::bool::weighted(0.05).prop_map(|fails| Happening::Sent { fails }),
        4 => prop::bool::weighted(0.2).prop_map(|refuses| Happening::Update { refuses }),
        2 => any::<bool>().prop_map(|approves| Happening::Decide { approves }),
        1 => (0..3_usize).prop_map(Happening::UpdateAgent),
        2 => any::<bool>().prop_map(|is_open| Happening::ContextChanged { is_open }),
        1 => Just(Happening::Interrupt),
        1 => Just(Happening::Store),
    ]
}

/// A session as a server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Session {
    agent: String,
    tools: Vec<String>,
}

impl Session {
    fn of(settings: &RealtimeModelSettings) -> Self {
        let tools = settings.tools.iter().flat_map(|tools| tools.iter());
        Self {
            agent: settings.instructions.as_deref().unwrap_or_default().into(),
            tools: tools.map(|tool| tool.name.to_string()).collect(),
        }
    }
}

/// The world around a machine: the server, and the work in progress.
struct World {
    machine: RealtimeMachine,
    tasks: Vec<(Ticket, Task)>,
    sends: Vec<(Ticket, RealtimeModelCommand)>,
    updates: Vec<(Option<Arc<str>>, Session)>,
    waiting: BTreeSet<Arc<str>>,
    /// The session as the server knows it.
    server: Session,
    is_open: bool,
    /// Set once the machine was stored, which leaves out tools.
    was_stored: bool,
    /// The calls that the server has made, and the outputs that it got.
    calls: BTreeSet<Arc<str>>,
    outputs: BTreeMap<Arc<str>, u32>,
    response: Option<u32>,
    responses: u32,
    /// Responses that were asked for and not begun.
    asked: u32,
    requests: Ticket,
    replies: BTreeMap<Ticket, u32>,
    has_failed: bool,
}

impl World {
    fn new(settings: MachineSettings) -> Self {
        let desk = resolved("Desk", false);
        Self {
            server: Session::of(&desk.settings),
            machine: RealtimeMachine::new(desk, settings),
            is_open: false,
            was_stored: false,
            tasks: Vec::new(),
            sends: Vec::new(),
            updates: Vec::new(),
            waiting: BTreeSet::new(),
            calls: BTreeSet::new(),
            outputs: BTreeMap::new(),
            response: None,
            responses: 0,
            asked: 0,
            requests: 0,
            replies: BTreeMap::new(),
            has_failed: false,
        }
    }

    fn apply(&mut self, input: MachineInput) {
        let mut twin = self.machine.clone();
        let commands = self.machine.apply(input.clone());
        assert_eq!(
            format!("{commands:?}"),
            format!("{:?}", twin.apply(input)),
            "the same input gives the same commands"
        );
        for command in commands {
            match command {
                MachineCommand::Send { send, command } => self.sends.push((send, *command)),
                MachineCommand::Begin { task, work } => self.tasks.push((task, *work)),
                MachineCommand::Reply { request, .. } => {
                    *self.replies.entry(request).or_default() += 1;
                }
                MachineCommand::Emit(RealtimeEvent::ApprovalRequired(call)) => {
                    self.waiting.insert(call.call_id.clone());
                }
                MachineCommand::Emit(RealtimeEvent::Handoff { to, .. }) => {
                    assert_eq!(*to, **self.machine.agent(), "one agent at a time");
                    assert_eq!(*to, *self.server.agent, "both sides agree");
                }
                MachineCommand::Close => {
                    self.has_failed = true;
                    self.tasks.clear();
                    self.sends.clear();
                    self.updates.clear();
                }
                _ => {}
            }
        }
    }

    fn user(&mut self, action: UserAction) {
        self.requests += 1;
        let request = self.requests;
        self.apply(MachineInput::User { request, action });
    }

    /// The server carries out a command.
    fn serve(&mut self, command: RealtimeModelCommand) {
        match command {
            RealtimeModelCommand::ToolOutput(output) => {
                let call_id = output.tool_call.call_id.clone();
                *self.outputs.entry(call_id).or_default() += 1;
                self.asked += u32::from(output.start_response);
            }
            RealtimeModelCommand::UpdateSession {
                settings,
                update_id,
            } => {
                self.updates.push((update_id, Session::of(&settings)));
            }
            RealtimeModelCommand::CreateResponse(_) => self.asked += 1,
            _ => {}
        }
    }

    fn take(&mut self, happening: Happening) {
        if self.has_failed {
            return;
        }
        match happening {
            Happening::Call { name, id } => {
                let names = [
                    "tool",
                    "slow",
                    "unknown",
                    "to_Billing",
                    "to_Sales",
                    "to_Desk",
                ];
                let call_id: Arc<str> = format!("call_{id}_{name}").into();
                self.calls.insert(call_id.clone());
                let mut call = RealtimeToolCall::new(names[name], call_id, "{}");
                call.response_id = Some(format!("resp_{}", self.responses).into());
                self.apply(MachineInput::Model(RealtimeModelEvent::ToolCall(call)));
            }
            Happening::TurnStarted if self.response.is_none() => {
                self.responses += 1;
                self.response = Some(self.responses);
                self.asked = 0;
                let response_id = Some(format!("resp_{}", self.responses).into());
                self.apply(MachineInput::Model(RealtimeModelEvent::TurnStarted {
                    response_id,
                }));
            }
            Happening::TurnEnded => {
                if let Some(number) = self.response.take() {
                    let end = RealtimeTurnEnd::completed(format!("resp_{number}"));
                    self.apply(MachineInput::Model(RealtimeModelEvent::TurnEnded(end)));
                }
            }
            Happening::TaskEnds { which, verdict } if !self.tasks.is_empty() => {
                let (task, work) = self.tasks.remove(which % self.tasks.len());
                let outcome = outcome(work, verdict, self.is_open);
                self.apply(MachineInput::TaskDone { task, outcome });
            }
            Happening::Sent { fails } if !self.sends.is_empty() => {
                let (send, command) = self.sends.remove(0);
                let is_update = matches!(command, RealtimeModelCommand::UpdateSession { .. });
                let fails = fails && !is_update;
                let error = fails.then(|| {
                    use switchboard_realtime::model::{
                        RealtimeModelError as Error, RealtimeModelErrorKind as Kind,
                    };
                    Error::new(Kind::Transport, "refused")
                });
                if !fails {
                    self.serve(command);
                }
                self.apply(MachineInput::Sent { send, error });
            }
            Happening::Update { refuses } if !self.updates.is_empty() => {
                let (update_id, session) = self.updates.remove(0);
                // A server does not refuse what it has taken before.
                let event = if refuses && *session.agent != **self.machine.agent() {
                    RealtimeModelEvent::SessionUpdateRefused {
                        update_id,
                        error: switchboard_realtime::model::RealtimeServerError::Reported(
                            switchboard_realtime::model::ReportedError::default(),
                        ),
                    }
                } else {
                    self.server = session;
                    RealtimeModelEvent::SessionUpdated { update_id }
                };
                self.apply(MachineInput::Model(event));
            }
            Happening::Decide { approves } => {
                if let Some(call_id) = self.waiting.pop_first() {
                    let decision = if approves {
                        Decision::approve()
                    } else {
                        Decision::reject()
                    };
                    self.user(UserAction::Decide { call_id, decision });
                }
            }
            Happening::UpdateAgent(which) => {
                let agent = AGENTS[which].into();
                self.user(UserAction::UpdateAgent { agent });
            }
            Happening::ContextChanged { is_open } => {
                self.is_open = is_open;
                self.user(UserAction::ContextChanged);
            }
            Happening::Interrupt => self.user(UserAction::Interrupt),
            Happening::Store => {
                self.was_stored = true;
                let stored = serde_json::to_string(&self.machine).unwrap();
                let read: RealtimeMachine = serde_json::from_str(&stored).unwrap();
                assert_eq!(stored, serde_json::to_string(&read).unwrap());
                self.machine = read;
            }
            _ => {}
        }
    }

    /// Lets everything end well.
    fn settle(&mut self) {
        for _ in 0..2000 {
            if let Some((task, work)) = self.tasks.pop() {
                // The server answers in time.
                if matches!(work, Task::Timer(_)) {
                    continue;
                }
                let outcome = outcome(work, 7, self.is_open);
                self.apply(MachineInput::TaskDone { task, outcome });
            } else if !self.sends.is_empty() {
                self.take(Happening::Sent { fails: false });
            } else if !self.updates.is_empty() {
                self.take(Happening::Update { refuses: false });
            } else if !self.waiting.is_empty() {
                self.take(Happening::Decide { approves: true });
            } else {
                return;
            }
        }
        panic!("the session does not come to rest");
    }
}

fn outcome(work: Task, verdict: u8, is_open: bool) -> TaskOutcome {
    let failure = || {
        let error = switchboard_core::__agent_parts::error(ErrorKind::UserCode, "it failed");
        CallFailure::new(error, Some("It failed.".to_owned()))
    };
    match work {
        Task::Prepare { decision, .. } => TaskOutcome::Prepared(match verdict {
            0 => Ok(Prepared::Unavailable),
            1 if decision.is_none() => Ok(Prepared::NeedsApproval),
            2 => Ok(Prepared::Answered(ToolAnswer::new("No.", json!("No.")))),
            3 => Err(failure()),
            _ => Ok(Prepared::Run),
        }),
        Task::Check { .. } => TaskOutcome::Prepared(Ok(Prepared::Run)),
        Task::RunTool(_) => TaskOutcome::ToolRan(match verdict {
            0 => Err(failure()),
            _ => Ok(ToolAnswer::new("done", json!("done"))),
        }),
        Task::RejectionText(..) => TaskOutcome::Text("Rejected.".to_owned()),
        Task::HandOff {
            call,
            redirect,
            is_approved,
            ..
        } => {
            let redirected = redirect.map(|redirect| redirect.to.to_string());
            let to = call.call.name.trim_start_matches("to_").to_owned();
            let to = redirected.clone().unwrap_or(to);
            TaskOutcome::Handoff(match verdict {
                0 => Err(failure()),
                1 => Ok(HandoffAnswer::Refused("Not now.".to_owned())),
                2 if !is_approved => Ok(HandoffAnswer::AskApproval),
                3 if redirected.is_none() => Ok(HandoffAnswer::Redirected {
                    redirect: HandoffRedirect::new("C", "to_C", "{}"),
                    needs_approval: !is_approved,
                }),
                _ => Ok(HandoffAnswer::Taken {
                    to: Box::new(resolved(&to, is_open)),
                    message: "moved".into(),
                }),
            })
        }
        Task::ResolveAgent(agent) => TaskOutcome::Agent(Ok(Box::new(resolved(&agent, is_open)))),
        Task::ResolveOffer(agent) => {
            TaskOutcome::Offer(Ok(Box::new(resolved_offer(&agent, is_open))))
        }
        Task::CheckOutput { .. } => TaskOutcome::OutputChecked(Vec::new()),
        Task::CallHooks { .. } => TaskOutcome::HooksCalled(Ok(())),
        Task::Timer(_) => TaskOutcome::TimeUp,
        other => panic!("no outcome for {other:?}"),
    }
}

fn settings(is_ordered: bool, policy: RealtimePolicy) -> MachineSettings {
    let mut settings = MachineSettings::default();
    settings.async_tool_calls = !is_ordered;
    settings.policy = policy;
    settings
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_call_is_answered_once_and_both_sides_agree(
        happenings in prop::collection::vec(happening(), 0..60),
        is_ordered in any::<bool>(),
    ) {
        let mut policy = RealtimePolicy::production();
        policy.failures = switchboard_realtime::Failures::tell(u32::MAX);
        let mut world = World::new(settings(is_ordered, policy));
        for happening in happenings {
            world.take(happening);
        }
        world.settle();
        prop_assert!(!world.has_failed);
        // An output that could not be sent is sent when its call comes again.
        let unsent: Vec<Arc<str>> = world.machine.open_calls().cloned().collect();
        for call_id in &unsent {
            prop_assert_eq!(world.outputs.get(call_id), None);
        }
        for call_id in &world.calls {
            let answers = world.outputs.get(call_id).copied().unwrap_or_default();
            let expected = u32::from(!unsent.contains(call_id));
            prop_assert_eq!(answers, expected, "the call {}", call_id);
        }
        prop_assert_eq!(&*world.server.agent, &**world.machine.agent());
        if !world.was_stored {
            let extra = world.server.tools.iter().any(|tool| tool == "extra");
            prop_assert_eq!(extra, world.is_open, "the tools are those of the condition");
        }
        for request in 1..=world.requests {
            prop_assert_eq!(world.replies.get(&request).copied(), Some(1), "request {}", request);
        }
    }

    #[test]
    fn a_session_that_is_cut_off_answers_every_request(
        happenings in prop::collection::vec(happening(), 0..40),
    ) {
        let policy = RealtimePolicy::production();
        let mut world = World::new(settings(false, policy));
        for happening in happenings {
            world.take(happening);
        }
        if !world.has_failed {
            world.user(UserAction::Close);
        }
        for request in 1..=world.requests {
            prop_assert_eq!(world.replies.get(&request).copied(), Some(1), "request {}", request);
        }
        for call_id in &world.calls {
            prop_assert!(world.outputs.get(call_id).copied().unwrap_or_default() <= 1);
        }
    }

    #[test]
    fn the_outputs_of_one_response_ask_for_one_response(
        order in Just(vec![0, 1, 2, 3]).prop_shuffle(),
        is_ordered in any::<bool>(),
    ) {
        let mut world = World::new(settings(is_ordered, RealtimePolicy::production()));
        world.take(Happening::TurnStarted);
        for id in 0..4 {
            world.take(Happening::Call { name: 0, id });
        }
        world.take(Happening::TurnEnded);
        for which in order {
            for _ in 0..4 {
                world.take(Happening::TaskEnds { which, verdict: 7 });
                world.take(Happening::Sent { fails: false });
            }
        }
        world.settle();
        prop_assert_eq!(world.outputs.len(), 4);
        prop_assert_eq!(world.asked, 1);
    }
}
