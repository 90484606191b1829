//! Runs that are encrypted or signed, for states that leave the program.
//!
//! A sealed run is `{"switchboard_sealed_run":{"version":1,"key":..,"key_check":..}}` with the name of a key and
//! an empty text that was encrypted with it, by which a wrong key is told from a changed run. An encrypted one
//! has the run in `content`; a signed one has it in `run`, as it is, and in `signature` an empty text that was
//! encrypted with the run as associated data. Each is bound to its place by a [`Context`].

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use switchboard_core::Run;
use switchboard_core::run::StateLimits;

use crate::encrypted::keys::{Context, Key};
use crate::{EncryptionError, Keys};

/// The version of the sealed form. The contexts contain it too.
const VERSION: u32 = 1;

/// Encrypts and signs the states of runs, so that they can be kept where others can read or write: in a browser,
/// in a queue, in the message that asks a person for a decision.
///
/// Nobody without the key can change a sealed run unnoticed. [`RunSeal::encrypt`] also hides it;
/// [`RunSeal::sign`] leaves it readable. Each is bound to a *place*, such as the name of the customer or of the
/// conversation: a run that was sealed for one place is not opened in another, so nobody can resume the run of
/// somebody else. The cipher is XChaCha20-Poly1305, and [`Keys`] are changed as those of an
/// [`EncryptedStore`](crate::EncryptedStore): older ones still open.
///
/// ```
/// use switchboard_core::approval::Decision;
/// use switchboard_core::testing::ScriptedModel;
/// use switchboard_core::{Agent, Runner, tool};
/// use switchboard_sessions::{EncryptionErrorKind, Key, Keys, RunSeal};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let key: Key = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=".parse()?;
/// let seal = RunSeal::new(Keys::new("2026-05", key));
///
/// let refund = tool("refund").needs_approval().run(|_ctx, (): ()| "refunded");
/// let desk: Agent = Agent::new("Desk").tool(refund);
/// let model = ScriptedModel::new().call("refund", "{}").say("It is on its way.");
/// let runner = Runner::new(&desk).model(model);
/// let result = runner.run("I want my money back").await?;
/// let sealed = seal.encrypt(result.run(), "customer-42")?;
///
/// // Later, with what came back:
/// let other = seal.open(&sealed, "customer-43").unwrap_err();
/// assert_eq!(other.kind(), EncryptionErrorKind::Tampered);
/// let mut run = seal.open(&sealed, "customer-42")?;
/// for waiting in run.interruptions() {
///     run.decide(&waiting, Decision::approve())?;
/// }
/// assert_eq!(runner.resume(run).await?.final_text(), "It is on its way.");
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// # })?;
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// ```
///
/// A seal does not tell an old state from the latest one. A run that waits is resumed once within a process;
/// between processes, let it wait in a stored conversation
/// ([`Conversation::waiting_run`](switchboard_core::conversation::Conversation::waiting_run)), where it is
/// resumed once too.
pub struct RunSeal {
    keys: Keys,
    limits: StateLimits,
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    switchboard_sealed_run: T,
}

// A later version may lack a field; then its number is what to report.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Sealed {
    version: u32,
    /// The name of the key.
    key: String,
    /// An empty text, encrypted with the key.
    key_check: String,
    /// The run, encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// An empty text, encrypted with the run as associated data.
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    /// The run, where it is only signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Box<RawValue>>,
}

impl RunSeal {
    /// Creates a seal with these keys. The current one seals, and all of them open.
    pub fn new(keys: Keys) -> Self {
        Self {
            keys,
            limits: StateLimits::default(),
        }
    }

