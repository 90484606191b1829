//! SEAM: which client speaks to the provider. Everything else of `--wire` is in place.
//!
//! With `switchboard-models` among the dependencies, the body of [`model`] is
//!
//! ```ignore
//! let client = Endpoint::at(url).key(key).retries(0).connect().map_err(|e| e.to_string())?;
//! Ok(match protocol {
//!     Protocol::Responses => ResponsesModel::new(&client, "gpt-test").into(),
//!     Protocol::Chat => ChatModel::new(&client, "gpt-test").into(),
//! })
//! ```

use fake_provider::Protocol;
use switchboard_core::ModelHandle;

/// A client of the provider at `url`, whose requests bear `key`.
pub(super) fn model(protocol: Protocol, url: &str, key: &str) -> Result<ModelHandle, String> {
    Err(format!(
        "there is no client for {protocol:?} yet to ask {url} with the key {key}"
    ))
}
