//! The agents of a session: their keys, their parts and the settings that each brings.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::try_join_all;
use switchboard_core::__agent_parts::{self as parts, AgentParts};
use switchboard_core::guardrail::OutputGuardrail;
use switchboard_core::model::{HandoffSpec, ToolSpec, Usage};
use switchboard_core::{Error, ErrorKind, RunConfig, Tool};

use crate::agent::RealtimeAgent;
use crate::handoff::RealtimeHandoff;
use crate::machine::{Offer, ResolvedAgent, ResolvedOffer};
use crate::model::{RealtimeModelSettings, RealtimeVoice, Switch};

/// The agents of a session.
pub(super) struct Agents<C> {
    /// The parts of the first agent, which hold the trace.
    root: Arc<AgentParts<C>>,
    known: Mutex<Vec<KnownAgent<C>>>,
    /// The settings that outlive a handoff.
    base: RealtimeModelSettings,
    /// Set if the provider must not trace.
    is_untraced: bool,
    pub(super) output_guardrails: Vec<OutputGuardrail<C>>,
    has_spoken: AtomicBool,
    /// The voice of the session, once it is open.
    voice: Mutex<Option<RealtimeVoice>>,
}

/// An agent, the key that the machine knows it by, and its parts.
pub(super) struct KnownAgent<C> {
    pub(super) key: Arc<str>,
    pub(super) agent: RealtimeAgent<C>,
    pub(super) parts: Arc<AgentParts<C>>,
}

impl<C> Clone for KnownAgent<C> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            agent: self.agent.clone(),
            parts: self.parts.clone(),
        }
    }
}

impl<C: Send + Sync + 'static> Agents<C> {
    pub(super) fn new(
        first: &RealtimeAgent<C>,
        config: Arc<RunConfig<C>>,
        context: Arc<C>,
        base: RealtimeModelSettings,
        is_untraced: bool,
        output_guardrails: Vec<OutputGuardrail<C>>,
        calls_hooks: bool,
    ) -> Self {
        let mut root = AgentParts::new(first.parts(), config, context);
        if !calls_hooks {
            root = root.without_hooks();
        }
        let agents = Self {
            root: Arc::new(root),
            known: Mutex::default(),
            base,
            is_untraced,
            output_guardrails,
            has_spoken: AtomicBool::new(false),
            voice: Mutex::default(),
        };
        for agent in first.reachable() {
            agents.key(&agent);
        }
        agents
    }

    pub(super) fn note_spoken(&self) {
        self.has_spoken.store(true, Ordering::Relaxed);
    }

    pub(super) fn count_usage(&self, usage: Usage) {
        self.root.add_usage(usage);
    }

    /// The key of an agent: its name, or `name#2` if another agent has the name.
    pub(super) fn key(&self, agent: &RealtimeAgent<C>) -> Arc<str> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|known| known.agent.ptr_eq(agent)) {
            return same.key.clone();
        }
        let mut key: Arc<str> = agent.name().into();
        let mut number = 1;
        while known.iter().any(|known| known.key == key) {
            number += 1;
            key = format!("{}#{number}", agent.name()).into();
        }
        let parts = if known.is_empty() {
            self.root.clone()
        } else {
            Arc::new(self.root.of_agent(agent.parts()))
        };
        known.push(KnownAgent {
            key: key.clone(),
            agent: agent.clone(),
            parts,
        });
        key
    }

    pub(super) fn find(&self, key: &str) -> Result<KnownAgent<C>, Error> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|known| *known.key == *key).cloned();
        found.ok_or_else(|| {
            let message = format!("the session has no agent \"{key}\"");
            parts::error(ErrorKind::Configuration, message)
        })
    }

    /// The agent of this name that the session knows.
    pub(super) fn by_name(&self, name: &str) -> Option<KnownAgent<C>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .iter()
            .find(|known| known.agent.name() == name)
            .cloned()
    }

    /// Makes everything that an agent brings: its instructions, its prompt, its tools and handoffs.
    pub(super) async fn resolve(&self, key: &str) -> Result<ResolvedAgent, Error> {
        let known = self.find(key)?;
        let mut settings = self.base.clone();
        if let Some(prompt) = known.parts.prompt().await? {
            settings.prompt = Some(prompt);
        }
        settings.voice = self.voice_of(&known.agent).or(settings.voice);
        let instructions = known.parts.instructions().await?;
        settings.instructions = Some(instructions.unwrap_or_default());
        let offered = self.resolve_offer(key).await?;
        settings.tools = offered.settings.tools;
        settings.handoffs = offered.settings.handoffs;
        if self.is_untraced {
            settings.tracing = Some(Switch::Off);
        }
        Ok(ResolvedAgent::new(known.key, settings, offered.offer))
    }

    /// Notes the voice of the session.
    pub(super) fn note_voice(&self, voice: Option<RealtimeVoice>) {
        *self.voice.lock().unwrap_or_else(PoisonError::into_inner) = voice;
    }

    /// The voice with an agent: its own as long as nothing was said, or that of the session.
    fn voice_of(&self, agent: &RealtimeAgent<C>) -> Option<RealtimeVoice> {
        let own = agent.own_voice().cloned();
        let own = own.filter(|_| !self.has_spoken.load(Ordering::Relaxed));
        own.or_else(|| {
            let voice = self.voice.lock().unwrap_or_else(PoisonError::into_inner);
            voice.clone()
        })
    }

    /// Evaluates the conditions of an agent's tools and handoffs.
    pub(super) async fn resolve_offer(&self, key: &str) -> Result<ResolvedOffer, Error> {
        let known = self.find(key)?;
        let (agent, parts) = (&known.agent, &known.parts);
        let tools = agent.tools().iter().map(|tool| async move {
            let is_enabled = parts.tool_is_enabled(tool).await?;
            Ok::<_, Error>(is_enabled.then_some(tool))
        });
        let tools = try_join_all(tools).await?;
        let tools: Vec<&Tool<C>> = tools.into_iter().flatten().collect();
        let handoffs = agent.handoffs().iter().map(|handoff| async move {
            let is_enabled = parts.handoff_is_enabled(handoff.edge()).await?;
            Ok::<_, Error>(is_enabled.then_some(handoff))
        });
        let handoffs = try_join_all(handoffs).await?;
        let handoffs: Vec<&RealtimeHandoff<C>> = handoffs.into_iter().flatten().collect();
        check(agent, &tools, &handoffs)?;
        let tool_specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec().clone()).collect();
        let specs: Vec<HandoffSpec> = handoffs.iter().map(|edge| edge.spec(agent)).collect();
        let offer = Offer::new(
            tool_specs.iter().map(|spec| spec.name.clone()),
            specs.iter().map(|spec| spec.tool_name.clone()),
            is_conditional(agent),
        );
        let settings = RealtimeModelSettings {
            tools: Some(tool_specs.into()),
            handoffs: Some(specs.into()),
            ..RealtimeModelSettings::default()
        };
        Ok(ResolvedOffer::new(settings, offer))
    }
}

