//! Realtime sessions: spoken conversations over a WebSocket, for browsers.
//!
//! A client asks for a ticket, with its key ([`tickets`]), and opens the WebSocket with it. Audio is binary frames,
//! everything else is JSON ([`frames`]). Behind a session is a realtime model ([`model_session`]) or a voice
//! pipeline ([`voice_session`]), which are one thing to the socket ([`spoken`]). Everything that can be refused is
//! refused with a status of HTTP, before the WebSocket is there.

mod frames;
pub(crate) mod model_session;
mod sessions;
mod socket;
mod spoken;
mod tickets;
pub(crate) mod voice_session;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::{HeaderMap, header};
use axum::response::Response;

use self::frames::PROTOCOL as NAME;
pub(crate) use self::frames::{CloseReason, Direction, Mode, PROTOCOL, PlaybackReports, Turns};
pub(crate) use self::sessions::{Sessions, Signal};
use self::socket::Connection;
pub use self::spoken::VoiceModels;
pub(crate) use self::spoken::{Speech, SpokenRequest, SpokenSession};
pub(crate) use self::tickets::{TICKET_TIME, Ticket, Tickets};
use crate::error::{ServiceError, ServiceErrorKind};
use crate::http::PathOf;
use crate::keys::random_id;
use crate::service::{Service, draining};
use crate::team::ServedTeam;

/// The beginning of the subprotocol that holds the ticket.
const TICKET_PROTOCOL: &str = "ticket.";

/// The bytes of a frame of the client.
const MAX_FRAME: usize = 64 << 10;

/// The bytes that wait to be written to the socket.
const MAX_WRITE: usize = 1 << 20;

/// Opens a session for a ticket, and then the WebSocket.
pub(crate) async fn open(
    State(service): State<Service>,
    PathOf(team): PathOf<String>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ServiceError> {
    let upgrade = upgrade.map_err(|_| {
        ServiceError::invalid("a session is a WebSocket: ask for an upgrade with version 13")
    })?;
    if !protocols(&headers).any(|protocol| protocol == NAME) {
        let message = format!("the WebSocket needs the subprotocol {NAME}");
        return Err(ServiceError::invalid(message));
    }
    let refused = |message: &str| ServiceError::new(ServiceErrorKind::Unauthorized, message);
    let ticket = protocols(&headers).find_map(|protocol| protocol.strip_prefix(TICKET_PROTOCOL));
    let ticket = ticket.and_then(|ticket| service.inner().tickets.take(ticket, &team));
    let ticket = ticket.ok_or_else(|| refused("a ticket is needed that was not used yet"))?;
    let caller = &ticket.caller;
    if !service.is_key_valid(caller) {
        return Err(refused("the key of the ticket is not valid any more"));
    }
    let refuse = |reason: &str, error: ServiceError| {
        service.inner().metrics.refused(reason);
        error
    };
    if service.is_draining() {
        return Err(refuse("draining", draining()));
    }
    let team = service.team(caller, &team)?.clone();
    let limit = service.inner().limits.realtime_sessions;
    let sessions = &service.inner().sessions;
    let place = sessions.enter(&caller.tenant, &ticket.conversation, limit);
    let place = place.map_err(|error| refuse("sessions", error))?;
    let permit = match &caller.key {
        Some(key) => Some(key.take_run().map_err(|error| refuse("key", error))?),
        None => None,
    };
    let conversation = service.conversation(caller, &ticket.conversation)?;
    let team = service.with_chosen_context(team, &conversation).await?;
    let mode = speech_mode(&team)?;
    let id = random_id("session")?;
    let recording = match mode {
        Mode::Voice => service.record_session(caller, &team, &id, &ticket.conversation),
        Mode::Realtime => None,
    };
    let request = SpokenRequest {
        agent: ticket.agent.clone(),
        conversation,
        turns: ticket.turns,
        playback: ticket.playback,
        exclusive: service.inner().limits.conversation_wait,
        recording: recording.as_ref().map(|recording| recording.0.clone()),
    };
    let session = team.open_spoken(request).await?;
    let connection = Connection {
        id,
        recording,
        service: service.clone(),
        team,
        mode,
        ticket,
        place,
        permit,
    };
    Ok(upgrade
        .protocols([NAME])
        .max_message_size(MAX_FRAME)
        .max_frame_size(MAX_FRAME)
        .max_write_buffer_size(MAX_WRITE)
        .on_upgrade(move |socket| connection.serve(socket, session)))
}

/// The subprotocols that the client offers.
fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// The kind of model by which a team hears and speaks.
pub(crate) fn speech_mode(team: &ServedTeam) -> Result<Mode, ServiceError> {
    team.speech_mode().ok_or_else(|| {
        let message = format!(
            "the team {:?} has no model to hear and speak with",
            team.name()
        );
        ServiceError::new(ServiceErrorKind::Conflict, message)
    })
}