    /// Sets the limits on runs that are opened. A sealed run may be half as long again as the limit on its JSON.
    #[must_use]
    pub fn limits(mut self, limits: StateLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Encrypts a run for a place. The text shows the name of the key and the length of the run, and nothing
    /// else.
    ///
    /// # Errors
    /// An error if the system gives no random numbers, or the run is too long for the cipher.
    pub fn encrypt(&self, run: &Run, place: &str) -> Result<String, EncryptionError> {
        let json = written(run)?;
        let key = self.keys.current();
        let context = content_context(self.keys.current_id(), place);
        self.sealed(Sealed {
            content: Some(key.encrypt(&context, json.as_bytes())?),
            ..Sealed::default()
        })
    }

    /// Signs a run for a place. The run stays readable in the field `run` of the text, which must be kept byte
    /// for byte.
    ///
    /// # Errors
    /// An error if the system gives no random numbers.
    pub fn sign(&self, run: &Run, place: &str) -> Result<String, EncryptionError> {
        let json = written(run)?;
        let key = self.keys.current();
        let context = signature_context(self.keys.current_id(), place, &json);
        self.sealed(Sealed {
            signature: Some(key.encrypt(&context, &[])?),
            run: Some(RawValue::from_string(json).map_err(EncryptionError::invalid_run)?),
            ..Sealed::default()
        })
    }

    /// Opens a run that was encrypted or signed for this place.
    ///
    /// # Errors
    /// An error if the text is too long, no sealed run, of a later version, of a key that is missing or another
    /// one, changed, or of another place; or if the run in it cannot be read.
    pub fn open(&self, sealed: &str, place: &str) -> Result<Run, EncryptionError> {
        // Base64 and the fields around it.
        let limit = self.limits.bytes.saturating_add(self.limits.bytes / 2);
        let limit = limit.saturating_add(1_000);
        if sealed.len() > limit {
            return Err(EncryptionError::sealed_run_too_large(sealed.len(), limit));
        }
        let envelope: Envelope<Sealed> =
            serde_json::from_str(sealed).map_err(|_| EncryptionError::not_sealed())?;
        let sealed = envelope.switchboard_sealed_run;
        match sealed.version {
            VERSION => {}
            0 => return Err(EncryptionError::not_sealed()),
            version => return Err(EncryptionError::newer_sealed_run(version, VERSION)),
        }
        let id = &sealed.key;
        let key = self.keys.get(id);
        let key = key.ok_or_else(|| EncryptionError::missing_run_key(id))?;
        if key.decrypt(&key_context(id), &sealed.key_check).is_none() {
            return Err(EncryptionError::wrong_run_key(id));
        }
        match (&sealed.content, &sealed.signature, &sealed.run) {
            (Some(content), None, None) => self.decrypted(key, id, content, place),
            (None, Some(signature), Some(run)) => {
                let context = signature_context(id, place, run.get());
                let is_signed = key.decrypt(&context, signature);
                is_signed.ok_or_else(EncryptionError::tampered_run)?;
                self.read(run.get())
            }
            _ => Err(EncryptionError::tampered_run()),
        }
    }

    fn decrypted(
        &self,
        key: &Key,
        id: &str,
        content: &str,
        place: &str,
    ) -> Result<Run, EncryptionError> {
        let json = key.decrypt(&content_context(id, place), content);
        let json = json.ok_or_else(EncryptionError::tampered_run)?;
        let json = std::str::from_utf8(&json).map_err(EncryptionError::invalid_run)?;
        self.read(json)
    }

    fn read(&self, json: &str) -> Result<Run, EncryptionError> {
        Run::from_json_within(json, self.limits).map_err(EncryptionError::invalid_run)
    }

    fn sealed(&self, sealed: Sealed) -> Result<String, EncryptionError> {
        let id = self.keys.current_id();
        let sealed = Sealed {
            version: VERSION,
            key: id.to_owned(),
            key_check: self.keys.current().encrypt(&key_context(id), &[])?,
            ..sealed
        };
        let envelope = Envelope {
            switchboard_sealed_run: sealed,
        };
        serde_json::to_string(&envelope).map_err(EncryptionError::invalid_run)
    }
}

impl fmt::Debug for RunSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSeal")
            .field("keys", &self.keys)
            .field("limits", &self.limits)
            .finish()
    }
}

fn written(run: &Run) -> Result<String, EncryptionError> {
    serde_json::to_string(run).map_err(EncryptionError::invalid_run)
}

fn key_context(key: &str) -> Context {
    Context::new("switchboard run key 1").text(key)
}

fn content_context(key: &str, place: &str) -> Context {
    Context::new("switchboard encrypted run 1")
        .text(key)
        .text(place)
}

fn signature_context(key: &str, place: &str, run: &str) -> Context {
    Context::new("switchboard signed run 1")
        .text(key)
        .text(place)
        .text(run)
}