fn is_conditional<C>(agent: &RealtimeAgent<C>) -> bool {
    let handoffs = agent.handoffs().iter();
    agent.tools().iter().any(parts::tool_is_conditional)
        || handoffs
            .map(RealtimeHandoff::edge)
            .any(|edge| edge.is_conditional())
}

/// Checks that each name is used once, that every handoff leads to an agent, and that nothing was built
/// wrong.
fn check<C: Send + Sync + 'static>(
    agent: &RealtimeAgent<C>,
    tools: &[&Tool<C>],
    handoffs: &[&RealtimeHandoff<C>],
) -> Result<(), Error> {
    let problem = |message: String| Err(parts::error(ErrorKind::Configuration, message));
    let name = agent.name();
    if let Some(tool) = tools.iter().find(|tool| tool.as_hosted().is_some()) {
        return problem(format!(
            "agent \"{name}\": \"{}\" is a tool that the provider of text models runs; realtime agents \
             cannot use it",
            tool.name()
        ));
    }
    for tool in tools {
        if let Some(error) = AgentParts::problem(Some(tool), None) {
            return Err(error);
        }
    }
    for handoff in handoffs {
        if let Some(error) = AgentParts::problem(None, Some(handoff.edge())) {
            return Err(error);
        }
        if handoff.target(agent).is_none() {
            return problem(format!(
                "agent \"{name}\" hands off to \"{}\" by name, and is in no team with an agent of that \
                 name; put both into a RealtimeTeam",
                handoff.agent_name()
            ));
        }
    }
    let mut uses: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for tool in tools {
        uses.entry(tool.name()).or_default().0 += 1;
    }
    for handoff in handoffs {
        uses.entry(handoff.tool_name()).or_default().1 += 1;
    }
    let repeated = uses
        .iter()
        .filter(|(_, (tools, handoffs))| tools + handoffs > 1);
    let repeated: Vec<String> = repeated
        .map(|(name, (tools, handoffs))| format!("\"{name}\" ({tools} tools, {handoffs} handoffs)"))
        .collect();
    if repeated.is_empty() {
        return Ok(());
    }
    problem(format!(
        "agent \"{name}\" offers several tools or handoffs of one name: {}; rename all but one of them",
        repeated.join(", ")
    ))
}
