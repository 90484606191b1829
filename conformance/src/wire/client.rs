//! Which client speaks to the provider.

use fake_provider::Protocol;
use switchboard_core::ModelHandle;
use switchboard_models::{ChatModel, Endpoint, ResponsesModel};

/// A client of the provider at `url`, whose requests bear `key`.
pub(super) fn model(protocol: Protocol, url: &str, key: &str) -> Result<ModelHandle, String> {
    let endpoint = Endpoint::at(url).key(key).retries(0);
    let client = endpoint.connect().map_err(|error| error.to_string())?;
    Ok(match protocol {
        Protocol::Responses => ResponsesModel::new(&client, "gpt-test").into(),
        Protocol::Chat => ChatModel::new(&client, "gpt-test").into(),
    })
}
