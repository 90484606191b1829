//! Runs of the team, from the first message to the last, with kills in between.

use serde_json::Value;
use switchboard_core::approval::{Interruption, InterruptionKind};
use switchboard_core::conversation::{Conversation, Conversations};
use switchboard_core::items::Items;
use switchboard_core::run::{HandoffOutcome, HandoffRecord, HandoffTrigger};
use switchboard_core::{Run, Runner, Step};

use super::invariants::{self, Approved};
use super::{AGENTS, Answer, Effect, Part, Setting, World};

/// The moments at which the process is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kills {
    Never,
    /// After this step of each run.
    AfterStep(usize),
    /// The state is read after each step; the team is built anew after every eighth.
    AfterEachStep,
}

/// Everything that can be observed of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Observation {
    pub(crate) outcome: Result<String, String>,
    pub(crate) steps: usize,
    /// The agent that got the message.
    pub(super) first_agent: String,
    pub(crate) agent: String,
    pub(crate) history: Vec<String>,
    /// The record of the conversation.
    pub(crate) recorded: Vec<String>,
    pub(crate) requests: Vec<Request>,
    /// The number of requests for the agent used as a tool.
    pub(super) expert_requests: usize,
    pub(crate) effects: Vec<Effect>,
    pub(crate) handoffs: Vec<HandoffRecord>,
}

/// A request to the model.
#[derive(Debug, PartialEq)]
pub(crate) struct Request {
    pub(super) agent: String,
    pub(super) instructions: String,
    pub(super) input: Vec<String>,
}

impl Observation {
    /// The part that is the same with and without a stored conversation.
    pub(crate) fn without_history(&self) -> impl PartialEq + std::fmt::Debug + use<'_> {
        let ended = (&self.outcome, &self.agent, self.expert_requests);
        (ended, &self.effects, &self.requests, &self.handoffs)
    }
}

fn json_of(items: &Items) -> Vec<String> {
    let items = items.iter();
    items.map(|item| without_run(item.as_json())).collect()
}

/// The text without the random number of the run, which is in the identifiers of calls that people make.
pub(super) fn without_run(text: &str) -> String {
    let mut parts = text.split("call_");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_run = part.len() > 17
            && part.as_bytes()[16] == b'_'
            && part.bytes().take(16).all(|byte| byte.is_ascii_hexdigit());
        shown.push_str("call_");
        if is_run {
            shown.push_str("run");
        }
        shown.push_str(if is_run { &part[16..] } else { part });
    }
    shown
}

/// Runs to the end, and checks what must hold with every policy.
pub(crate) fn observe(setting: &Setting, script: &[Vec<Part>], kills: Kills) -> Vec<Observation> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let world = World::new(setting, script);
    let observed = runtime.unwrap().block_on(drive(setting, &world, kills));
    invariants::check(setting, &world, &observed);
    observed
}

/// Sends the messages of the setting, each to the agent that has the conversation then.
async fn drive(setting: &Setting, world: &World, kills: Kills) -> Vec<Observation> {
    let conversations = Conversations::in_memory();
    let session = setting.in_conversation.then(|| conversations.get("c"));
    let mut process = Process {
        setting,
        world,
        session: session.as_ref(),
        kills,
        runner: world.runner(setting, session.as_ref()),
        answers: 0,
    };
    let mut observed: Vec<Observation> = Vec::new();
    for _ in 0..setting.messages() {
        let first_agent = observed.last().map_or(AGENTS[0], |last| &last.agent);
        let run = process.run(first_agent.to_owned()).await;
        let has_failed = run.outcome.is_err();
        observed.push(run);
        if has_failed {
            break;
        }
    }
    observed
}

/// A process that runs the team.
struct Process<'a> {
    setting: &'a Setting,
    world: &'a World,
    session: Option<&'a Conversation>,
    kills: Kills,
    runner: Runner,
    /// The number of answers that the person has given.
    answers: usize,
}

