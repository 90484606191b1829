//! `switchboard talk`: a spoken conversation.

mod answers;
mod caller;
#[cfg(feature = "microphone")]
mod microphone;
mod transcript;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use switchboard_core::StreamEvent;
use switchboard_realtime::voice::{
    VoiceError, VoiceEvent, VoiceEventKind, VoiceHandle, VoicePipeline, VoiceSession,
};
use switchboard_teamfile::{Context, TeamFile};

use super::open_conversation;
use super::run::{asked_person, waiting_help};
use super::speech::Speech;
use crate::approvals::{Approvals, Output, WaitingRun};
use crate::args;
use crate::conversation::Conversation;
use crate::embedded_teams;
use crate::event_line::{EventLine, is_raw, rounded};
use crate::event_sink::{EventSink, JsonLines};
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;
use crate::run_error;
use crate::screen::Screen;
use crate::screen::style::{Language, Look};
use crate::signals::Signals;
use answers::Answers;
use caller::Caller;
use transcript::Transcript;

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
    if args.offline && team_options.model.is_none() {
        team_options.model = Some("offline".to_owned());
    }
    let team = LoadedTeam::load_with_any_server(&file, &team_options, &[])?;
    let approvals = Approvals::new(&args.options.approve, &file, Output::new(args.json), look)?;
    let speech = if args.offline {
        Speech::offline(&args.voice, &team).await?
    } else {
        let names = [&*args.transcription_model, &*args.speech_model];
        Speech::of_provider(team_options.base_url.as_deref(), names, &args.voice, &team)?
    };
    let caller = Caller::open(args.input.as_deref(), args.offline, &speech).await?;
    let rate = caller.output_rate().unwrap_or(speech.rate);
    let answers = Answers::create(args.output.as_deref(), &caller, rate)?;
    let (mut conversation, trace) = open_conversation(team, &args.options).await?;
    conversation.check().await?;
    conversation.give_now().await?;
    let mut sink: Box<dyn EventSink> = if args.json {
        Box::new(JsonLines(io::stdout()))
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
    if let Some(trace) = trace {
        trace.finish()?;
    }
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
        Ok((self.exit, self.turns))
    }

    /// Takes an event. Returns `false` if the conversation ends with it.
    async fn take(&mut self, event: VoiceEvent) -> Result<bool, Failure> {
        match &event.kind {
            // The events of the provider would double the output.
            VoiceEventKind::Run(run) if is_raw(run) => {
                return Ok(true);
            }
            VoiceEventKind::Run(run) => {
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
                            self.sink.write_help(help)?;
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

/// The exit code for a stage that failed.
fn exit_of(error: &VoiceError) -> Exit {
    let cause = error.cause();
    match cause.downcast_ref::<switchboard_core::Error>() {
        Some(error) => run_error::exit(error),
        None if cause.is::<switchboard_models::ModelError>() => Exit::Model,
        None => Exit::Failed,
    }
}
