//! The seam: which client speaks to the provider.

use fake_provider::Protocol;
use switchboard_core::ModelHandle;

/// A client of the provider at `url`, whose requests bear `key`.
///
/// TODO-SEAM: with `switchboard-models` among the dependencies, this is
///
/// ```ignore
/// let client = Endpoint::at(url).key(key).retries(0).connect().map_err(|e| e.to_string())?;
/// Ok(match protocol {
///     Protocol::Responses => ResponsesModel::new(&client, "gpt-test").into(),
///     Protocol::Chat => ChatModel::new(&client, "gpt-test").into(),
/// })
/// ```
pub(super) fn model(protocol: Protocol, url: &str, key: &str) -> Result<ModelHandle, String> {
    Err(format!(
        "there is no client for {protocol:?} yet to ask {url} with the key {key}"
    ))
}
