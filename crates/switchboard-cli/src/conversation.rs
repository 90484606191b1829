//! A conversation with a team: several messages, one session, and always the agent that has it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use switchboard_core::{
    Agent, Error, Graph, HooksHandle, Item, RunConfig, RunResult, RunStatus, RunStream, Runner,
    Tracing,
};
use switchboard_teamfile::{Context, OpenTeam, closest};

use crate::audience::Audience;
use crate::event::{Cost, Event, Line, rounded};
use crate::failure::{Exit, Failure};
use crate::run_error;
use crate::session::Kept;
use crate::signals::{Signal, Signals};
use crate::trace_file::TraceFile;
use crate::watch::{Eyes, Hooks, Teller};

/// How often who waits is told so.
const TICK: Duration = Duration::from_millis(100);

/// A team that is ready to talk.
#[derive(Clone)]
pub(crate) struct Desk {
    /// How the team is called on the screen: its file.
    pub(crate) name: String,
    /// Its agents.
    pub(crate) agents: Vec<Agent<Context>>,
    /// How it is drawn.
    pub(crate) graph: Graph,
    /// Who gets a new conversation.
    pub(crate) start: Agent<Context>,
    /// The settings of its runs.
    pub(crate) config: RunConfig<Context>,
    /// What the application knows.
    pub(crate) context: Arc<Context>,
    /// The names of the agents' models.
    pub(crate) models: BTreeMap<String, String>,
}

impl Desk {
    /// The desk of a team file.
    pub(crate) fn of(path: &Path, open: &OpenTeam) -> Self {
        let agents = open.team().agents().iter();
        let models = agents.filter_map(|agent| {
            let model = open.model_name(agent.name())?;
            Some((agent.name().to_owned(), model.to_owned()))
        });
        Self {
            name: path.display().to_string(),
            agents: open.team().agents().to_vec(),
            graph: open.team().graph_with(open.config().tool_names),
            start: open.start().clone(),
            models: models.collect(),
            config: open.config().clone(),
            context: Arc::new(open.context().clone()),
        }
    }

    /// The names of all agents.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.agents.iter().map(|agent| agent.name().to_owned());
        names.collect()
    }

    fn get(&self, name: &str) -> Option<Agent<Context>> {
        self.agents
            .iter()
            .find(|agent| agent.name() == name)
            .cloned()
    }

    /// The agent of this name, as the user wrote it.
    pub(crate) fn agent(&self, name: &str) -> Result<Agent<Context>, Failure> {
        if let Some(agent) = self.get(name) {
            return Ok(agent);
        }
        let names = self.names();
        let help = match closest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("the agents of {} are: {}", self.name, names.join(", ")),
        };
        Err(Failure::usage(
            format!("there is no agent \"{name}\""),
            help,
        ))
    }
}

/// A conversation with a team.
pub(crate) struct Conversation {
    desk: Desk,
    kept: Kept,
    agent: Agent<Context>,
    trace: Option<Arc<TraceFile>>,
    began: Instant,
}

/// How a message was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// With a final output.
    Finished,
    /// The user stopped it.
    Stopped(Signal),
    /// Not at all; the audience was told why.
    Failed(Exit),
}

impl Conversation {
    /// A conversation that is kept there, and goes on with the agent that had it: `agent` if given,
    /// or else the one that the session names, or else the team's first.
    pub(crate) async fn new(
        desk: Desk,
        kept: Kept,
        agent: Option<&str>,
        trace: Option<Arc<TraceFile>>,
    ) -> Result<Self, Failure> {
        let agent = match agent {
            Some(name) => desk.agent(name)?,
            None => {
                let had = kept.agent().await?;
                // The team may have changed since.
                let had = had.and_then(|name| desk.get(&name));
                had.unwrap_or_else(|| desk.start.clone())
            }
        };
        Ok(Self {
            desk,
            kept,
            agent,
            trace,
            began: Instant::now(),
        })
    }

    /// Who has the conversation.
    pub(crate) fn agent(&self) -> &str {
        self.agent.name()
    }

    /// The team.
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// What was said, where it is kept.
    pub(crate) fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Ends the conversation; what is kept of it is in its file then.
    pub(crate) async fn end(self) {
        self.kept.close().await;
    }

    /// Forgets what was said, and begins anew.
    pub(crate) async fn reset(&mut self) -> Result<(), Failure> {
        self.kept.clear().await?;
        self.agent = self.desk.start.clone();
        Ok(())
    }

