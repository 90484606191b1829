//! `switchboard talk`: a spoken conversation.

mod answers;
mod caller;
#[cfg(feature = "microphone")]
mod microphone;
mod transcript;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use switchboard_core::{EventKind, StreamEvent};
use switchboard_realtime::voice::{
    VoiceError, VoiceEvent, VoiceEventKind, VoiceHandle, VoicePipeline, VoiceSession,
};
use switchboard_sessions::Access;
use switchboard_teamfile::{Context, TeamFile};

use super::open_conversation;
use super::run::{asked_person, waiting_help};
use super::speech::Speech;
use crate::approvals::{Approvals, Output, WaitingRun};
use crate::args;
use crate::conversation::{Conversation, sleep_until};
use crate::embedded_teams;
use crate::event_line::{EventLine, is_raw, rounded};
use crate::event_sink::{EventSink, JsonLines};
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;
use crate::run_error;
use crate::screen::Screen;
use crate::screen::style::{Language, Look};
use crate::signals::Signals;
use crate::trace_file;
use answers::Answers;
use caller::Caller;
use transcript::Transcript;

/// The time that an answer has to end after it was stopped: a tool that has begun is not cut off.
const STOP_TIME: Duration = Duration::from_secs(10);

pub(super) async fn run(args: args::Voice, look: Look) -> Result<Exit, Failure> {
    check_paths(&args)?;
    let (file, team_path) = match &args.team {
        Some(path) => (TeamFile::read(path)?, path.clone()),
        None => {
            let demo = TeamFile::from_embedded(embedded_teams::support(Language::En))?;
            (demo, PathBuf::from("team.toml"))
        }
    };
    let mut team_options = args.team_options;
    let timeout = team_options.timeout;
    if args.offline && team_options.model.is_none() {
        team_options.model = Some("offline".to_owned());
    }
    let team = LoadedTeam::load_with_any_server(&file, &team_options, &[])?;
    let approvals = Approvals::new(&args.options.approve, &file, Output::new(args.json), look)?;
    let speech = if args.offline {
        Speech::offline(&args.voice, &team).await?
    } else {
        let names = [&*args.transcription_model, &*args.speech_model];
        let base_url = team_options.base_url.as_deref();
        let help = "set OPENAI_API_KEY, name a server with --base-url, or speak with programs on this machine: --offline";
        Speech::of_provider(base_url, names, &args.voice, &team, help)?
    };
    let caller = Caller::open(args.input.as_deref(), args.offline, &speech).await?;
    let rate = caller.output_rate().unwrap_or(speech.rate);
    let answers = Answers::create(args.output.as_deref(), &caller, rate)?;
    let (mut conversation, trace) = open_conversation(team, &args.options, Access::Create).await?;
    conversation.check().await?;
    conversation.give_now().await?;
    let mut sink: Box<dyn EventSink> = if args.json {
        Box::new(JsonLines::new(io::stdout(), look.language))
    } else if args.transcript {
        Box::new(Transcript::new(anstream::stdout(), look.language))
    } else {
        Box::new(Screen::of_stdout(look, conversation.team().names()))
    };
    let barge_in = caller.barge_in(args.no_interrupt);
    let pipeline = pipeline(&conversation, speech, rate)?
        .barge_in(barge_in)
        .playback(caller.playback());
    let (handle, session) = pipeline.open();
    let talk = Talk {
        conversation: &conversation,
        approvals: &approvals,
        handle: handle.clone(),
        sink: &mut *sink,
        answers,
        began: Instant::now(),
        exit: Exit::Ok,
        turns: 0,
        timeout,
        deadline: None,
    };
    let source = caller.description();
    let (exit, turns) = talk.run(caller, session, &mut Signals::listen()?).await?;
    if exit == Exit::Waiting {
        let person = asked_person(&conversation);
        sink.write_help(&waiting_help(
            &team_path,
            args.options.session.as_deref(),
            person.as_deref(),
        ))?;
    }
    drop(sink);
    conversation.close().await;
    let exit = trace_file::finish(trace, Ok(exit))?;
    if let (Exit::Ok, 0, Some(source)) = (exit, turns, source) {
        return Err(Failure::Message {
            exit: Exit::Failed,
            message: format!("nobody says anything in {source}"),
            help: Some("record it louder, or check that it is the right file".to_owned()),
        });
    }
    Ok(exit)
}

/// Checks that the answers do not overwrite the question.
fn check_paths(args: &args::Voice) -> Result<(), Failure> {
    let (Some(input), Some(output)) = (&args.input, &args.output) else {
        return Ok(());
    };
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    if real(input).is_some() && real(input) == real(output) {
        return Err(Failure::usage(
            "the answers would overwrite the caller's speech",
            "name another file with --out",
        ));
    }
    Ok(())
}

fn pipeline(
    conversation: &Conversation,
    speech: Speech,
    rate: u32,
) -> Result<VoicePipeline<Context>, Failure> {
    let Speech {
        speech_to_text,
        text_to_speech,
        voices,
        ..
    } = speech;
    let runner = conversation.runner();
    let mut pipeline = VoicePipeline::new(runner, speech_to_text, text_to_speech)
        .output_rate(rate)
        .map_err(|error| Failure::usage(error.to_string(), "use another rate"))?;
    for (agent, voice) in voices {
        pipeline = pipeline.voice(agent, voice);
    }
    Ok(pipeline)
}

/// A spoken conversation.
struct Talk<'a> {
    conversation: &'a Conversation,
    approvals: &'a Approvals,
    handle: VoiceHandle,
    sink: &'a mut dyn EventSink,
    answers: Answers,
    began: Instant,
    exit: Exit,
    /// The number of turns of the caller.
    turns: usize,
    /// The longest time of a run.
    timeout: Option<Duration>,
    /// The time at which the run under way is stopped, or given up if it was.
    deadline: Option<Instant>,
}

