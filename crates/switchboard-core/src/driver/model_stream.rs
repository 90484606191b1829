//! Reading a model's response piece by piece.

use futures_util::stream::StreamExt as _;

use super::Driver;
use super::held_events::JudgedText;
use super::model_attempts::{StreamAttempt, TimeLimit};
use crate::callback::BoxError;
use crate::items::ItemKind;
use crate::model::{ModelEvent, ModelHandle, ModelRequest, ModelResponse};
use crate::stream::EventKind;

impl<C: Send + Sync + 'static> Driver<C> {
    /// Reports the response piece by piece. Nothing is read after the complete response.
    pub(super) async fn stream_response(
        &self,
        model: &ModelHandle,
        request: ModelRequest,
        mut attempt: Option<StreamAttempt<'_>>,
    ) -> Result<ModelResponse, BoxError> {
        let mut stream = model.stream(request);
        let mut has_text = false;
        let mut part = self.judges_parts().then(JudgedText::default);
        loop {
            let limit = attempt.as_mut().and_then(|attempt| attempt.limit.as_mut());
            let Some(event) = TimeLimit::apply(limit, stream.next()).await? else {
                break;
            };
            match event? {
                ModelEvent::Completed(response) => {
                    if !has_text {
                        self.report_whole_text(&response).await;
                    }
                    return Ok(response);
                }
                event => {
                    has_text |= matches!(event, ModelEvent::TextDelta { .. });
                    if let Some(attempt) = &mut attempt {
                        *attempt.has_begun |= event.is_part_of_answer();
                    }
                    let has_sentence = match (&event, &mut part) {
                        (ModelEvent::TextDelta { text, .. }, Some(part)) => part.push(text),
                        _ => false,
                    };
                    if let Some(event) = EventKind::of_model(event) {
                        self.emit(|| event).await;
                    }
                    if has_sentence && let Some(part) = &part {
                        Box::pin(self.release_passed_part(part)).await?;
                    }
                }
            }
        }
        Err(IncompleteStream.into())
    }

    /// Reports the text of a response that was not streamed as one delta per message.
    async fn report_whole_text(&self, response: &ModelResponse) {
        let messages = response.output.iter();
        for message in messages.filter(|item| item.kind() == ItemKind::Message) {
            if let Some(text) = message.text().filter(|text| !text.is_empty()) {
                let (item, text) = (message.id().unwrap_or_default().into(), text.into_owned());
                self.emit(|| EventKind::TextDelta { item, text }).await;
            }
        }
    }
}

/// The stream of a model ended before its response was complete.
#[derive(Debug)]
pub(super) struct IncompleteStream;

impl_error!(
    IncompleteStream,
    |_error| "the model's stream ended without a complete answer"
);
