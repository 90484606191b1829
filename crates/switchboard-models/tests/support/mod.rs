//! The two protocols, for tests that do the same over both.

use switchboard_core::model::ModelHandle;
use switchboard_models::{ChatModel, Client, ResponsesModel};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Protocol {
    Responses,
    Chat,
}

pub(crate) const BOTH: [Protocol; 2] = [Protocol::Responses, Protocol::Chat];

impl Protocol {
    pub(crate) fn model(self, client: &Client) -> ModelHandle {
        match self {
            Self::Responses => ResponsesModel::new(client, "gpt-test").into(),
            Self::Chat => ChatModel::new(client, "gpt-test").into(),
        }
    }
}
