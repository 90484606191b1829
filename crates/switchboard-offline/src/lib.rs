//! A model for [Switchboard](switchboard_core) that needs no key and no network: [`OfflineModel`].

mod candidates;
mod choices;
mod decision;
mod entities;
mod extractor;
mod features;
mod field_kind;
mod filler;
mod han;
mod history;
mod index;
mod language;
mod name_patterns;
mod phrases;
mod ranking;
mod rejected;
mod response;
mod schema;
mod small_talk;
mod text;
mod thesaurus;
mod typos;
mod units;

use std::sync::Arc;

use futures_core::Stream;
use futures_util::stream;
use switchboard_core::callback::BoxError;
use switchboard_core::items::ItemKind;
use switchboard_core::model::ModelEvent;
use switchboard_core::{Model, ModelRequest, ModelResponse};

use candidates::CandidateCache;
use decision::{Decision, decide};
use extractor::Extractor;
use filler::{Purpose, fill_schema};
use history::History;

/// A model that needs no key, no download and no network, and gives the same response to the same
/// request every time.
///
/// # Behaviour
/// This is a search over what an agent has been given, not a language model. It reads what any model
/// reads (the conversation, the instructions, the descriptions of tools and handoffs, the agent's
/// [`Knowledge`](switchboard_core::agent::Knowledge)) and compares words: English by stems, Chinese by
/// characters, with spelling correction and a small built-in thesaurus for both. Then it does one of
/// these:
///
/// - **hands off** to the agent whose name, description and knowledge match best;
/// - **calls a tool** with arguments from the text: numbers, identifiers, dates, amounts, e-mail
///   addresses, places, one of several allowed values, or the message itself. If a required argument
///   is not in the text, it asks for it by name;
/// - **answers** with the text of the knowledge entry that matches best ("This may help: ..." if the
///   match is partial), or with the output of the tool that it has just called;
/// - **asks back** if several agents match about as well, and names them, or if nothing matches, and
///   lists what it can help with.
///
/// # Limitations
/// It does not understand, reason, translate or write. It never repeats the instructions. It makes
/// one call at a time, and calls each tool at most once per user message. Use it to try a team out,
/// in tests and demonstrations, and where no provider can be reached.
///
/// # Details
/// - An agent that has just received the conversation keeps it, unless the message matches nothing
///   that the agent has. No agent receives it twice for one user message.
/// - A short message ("yes please", "ORD-5") is read together with the ones before it.
/// - A handoff's payload has all required fields, so that the handoff can take place: values that are
///   not in the text are empty, `false`, or a neutral one of the allowed values. The user is asked for
///   numbers, once. Optional fields that the user says nothing about are left out.
/// - A number with a unit is taken for a field that fits: "12 May" is no number of guests, and neither is
///   "20 euros".
/// - What the user does not want is left out where the message says what is wanted instead: "I don't want
///   to rent, I want to buy".
/// - In structured output, text fields hold the answer, and values that are not known say so.
/// - `tool_choice` is obeyed; other settings have no effect.
/// - Reported usage is an estimate of what a language model would have counted.
/// - Only both ends of a message longer than 8,000 characters are read.
///
/// ```
/// use switchboard_core::agent::Knowledge;
/// use switchboard_core::{Agent, Runner};
/// use switchboard_offline::OfflineModel;
///
/// # futures_util::FutureExt::now_or_never(async {
/// let billing: Agent = Agent::new("Billing")
///     .handoff_description("Invoices, charges and refunds.")
///     .knowledge(Knowledge::new("How long does a refund take?", "Refunds take five days."));
/// let shipping = Agent::new("Shipping").handoff_description("Parcels and delivery.");
/// let triage = Agent::new("Triage").handoff(&billing).handoff(&shipping);
///
/// let result = Runner::new(&triage)
///     .model(OfflineModel::new())
///     .run("when do i get my money back")
///     .await?;
/// assert_eq!(result.last_agent().name(), "Billing");
/// assert_eq!(result.final_text(), "Refunds take five days.");
/// # Ok::<(), switchboard_core::Error>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct OfflineModel {
    candidates: CandidateCache,
}

impl OfflineModel {
    /// Creates the model. Clones share a cache of what they have read about agents.
    pub fn new() -> Self {
        Self::default()
    }

    fn respond_to(&self, request: &ModelRequest) -> ModelResponse {
        let history = History::read(&request.input);
        match decide(request, &self.candidates.get(request), &history) {
            Decision::Call { name, arguments } => response::call(request, &name, &arguments),
            Decision::Reply(text) => {
                response::message(request, &format_reply(request, &history, text))
            }
        }
    }
}

/// Puts a reply into the structured output that the request asks for, if any.
fn format_reply(request: &ModelRequest, history: &History, text: String) -> String {
    let Some(output) = &request.output else {
        return text;
    };
    let newest = history.user.get(..1).unwrap_or_default();
    let extractor = Extractor::new(newest, "", &text);
    fill_schema(output.schema().get(), &extractor, Purpose::Answer)
        .value
        .to_string()
}

/// The error for an agent whose prompt is stored at a provider.
fn refuse_prompt(request: &ModelRequest) -> Result<(), BoxError> {
    match &request.prompt {
        None => Ok(()),
        Some(_) => Err(
            "the offline model has no stored prompts; give the agent instructions, or use \
                        a model over Responses"
                .into(),
        ),
    }
}

impl Model for OfflineModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        refuse_prompt(&request)?;
        Ok(self.respond_to(&request))
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        if let Err(error) = refuse_prompt(&request) {
            return stream::iter(vec![Err(error)]);
        }
        let response = self.respond_to(&request);
        let mut events = Vec::new();
        for item in &response.output {
            if item.kind() == ItemKind::Message {
                let id: Arc<str> = item.id().unwrap_or_default().into();
                let text = item.text().unwrap_or_default();
                let deltas = response::deltas(&text).into_iter();
                events.extend(deltas.map(|delta| Ok(ModelEvent::text_delta(id.clone(), delta))));
            }
        }
        events.push(Ok(ModelEvent::Completed(response)));
        stream::iter(events)
    }

    fn name(&self) -> &str {
        "offline"
    }
}