impl Talk<'_> {
    /// Takes all events, until the caller has said everything or something fails. Returns the exit code and
    /// the number of the caller's turns.
    async fn run(
        mut self,
        caller: Caller,
        mut session: VoiceSession,
        signals: &mut Signals,
    ) -> Result<(Exit, usize), Failure> {
        let mut speaking = Box::pin(caller.speak(self.handle.clone()));
        let mut has_spoken = false;
        loop {
            let event = tokio::select! {
                biased;
                signal = signals.next() => {
                    self.exit = signal.exit();
                    break;
                }
                () = sleep_until(self.deadline) => {
                    if self.exit == Exit::TimedOut {
                        break;
                    }
                    has_spoken = true;
                    self.stop_run().await;
                    continue;
                }
                spoken = &mut speaking, if !has_spoken => {
                    has_spoken = true;
                    if let Err(failure) = spoken {
                        self.answers.finish()?;
                        return Err(failure);
                    }
                    continue;
                }
                event = session.next() => event,
            };
            let Some(event) = event else { break };
            if !self.take(event).await? {
                break;
            }
        }
        self.answers.finish()?;
        if self.exit == Exit::TimedOut {
            self.sink.write_failure(run_error::TOOK_TOO_LONG)?;
        }
        Ok((self.exit, self.turns))
    }

    /// Stops the run that has taken too long. The session ends once what was heard of its answer is stored.
    async fn stop_run(&mut self) {
        self.exit = Exit::TimedOut;
        self.deadline = Some(Instant::now() + STOP_TIME);
        // A session that has ended needs no end.
        let _ = self.handle.interrupt().await;
        let handle = self.handle.clone();
        // What the caller has said meanwhile is before it in the queue, which may be full.
        tokio::spawn(async move { handle.close().await });
    }

    /// Takes an event. Returns `false` if the conversation ends with it.
    async fn take(&mut self, event: VoiceEvent) -> Result<bool, Failure> {
        if self.exit == Exit::TimedOut && begins_turn(&event.kind) {
            // What was heard before it is stored.
            return Ok(false);
        }
        match &event.kind {
            // The events of the provider would double the output.
            VoiceEventKind::Run(run) if is_raw(run) => {
                return Ok(true);
            }
            VoiceEventKind::Run(run) => {
                if self.exit != Exit::TimedOut {
                    self.set_deadline(&run.kind);
                }
                self.write(StreamEvent::clone(run))?;
                return Ok(true);
            }
            VoiceEventKind::Audio { audio, .. } => {
                self.answers.add(audio)?;
                return Ok(true);
            }
            VoiceEventKind::Interrupted { .. } => self.answers.interrupt(),
            VoiceEventKind::Transcript { text, .. } if !text.is_empty() => self.turns += 1,
            _ => {}
        }
        self.write_voice(&event)?;
        match event.kind {
            VoiceEventKind::ApprovalRequired(run) => {
                let mut run = WaitingRun::new(*run);
                let context = self.conversation.team().open.context();
                if !self.approvals.decide_alone(&mut run, context)? {
                    self.exit = Exit::Waiting;
                    return Ok(false);
                }
                // The session lives, so this cannot fail.
                let _ = self.handle.resume(run.into_run()).await;
                Ok(true)
            }
            VoiceEventKind::Error(error) => {
                self.exit = exit_of(&error);
                let run = error.cause().downcast_ref::<switchboard_core::Error>();
                match run {
                    // The event of the run has told it.
                    Some(run) => {
                        if let Some(help) = run_error::help(run) {
                            self.sink.write_help(&help)?;
                        }
                        Ok(false)
                    }
                    None => Err(Failure::Message {
                        exit: self.exit,
                        message: error.to_string(),
                        help: None,
                    }),
                }
            }
            _ => Ok(true),
        }
    }

    /// Limits the time of a run that begins; one that has ended has all the time to be spoken.
    fn set_deadline(&mut self, event: &EventKind) {
        match event {
            EventKind::RunStarted { .. } => {
                self.deadline = self.timeout.map(|timeout| Instant::now() + timeout);
            }
            EventKind::RunFinished { .. }
            | EventKind::RunInterrupted { .. }
            | EventKind::RunStopped { .. }
            | EventKind::RunFailed { .. } => self.deadline = None,
            _ => {}
        }
    }

    fn write(&mut self, event: StreamEvent) -> io::Result<()> {
        let at = rounded(self.began.elapsed().as_secs_f64());
        self.sink.write(&EventLine::new(event, at))
    }

    /// Writes an event of the voice session in the form of those of runs.
    fn write_voice(&mut self, event: &VoiceEvent) -> io::Result<()> {
        let json = serde_json::to_string(event)?;
        self.write(serde_json::from_str(&json)?)
    }
}

/// Returns `true` for the first event of another turn: the caller speaks, or is answered.
fn begins_turn(event: &VoiceEventKind) -> bool {
    match event {
        VoiceEventKind::SpeechStarted { .. } | VoiceEventKind::Transcript { .. } => true,
        VoiceEventKind::Run(run) => matches!(run.kind, EventKind::RunStarted { .. }),
        _ => false,
    }
}

/// The exit code for a stage that failed.
fn exit_of(error: &VoiceError) -> Exit {
    let cause = error.cause();
    match cause.downcast_ref::<switchboard_core::Error>() {
        Some(error) => run_error::exit(error),
        None if cause.is::<switchboard_models::ModelError>() => Exit::Model,
        None => Exit::Failed,
    }
}
