//! The speech of a conversation: a provider's, or that of programs on this machine.

use futures_util::StreamExt as _;
use switchboard_models::{Endpoint, SpeechModel, TranscriptionModel};
use switchboard_realtime::voice::{
    Audio, Flite, PocketSphinx, SpeechRequest, SpeechToTextHandle, TextToSpeech as _,
    TextToSpeechHandle,
};

use crate::args::AgentVoice;
use crate::failure::{Exit, Failure};
use crate::loaded_team::LoadedTeam;

/// The voices of flite, for one agent after the other. The first is understood best.
const OFFLINE_VOICES: [&str; 3] = ["rms", "slt", "awb"];

/// The voice of the caller in the demonstration.
const CALLER_VOICE: &str = "rms";

/// Speech to text, text to speech, and the voices of agents.
pub(super) struct Speech {
    pub(super) speech_to_text: SpeechToTextHandle,
    pub(super) text_to_speech: TextToSpeechHandle,
    /// Agents and their voices.
    pub(super) voices: Vec<(String, String)>,
    /// The sample rate of answers.
    pub(super) rate: u32,
}

impl Speech {
    /// Speech of flite and pocketsphinx.
    pub(super) async fn offline(voices: &[AgentVoice], team: &LoadedTeam) -> Result<Self, Failure> {
        let flite = Flite::from_env();
        let hears = PocketSphinx::from_env();
        let checked = async {
            flite.check().await?;
            hears.check().await
        };
        checked.await.map_err(|error| Failure::Message {
            exit: Exit::Usage,
            message: format!("there is no offline speech here: {error}"),
            help: Some("use a provider's speech instead".to_owned()),
        })?;
        // Each agent has a voice of its own, so that a handoff is heard.
        let own = team.names().zip(OFFLINE_VOICES.iter().cycle());
        let mut all: Vec<(String, String)> = own
            .map(|(agent, voice)| (agent.to_owned(), (*voice).to_owned()))
            .collect();
        let chosen = chosen_voices(voices, team)?;
        if let Some(known) = flite.voices().await {
            let unknown = chosen.iter().find(|(_, voice)| !known.contains(voice));
            if let Some((_, voice)) = unknown {
                return Err(Failure::usage(
                    format!("flite has no voice {voice:?}"),
                    format!("its voices are: {}", known.join(", ")),
                ));
            }
        }
        all.extend(chosen);
        Ok(Self {
            speech_to_text: SpeechToTextHandle::new(hears),
            text_to_speech: TextToSpeechHandle::new(flite),
            voices: all,
            rate: 16_000,
        })
    }

    /// Speech of OpenAI, or of the server at this address, with these models for listening and speaking.
    /// `no_key_help` is the advice where there is neither a key nor an address.
    pub(super) fn of_provider(
        base_url: Option<&str>,
        [hears, speaks]: [&str; 2],
        voices: &[AgentVoice],
        team: &LoadedTeam,
        no_key_help: &str,
    ) -> Result<Self, Failure> {
        let from_env = Endpoint::from_env();
        let endpoint = match base_url {
            Some(url) => Endpoint::from_vars(|name| match name {
                "OPENAI_BASE_URL" => Some(url.to_owned()),
                name => std::env::var(name).ok(),
            }),
            None if !from_env.has_key() && std::env::var_os("OPENAI_BASE_URL").is_none() => {
                return Err(Failure::usage("there is no key for speech", no_key_help));
            }
            None => {
                check_address_of_environment()?;
                from_env
            }
        };
        let client = endpoint.connect().map_err(|error| Failure::Message {
            exit: Exit::Usage,
            message: error.to_string(),
            help: None,
        })?;
        Ok(Self {
            speech_to_text: SpeechToTextHandle::new(TranscriptionModel::new(&client, hears)),
            text_to_speech: TextToSpeechHandle::new(SpeechModel::new(&client, speaks)),
            voices: chosen_voices(voices, team)?,
            rate: SpeechModel::SAMPLE_RATE,
        })
    }

    /// Speaks a line of the caller in the demonstration.
    pub(super) async fn say(&self, text: &str) -> Result<Audio, Failure> {
        let mut request = SpeechRequest::new(text, "caller");
        request.voice = Some(CALLER_VOICE.into());
        let mut audio = std::pin::pin!(self.text_to_speech.speak(request));
        let spoken = match audio.next().await {
            Some(spoken) => spoken,
            None => Err("it made no audio".into()),
        };
        spoken.map_err(|error| Failure::Message {
            exit: Exit::Failed,
            message: format!("the caller cannot speak: {error}"),
            help: None,
        })
    }
}

/// Checks the address that the environment has. Its error would otherwise not name the variable.
fn check_address_of_environment() -> Result<(), Failure> {
    let address = std::env::var("OPENAI_BASE_URL").unwrap_or_default();
    if address.trim().is_empty() {
        return Ok(());
    }
    Endpoint::check_address(&address).map_err(|error| {
        Failure::usage(
            format!("OPENAI_BASE_URL cannot be used: {error}"),
            "write it in full, as in http://localhost:11434/v1, or unset the variable",
        )
    })
}

/// The voices of the command line, first those of all agents and then those of one.
fn chosen_voices(
    voices: &[AgentVoice],
    team: &LoadedTeam,
) -> Result<Vec<(String, String)>, Failure> {
    let mut chosen = Vec::new();
    for AgentVoice { voice, .. } in voices.iter().filter(|voice| voice.agent.is_none()) {
        chosen.extend(team.names().map(|name| (name.to_owned(), voice.clone())));
    }
    for AgentVoice { agent, voice } in voices {
        if let Some(agent) = agent {
            let agent = team.agent(agent)?.name().to_owned();
            chosen.push((agent, voice.clone()));
        }
    }
    Ok(chosen)
}
