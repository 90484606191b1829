//! Agents of other servers, over A2A 1.0.

mod card;
mod exchange;
mod history;
mod task;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_core::Stream;
use futures_util::{StreamExt as _, stream};
use switchboard_core::callback::{BoxError, DynError};
use switchboard_core::model::{ModelEvent, RetryAdvice, ToolKind};
use switchboard_core::{Model, ModelRequest, ModelResponse};

pub use self::card::AgentCard;
use self::card::CardCache;
use self::exchange::Exchange;
use crate::wire::client::Client;
use crate::wire::model_error::{ModelError, ModelErrorKind};

/// The name of the model, also for its price.
const NAME: &str = "a2a";

/// The number of messages that were handed back which are remembered.
const MAX_HANDED_BACK: usize = 1024;

/// An agent of another server, over A2A 1.0, as the model of an agent that others hand off to.
///
/// The client's address is that of the remote agent, below which its card is
/// (`ADDRESS/.well-known/agent-card.json`), or that of the card itself.
///
/// ```no_run
/// use switchboard_core::{Agent, Handoff};
/// use switchboard_models::{Endpoint, RemoteAgent};
///
/// let server = Endpoint::at("https://travel.example/a2a/travel").key("…").connect()?;
/// let travel: Agent = Agent::new("Travel")
///     .handoff_description("Flights and hotels.")
///     .model(RemoteAgent::new(&server))
///     .handoff(Handoff::to_previous());
/// let triage = Agent::new("Triage").handoff(travel);
/// # Ok::<(), switchboard_models::ModelError>(())
/// ```
///
/// **What it is sent.** The messages of the user and of other agents that the agent is shown and the remote one has not
/// seen, in one A2A message, and the payload of the handoff. Instructions, tools and their calls stay here; the filters
/// of the handoff apply. A conversation is one context of the remote agent, which the conversation itself
/// remembers: it goes on after a restart, and in another process.
///
/// **What comes back.** The remote agent's artifacts are the answer. A question (`input-required`) is an answer
/// as well, and the next message goes on with its task. A task that fails, is rejected or is cancelled is an error. A run
/// that is stopped cancels the remote task.
///
/// **The way back.** A remote agent calls no handoffs. While its task is open it keeps the conversation. Once the task has
/// ended, the next message of the user goes along the agent's first handoff, without being sent to the remote agent; if
/// it is handed over again, it is sent. An agent without handoffs keeps the conversation.
///
/// Nothing is sent a second time unless the server has not taken it. Redirects are not followed, and a card that names
/// another server than its own is refused, unless [`RemoteAgent::allow_endpoint`] has allowed that one.
#[derive(Clone)]
pub struct RemoteAgent(Arc<Inner>);

struct Inner {
    client: Client,
    card: CardCache,
    /// The messages that were handed back, by their task, the oldest first.
    handed_back: Mutex<VecDeque<u64>>,
}

impl RemoteAgent {
    /// The remote agent at the client's address.
    pub fn new(client: &Client) -> Self {
        Self(Arc::new(Inner {
            client: client.clone(),
            card: CardCache::new(client),
            handed_back: Mutex::default(),
        }))
    }

    /// Lets the card name an interface at the server of this address, such as `https://rpc.travel.example`; the key
    /// goes there as well. Without it, the interface must be at the server that the card is from.
    ///
    /// # Errors
    /// If this is no address of a server.
    pub fn allow_endpoint(self, address: &str) -> Result<Self, ModelError> {
        Ok(Self(Arc::new(Inner {
            client: self.0.client.clone(),
            card: self.0.card.allowing(address)?,
            handed_back: Mutex::default(),
        })))
    }

    /// Fetches the remote agent's card. It is kept for as long as the server says, or five minutes.
    ///
    /// # Errors
    /// If the card cannot be fetched or read, or has no interface for JSON-RPC or HTTP+JSON in version 1.0.
    pub async fn card(&self) -> Result<Arc<AgentCard>, ModelError> {
        let card = self.0.card.get().await;
        card.map_err(|error| self.0.client.complete(error))
    }

    fn client(&self) -> &Client {
        &self.0.client
    }

    /// Notes that a message was handed back. Returns `false` if it was before.
    fn note_handed_back(&self, message: u64) -> bool {
        let handed_back = self.0.handed_back.lock();
        let mut handed_back = handed_back.unwrap_or_else(PoisonError::into_inner);
        if handed_back.contains(&message) {
            return false;
        }
        if handed_back.len() == MAX_HANDED_BACK {
            handed_back.pop_front();
        }
        handed_back.push_back(message);
        true
    }
}

impl Model for RemoteAgent {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let mut events = std::pin::pin!(self.exchange(request, false));
        while let Some(event) = events.next().await {
            if let ModelEvent::Completed(answer) = event? {
                return Ok(answer);
            }
        }
        let message = "the remote agent gave no answer";
        Err(ModelError::new(ModelErrorKind::BadAnswer, message).into())
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        self.exchange(request, true)
    }

    fn retry_advice(&self, error: &DynError, request: &ModelRequest) -> RetryAdvice {
        super::retry_advice(error, request)
    }

    fn name(&self) -> &str {
        NAME
    }

    fn accepts_tools(&self, kind: ToolKind) -> bool {
        kind == ToolKind::Function
    }
}

impl RemoteAgent {
    fn exchange(
        &self,
        request: ModelRequest,
        is_streamed: bool,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send + use<> {
        let exchange = Exchange::new(self.clone(), request, is_streamed);
        // Boxed, since it is moved for each event.
        stream::unfold(Box::new(exchange), |mut exchange| async move {
            let event = exchange.next().await?;
            Some((event, exchange))
        })
    }
}

impl fmt::Debug for RemoteAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteAgent({})", self.0.client.server())
    }
}