    /// Says something to the team, and tells the audience what comes of it.
    pub(crate) async fn say(
        &mut self,
        message: &str,
        audience: &mut dyn Audience,
        signals: &mut Signals,
    ) -> Result<Answered, Failure> {
        let began = Instant::now();
        let mut telling = Telling {
            audience,
            began: self.began,
        };
        let agent = self.agent.name();
        telling.tell(Event::RunStarted {
            team: self.desk.name.clone(),
            agents: self.desk.names(),
            agent: agent.to_owned(),
            model: self.desk.models.get(agent).cloned().unwrap_or_default(),
            message: message.to_owned(),
        })?;
        let (eyes, mut seen) = Eyes::new(self.trace.clone());
        let mut teller = Teller::new(agent, self.desk.models.clone());
        let mut stream = self.stream(message, eyes);
        let mut stopped = None;
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                biased;
                // First, as an answer that never pauses can be stopped as well.
                signal = signals.next() => {
                    // Whoever asks twice does not want to wait for anything.
                    if stopped.is_some() {
                        return Ok(Answered::Stopped(signal));
                    }
                    stopped = Some(signal);
                    stream.stop();
                }
                Some(seen) = seen.recv() => telling.tell_all(teller.seen(seen))?,
                event = stream.next() => {
                    // What was seen before the stream told this comes first.
                    while let Ok(seen) = seen.try_recv() {
                        telling.tell_all(teller.seen(seen))?;
                    }
                    match event {
                        Some(event) => telling.tell_all(teller.streamed(event))?,
                        None => break,
                    }
                }
                _ = tick.tick() => telling.audience.waiting()?,
            }
        }
        telling.tell_all(teller.ended())?;
        let result = stream.finish().await;
        let cost = cost(&result, began.elapsed());
        match result {
            Ok(result) => {
                let is_complete = result.status() == RunStatus::Completed;
                let said = teller.said();
                self.agent = result.last_agent().clone();
                let mut kept = self.kept.set_agent(self.agent.name()).await;
                if kept.is_ok() && !is_complete {
                    kept = self.keep_half_said(said).await;
                }
                if let Err(failure) = kept {
                    telling.tell(not_kept(&failure, cost))?;
                    return Ok(Answered::Failed(failure.exit()));
                }
                if is_complete {
                    telling.tell(finished(&result, cost))?;
                    return Ok(Answered::Finished);
                }
                telling.tell(Event::Stopped {
                    agent: self.agent.name().to_owned(),
                    output: said.to_owned(),
                    cost,
                })?;
                Ok(Answered::Stopped(stopped.unwrap_or(Signal::Interrupt)))
            }
            Err(error) => {
                let agent = error.run().map(|run| run.agent());
                if let Some(agent) = agent.and_then(|name| self.desk.get(name)) {
                    self.agent = agent;
                    // One failure is enough to be told of, and this may be the same one again.
                    let _ = self.kept.set_agent(self.agent.name()).await;
                }
                telling.tell_all(run_error::events(&error, cost))?;
                Ok(Answered::Failed(run_error::exit(&error)))
            }
        }
    }

    fn stream(&self, message: &str, eyes: Arc<Eyes>) -> RunStream<Context> {
        let mut config = self.desk.config.clone();
        config.hooks = Some(HooksHandle::new(Hooks(eyes.clone())));
        config.tracing = Tracing::To(eyes);
        config.session = Some(self.kept.handle());
        Runner::new(&self.agent)
            .context(self.desk.context.clone())
            .config(config)
            .stream(message)
    }

    /// What was said of an answer stays, though it was stopped: the user has read it.
    async fn keep_half_said(&self, said: &str) -> Result<(), Failure> {
        if said.trim().is_empty() {
            Ok(())
        } else {
            self.kept.append(&[Item::assistant(said)]).await
        }
    }
}

/// The audience, and when the conversation with it began.
struct Telling<'a> {
    audience: &'a mut dyn Audience,
    began: Instant,
}

impl Telling<'_> {
    fn tell(&mut self, event: Event) -> io::Result<()> {
        let at = rounded(self.began.elapsed().as_secs_f64());
        self.audience.told(&Line { event, at })
    }

    fn tell_all(&mut self, events: Vec<Event>) -> io::Result<()> {
        events.into_iter().try_for_each(|event| self.tell(event))
    }
}

fn finished(result: &RunResult<Context>, cost: Cost) -> Event {
    Event::Finished {
        agent: result.last_agent().name().to_owned(),
        output: match result.final_output() {
            // Only an agent with a form of its own answers in JSON.
            Some(output) => match result.last_agent().output_type() {
                Some(_) => output.parse().unwrap_or_else(|_| json!(output.text())),
                None => json!(output.text()),
            },
            None => Value::Null,
        },
        cost,
    }
}

/// What was said is not in the session.
fn not_kept(failure: &Failure, cost: Cost) -> Event {
    let (message, help) = failure.said();
    Event::Error {
        kind: "session".to_owned(),
        message,
        help,
        exit_code: failure.exit().code(),
        cost,
    }
}

fn cost(result: &Result<RunResult<Context>, Error>, took: Duration) -> Cost {
    let run = match result {
        Ok(result) => Some(result.run()),
        Err(error) => error.run(),
    };
    Cost {
        turns: run.map_or(0, |run| run.turns()),
        usage: run.map(|run| *run.usage()).unwrap_or_default(),
        seconds: rounded(took.as_secs_f64()),
    }
}
