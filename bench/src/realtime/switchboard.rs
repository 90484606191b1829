//! A caller with a realtime session of Switchboard.

use std::sync::atomic::Ordering;

use switchboard_realtime::openai::OpenAiRealtimeModel;
use switchboard_realtime::{RealtimeAgent, RealtimeEvent, RealtimeRunner, RealtimeSession};

use super::Failed;
use super::load::{Call, Caller};
use super::stamp::note_frame;

/// The agent that takes calls, and hands them on to billing.
pub(super) fn desk() -> RealtimeAgent {
    let billing = RealtimeAgent::new("Billing").instructions("You handle bills.");
    RealtimeAgent::new("Desk")
        .instructions("Greet the caller.")
        .handoff(&billing)
}

/// A caller with a realtime session.
pub(super) struct SwitchboardCaller(RealtimeSession);

impl SwitchboardCaller {
    pub(super) async fn connect(url: &str, desk: &RealtimeAgent) -> Result<Self, Failed> {
        let model = OpenAiRealtimeModel::new().api_key("sk-bench").base_url(url);
        let session = RealtimeRunner::new(desk).model(model).connect().await?;
        Ok(Self(session))
    }
}

impl Caller for SwitchboardCaller {
    async fn talk(self, call: Call) -> Result<(), Failed> {
        let mut session = self.0;
        session.send_message("Hello").await?;
        let handle = session.handle();
        let speaking = tokio::spawn(call.speaking(move |frame| {
            let handle = handle.clone();
            async move { Ok(handle.send_audio(frame).await?) }
        }));
        while let Some(event) = session.next().await {
            match event? {
                RealtimeEvent::Audio { data, .. } => note_frame(&call.counts.heard, &data),
                RealtimeEvent::Handoff { .. } => {
                    call.counts.handoffs.fetch_add(1, Ordering::Relaxed);
                }
                RealtimeEvent::Dropped { events, .. } => {
                    call.counts
                        .dropped_events
                        .fetch_add(events, Ordering::Relaxed);
                }
                RealtimeEvent::Error(problem) => return Err(problem.message().into()),
                RealtimeEvent::AgentEnd { agent } if *agent == *"Billing" => break,
                _ => {}
            }
        }
        call.end();
        speaking.await??;
        session.close().await?;
        Ok(())
    }
}
