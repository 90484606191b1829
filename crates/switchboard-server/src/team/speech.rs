//! Teams that clients can speak with.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use switchboard_core::ModelSettings;
use switchboard_realtime::model::{RealtimeModelHandle, RealtimeModelSettings};
use switchboard_realtime::{ConversionError, RealtimeAgent};

use super::{RunRequest, RunStart, ServedTeam, TypedTeam};
use crate::client_tools::ClientTools;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::realtime::model_session::{self, RealtimeAgents};
use crate::realtime::{Mode, Speech, SpokenRequest, SpokenSession, VoiceModels, voice_session};

impl ServedTeam {
    /// Lets clients speak with the team through a realtime model, in place of the agents' own models.
    ///
    /// # Errors
    /// An error if the agents have parts that a realtime agent cannot have, such as input guardrails.
    pub fn realtime(
        self,
        model: impl Into<RealtimeModelHandle>,
        settings: RealtimeModelSettings,
    ) -> Result<Self, ConversionError> {
        self.runs.check_realtime()?;
        let speech = Speech::Realtime(model.into(), Box::new(settings));
        Ok(Self {
            speech: Some(speech),
            ..self
        })
    }

    /// Lets clients speak with the team through a realtime model and agents of its own.
    #[must_use]
    pub fn realtime_agents<C: Send + Sync + 'static>(
        self,
        first: &RealtimeAgent<C>,
        context: impl Into<Arc<C>>,
        model: impl Into<RealtimeModelHandle>,
        settings: RealtimeModelSettings,
    ) -> Self {
        let agents = RealtimeAgents {
            first: first.clone(),
            context: context.into(),
            model: model.into(),
            settings,
        };
        Self {
            speech: Some(Speech::Agents(Arc::new(agents))),
            ..self
        }
    }

    /// Lets clients speak with the team through speech to text and text to speech.
    #[must_use]
    pub fn voice(self, models: VoiceModels) -> Self {
        Self {
            speech: Some(Speech::Voice(models)),
            ..self
        }
    }

    /// The team, spoken with as the other one unless it has models of its own for that.
    pub(crate) fn or_speech_of(mut self, other: &Self) -> Self {
        if self.speech.is_none() {
            self.speech.clone_from(&other.speech);
        }
        self
    }

    /// The kind of model by which clients can speak with the team.
    pub(crate) fn speech_mode(&self) -> Option<Mode> {
        self.speech.as_ref().map(Speech::mode)
    }

    /// Opens a spoken conversation.
    pub(crate) async fn open_spoken(
        &self,
        request: SpokenRequest,
    ) -> Result<SpokenSession, ServiceError> {
        match &self.speech {
            Some(Speech::Agents(agents)) => agents.open(request).await,
            Some(speech) => self.runs.open_spoken(&self.name, speech, request).await,
            None => Err(ServiceError::not_found("the team cannot be spoken with")),
        }
    }
}

impl<C: Send + Sync + 'static> TypedTeam<C> {
    /// An agent of the team for a realtime model; `None` if there is no such agent.
    pub(super) fn realtime_agent(
        &self,
        name: &str,
    ) -> Result<Option<RealtimeAgent<C>>, ConversionError> {
        let agent = self.team.get(name);
        agent.map(RealtimeAgent::replacing_model).transpose()
    }

    /// Opens a spoken conversation.
    pub(super) fn open_speech(
        &self,
        team_name: &Arc<str>,
        speech: &Speech,
        request: SpokenRequest,
    ) -> BoxFuture<'static, Result<SpokenSession, ServiceError>> {
        let missing = || ServiceError::not_found("the team has no such agent");
        match speech {
            Speech::Realtime(model, settings) => {
                let name = request.agent.as_deref().unwrap_or(&self.start);
                let first = self.realtime_agent(name);
                let (context, config) = (self.context.clone(), (*self.config).clone());
                let (model, settings) = (model.clone(), (**settings).clone());
                Box::pin(async move {
                    let first = first.map_err(|error| {
                        ServiceError::new(ServiceErrorKind::Conflict, error.to_string())
                    })?;
                    let first = first.ok_or_else(missing)?;
                    model_session::open(first, context, config, model, settings, request).await
                })
            }
            Speech::Agents(agents) => agents.open(request),
            Speech::Voice(models) => {
                let run = RunRequest {
                    start: RunStart::Input(Vec::new().into()),
                    agent: request.agent.clone(),
                    conversation: Some(request.conversation.clone()),
                    client_tools: ClientTools::default(),
                    settings: ModelSettings::default(),
                    instructions: None,
                    without_tools: false,
                    exclusive: request.exclusive,
                    recording: request.recording.clone(),
                };
                let (runner, models) = (self.runner(team_name, &run), models.clone());
                Box::pin(async move {
                    let runner = runner.ok_or_else(missing)?;
                    voice_session::open(runner, &models, request).await
                })
            }
        }
    }
}
