//! A model that needs no network.

mod board;
mod choices;
mod cues;
mod decide;
mod facts;
mod features;
mod fields;
mod fill;
mod han;
mod history;
mod index;
mod language;
mod reading;
mod reply;
mod roles;
mod schema;
mod small_talk;
mod text;
mod thesaurus;
mod typos;
mod words;

use futures_core::Stream;
use futures_util::stream;
use std::sync::Arc;
use switchboard_core::{BoxError, ItemKind, Model, ModelEvent, ModelRequest, ModelResponse};

use board::Boards;
use decide::{Decision, decide};
use fields::Source;
use fill::{Purpose, fill};
use history::History;
use text::Language;

/// A model that is part of the program: no key, no download, no network, and the same answer to
/// the same request every time.
///
/// # What it is
/// A search over what an agent has been given, not a language model. It reads what any model
/// reads (the conversation, the instructions, the descriptions of tools and handoffs, the agent's
/// [`Knowledge`](switchboard_core::Knowledge)) and compares words: English by their stems,
/// Chinese by its characters, slips of the pen forgiven, both widened by a small built-in
/// thesaurus. Then it does one of these:
///
/// - **hands off** to the colleague whose name and description fit best;
/// - **calls a tool** with arguments taken from the text: numbers, identifiers, dates, amounts,
///   e-mail addresses, places, one of several allowed values, or the message itself. Where a
///   required argument is not in the text, it asks for it by name;
/// - **answers** with the text of the knowledge entry that fits best ("This may help: ..." where
///   the entry is about other things as well), or with what a tool has just returned;
/// - **asks back** where nothing fits, and says what it can help with.
///
/// Every answer in words ends in `(offline model)` or `（离线模型）`, so that nobody takes it for
/// more than it is.
///
/// # What it is not
/// It does not understand, reason, translate or write. It never repeats the instructions. It calls
/// one thing at a time, and once per message of the user. Use it to try a team out, in tests and
/// demonstrations, and where no provider can be reached.
///
/// # In detail
/// - Who has just got the conversation keeps it, unless nothing of it is theirs; nobody gets it
///   twice for one message of the user.
/// - A short message ("yes please", "ORD-5") is read together with those before it.
/// - A handoff's payload is always complete: what the text does not give is empty, zero, false, or
///   a middling one of the allowed values, so that the handoff is not lost. A required yes or no
///   that nobody mentions is no.
/// - In a structured answer, fields for text hold the answer, and what is not known says so.
/// - `tool_choice` is obeyed; the other settings have no meaning here.
/// - The usage it reports is an estimate of what a language model would have counted.
/// - Of a message longer than 8,000 characters only both ends are read.
///
/// ```
/// use switchboard_core::{Agent, Knowledge, Runner};
/// use switchboard_models::OfflineModel;
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
/// assert_eq!(result.final_text(), "Refunds take five days.\n\n(offline model)");
/// # Ok::<(), switchboard_core::Error>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct OfflineModel {
    boards: Boards,
}

impl OfflineModel {
    /// The model. Clones share what they have read of agents.
    pub fn new() -> Self {
        Self::default()
    }

    fn answer(&self, request: &ModelRequest) -> ModelResponse {
        let history = History::read(&request.input);
        match decide(request, &self.boards.of(request), &history) {
            Decision::Call { name, arguments } => reply::call(request, &name, &arguments),
            Decision::Say(text) => reply::message(request, &in_form(request, &history, &text)),
        }
    }
}

/// An answer in the form that was asked for.
fn in_form(request: &ModelRequest, history: &History, text: &str) -> String {
    let language = Language::of(history.last_words());
    let text = format!("{text}\n\n{}", words::note(language));
    match &request.output {
        None => text,
        Some(output) => {
            let newest = history.user.get(..1).unwrap_or_default();
            let source = Source::new(newest, "", &text);
            fill(output.schema().get(), &source, Purpose::Answer)
                .value
                .to_string()
        }
    }
}

impl Model for OfflineModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        Ok(self.answer(&request))
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let response = self.answer(&request);
        let messages = response
            .output
            .iter()
            .filter(|item| item.kind() == ItemKind::Message);
        let mut events = Vec::new();
        for message in messages {
            let id: Arc<str> = message.id().unwrap_or_default().into();
            for piece in reply::pieces(&message.text().unwrap_or_default()) {
                events.push(Ok(ModelEvent::text_delta(id.clone(), piece)));
            }
        }
        events.push(Ok(ModelEvent::Completed(response)));
        stream::iter(events)
    }

    fn name(&self) -> &str {
        "offline"
    }
}