impl Process<'_> {
    async fn run(&mut self, first_agent: String) -> Observation {
        let (setting, world) = (self.setting, self.world);
        let effects_before = world.effects.lock().unwrap().len();
        let requests_before = world.model.requests().len();
        let expert_before = world.expert.requests().len();
        let mut run = self.runner.begin("Hello");
        let mut approved = Approved::default();
        let mut spent = None;
        let mut steps = 0;
        let outcome = loop {
            if let Step::Done(output) = run.step() {
                break Ok(output.text().into_owned());
            }
            if self.decide(&mut run, &mut approved) {
                spent.get_or_insert_with(|| run.clone());
            }
            if let Err(error) = self.runner.step(&mut run).await {
                break Err(without_run(&error.to_string()));
            }
            steps += 1;
            assert!(steps < 120, "the run does not end: {setting:?}");
            self.kill_after(steps, &mut run);
        };
        let effects = world.effects.lock().unwrap()[effects_before..].to_vec();
        approved.check(setting, &effects);
        // A state that was resumed is spent.
        if let (Some(spent), Ok(_)) = (spent, &outcome) {
            assert!(self.runner.resume(spent).await.is_err(), "{setting:?}");
            assert_eq!(world.effects.lock().unwrap()[effects_before..], effects);
        }
        let mut recorded = Vec::new();
        if let Some(session) = self.session {
            let record = session.record(None).await.unwrap();
            let items = record.iter().filter_map(|entry| entry.content.item());
            recorded.extend(items.map(|item| without_run(item.as_json())));
        }
        let requests = world.model.requests().into_iter().skip(requests_before);
        let requests = requests.map(|request| Request {
            agent: request.agent.unwrap_or_default().to_string(),
            instructions: request.instructions.unwrap_or_default().to_string(),
            input: json_of(&request.input),
        });
        Observation {
            outcome,
            steps,
            first_agent,
            agent: run.agent().to_owned(),
            history: json_of(&run.to_input_list()),
            recorded,
            requests: requests.collect(),
            expert_requests: world.expert.requests().len() - expert_before,
            handoffs: run.handoffs().to_vec(),
            effects,
        }
    }

    /// Answers what the run waits for. Returns `true` if it waits.
    fn decide(&mut self, run: &mut Run, approved: &mut Approved) -> bool {
        let waiting = run.interruptions();
        let decided = if self.setting.decides_all {
            waiting.len()
        } else {
            waiting.len().min(1)
        };
        for waiting in &waiting[..decided] {
            if let InterruptionKind::Person {
                from, may_hand_to, ..
            } = &waiting.kind
            {
                check_person(self.setting, run, waiting);
                let answer = self.next_answer().given(from.as_deref(), may_hand_to);
                run.answer(waiting, answer).unwrap();
                continue;
            }
            let id = without_run(&waiting.call_id);
            let number: usize = id.bytes().map(usize::from).sum();
            let verdict = self.setting.decisions[number % self.setting.decisions.len()];
            run.decide(waiting, verdict.decision()).unwrap();
            approved.note(verdict, waiting);
        }
        !waiting.is_empty()
    }

    fn next_answer(&mut self) -> Answer {
        let answers = self.setting.person.map_or(&[][..], |(_, answers)| answers);
        let answer = answers.get(self.answers).or(answers.last());
        self.answers += 1;
        *answer.unwrap()
    }

    fn kill_after(&mut self, steps: usize, run: &mut Run) {
        let is_killed = match self.kills {
            Kills::Never => false,
            Kills::AfterStep(at) => steps == at,
            Kills::AfterEachStep => true,
        };
        if is_killed {
            let stored = serde_json::to_string(&run).unwrap();
            // Building the team is most of the work.
            if matches!(self.kills, Kills::AfterStep(_)) || steps % 8 == 3 {
                self.runner = self.world.runner(self.setting, self.session);
            }
            *run = Run::from_json(&stored).unwrap();
            assert_eq!(serde_json::to_string(&run).unwrap(), stored);
        }
    }
}

/// Asserts that a person is told who has handed the conversation over, and with which payload.
fn check_person(setting: &Setting, run: &Run, waiting: &Interruption) {
    assert_eq!(Some(&*waiting.agent), setting.person_name());
    let InterruptionKind::Person { from, .. } = &waiting.kind else {
        return;
    };
    let mut taken = run.handoffs().iter().rev();
    let taken = taken.find(|record| record.outcome == HandoffOutcome::Taken);
    let Some(taken) = taken.filter(|_| waiting.inside.is_empty()) else {
        return;
    };
    assert_eq!(*taken.to, *waiting.agent);
    // A return to the person leaves the one that had handed over before.
    if taken.tool_name.starts_with("return_to") || *taken.tool_name == *super::HAND_BACK {
        return;
    }
    assert_eq!(from.as_deref(), Some(&*taken.from), "{setting:?}");
    if matches!(
        taken.trigger,
        HandoffTrigger::Budget | HandoffTrigger::FanOut
    ) {
        assert_eq!(&*waiting.arguments, "");
    } else {
        let told: Value = serde_json::from_str(&waiting.arguments).unwrap();
        assert_eq!(told, taken.payload, "{setting:?}");
    }
}
