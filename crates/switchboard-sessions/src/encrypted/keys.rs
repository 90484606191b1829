//! Keys, and what is encrypted with them.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{AeadInOut, Generate, KeyInit};
use chacha20poly1305::{Tag, XChaCha20Poly1305, XNonce};
use zeroize::{Zeroize, Zeroizing};

use super::error::EncryptionError;

const KEY_LENGTH: usize = 32;
const NONCE_LENGTH: usize = 24;
const TAG_LENGTH: usize = 16;

/// A key of 32 random bytes. It is overwritten in memory when it is dropped, and never printed.
///
/// As text it is base64, as `openssl rand -base64 32` prints it:
///
/// ```
/// use switchboard_sessions::Key;
///
/// let key: Key = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=".parse()?;
/// assert_eq!(format!("{key:?}"), "Key(..)");
/// # Ok::<(), switchboard_sessions::EncryptionError>(())
/// ```
// In a box, so that moving a key leaves no copy of it behind.
pub struct Key(Box<Zeroizing<[u8; KEY_LENGTH]>>);

impl From<[u8; KEY_LENGTH]> for Key {
    fn from(mut bytes: [u8; KEY_LENGTH]) -> Self {
        let key = Self(Box::new(Zeroizing::new(bytes)));
        bytes.zeroize();
        key
    }
}

impl FromStr for Key {
    type Err = EncryptionError;

    /// Reads a key from base64. White space around it is ignored.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let decoded = STANDARD.decode(text.trim()).map(Zeroizing::new);
        let bytes = decoded.map_err(|_| EncryptionError::invalid_key())?;
        Self::from_slice(&bytes).ok_or_else(EncryptionError::invalid_key)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// A name for the key that is computed from it and tells nothing about it: 16 hexadecimal digits. Two
    /// keys have different ones.
    ///
    /// ```
    /// use switchboard_sessions::{Key, Keys};
    ///
    /// let key: Key = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=".parse()?;
    /// let keys = Keys::new(key.fingerprint(), key);
    /// assert_eq!(keys.current_id().len(), 16);
    /// # Ok::<(), switchboard_sessions::EncryptionError>(())
    /// ```
    pub fn fingerprint(&self) -> String {
        let context = Context::new("fingerprint");
        // Nothing is encrypted with this nonce; all others are random.
        let tag = self
            .cipher()
            .encrypt_inout_detached(&XNonce::default(), &context.0, (&mut [][..]).into())
            // Only a text that is too long fails.
            .unwrap_or_default();
        let mut fingerprint = String::new();
        for byte in tag.iter().take(8) {
            fingerprint += &format!("{byte:02x}");
        }
        fingerprint
    }

    /// Creates a random key.
    pub(crate) fn random() -> Result<Self, EncryptionError> {
        let bytes = <[u8; KEY_LENGTH]>::try_generate();
        Ok(bytes.map_err(EncryptionError::no_randomness)?.into())
    }

    fn from_slice(bytes: &[u8]) -> Option<Self> {
        let mut key = Box::new(Zeroizing::new([0; KEY_LENGTH]));
        if bytes.len() != KEY_LENGTH {
            return None;
        }
        key.copy_from_slice(bytes);
        Some(Self(key))
    }

    /// Encrypts `plain` for this context. Returns the nonce, the encrypted bytes and their tag as base64.
    pub(crate) fn encrypt(
        &self,
        context: &Context,
        plain: &[u8],
    ) -> Result<String, EncryptionError> {
        let nonce = XNonce::try_generate().map_err(EncryptionError::no_randomness)?;
        let mut bytes = Vec::with_capacity(NONCE_LENGTH + plain.len() + TAG_LENGTH);
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(plain);
        let tag = self
            .cipher()
            .encrypt_inout_detached(&nonce, &context.0, (&mut bytes[NONCE_LENGTH..]).into())
            .map_err(|_| EncryptionError::too_long())?;
        bytes.extend_from_slice(&tag);
        Ok(STANDARD.encode(bytes))
    }

    /// Decrypts what [`Key::encrypt`] has returned. `None` if it is something else, of another key or of
    /// another context.
    pub(crate) fn decrypt(&self, context: &Context, text: &str) -> Option<Zeroizing<Vec<u8>>> {
        let mut bytes = Zeroizing::new(STANDARD.decode(text).ok()?);
        let tag_start = bytes.len().checked_sub(TAG_LENGTH)?;
        let tag = Tag::try_from(&bytes[tag_start..]).ok()?;
        let nonce = XNonce::try_from(bytes.get(..NONCE_LENGTH)?).ok()?;
        let encrypted = bytes.get_mut(NONCE_LENGTH..tag_start)?;
        self.cipher()
            .decrypt_inout_detached(&nonce, &context.0, encrypted.into(), &tag)
            .ok()?;
        bytes.truncate(tag_start);
        bytes.drain(..NONCE_LENGTH);
        Some(bytes)
    }

    /// Encrypts this key with another one.
    pub(crate) fn wrap(&self, with: &Self, context: &Context) -> Result<String, EncryptionError> {
        with.encrypt(context, &**self.0)
    }

    /// Decrypts a key that was encrypted with this one.
    pub(crate) fn unwrap_key(&self, context: &Context, text: &str) -> Option<Self> {
        Self::from_slice(&self.decrypt(context, text)?)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&**self.0).into())
    }
}

/// Keys by their names: the current one, which encrypts, and older ones, which only decrypt.
///
/// The names are stored readable beside what the keys encrypt, so that it is known which key is needed.
/// Each name stands for one key, for ever.
///
/// ```
/// use switchboard_sessions::Keys;
///
/// let keys = Keys::new("2026-05", [7; 32]).and_older("2025-11", [8; 32]);
/// assert_eq!(format!("{keys:?}"), r#"Keys(["2026-05", "2025-11"])"#);
/// ```
pub struct Keys {
    current: (String, Key),
    older: Vec<(String, Key)>,
}

impl Keys {
    /// Creates a key ring with one key, which encrypts and decrypts.
    pub fn new(id: impl Into<String>, key: impl Into<Key>) -> Self {
        Self {
            current: (id.into(), key.into()),
            older: Vec::new(),
        }
    }

    /// Adds a key that only decrypts: the current key of before, or the one that will be current next
    /// and that other programs use already.
    #[must_use]
    pub fn and_older(mut self, id: impl Into<String>, key: impl Into<Key>) -> Self {
        self.older.push((id.into(), key.into()));
        self
    }

    /// The name of the current key.
    pub fn current_id(&self) -> &str {
        &self.current.0
    }

    pub(crate) fn current(&self) -> &Key {
        &self.current.1
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Key> {
        let mut all = std::iter::once(&self.current).chain(&self.older);
        all.find_map(|(key_id, key)| (key_id == id).then_some(key))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let older = self.older.iter().map(|(id, _)| id);
        let ids: Vec<&String> = std::iter::once(&self.current.0).chain(older).collect();
        f.debug_tuple("Keys").field(&ids).finish()
    }
}

/// The place that encrypted bytes belong to. They can be decrypted in the same place only.
///
/// It is the associated data of the cipher: numbers, and texts with their lengths, so that no two places
/// have the same bytes.
pub(crate) struct Context(Vec<u8>);

impl Context {
    /// Begins the context of something; the names of things differ.
    pub(crate) fn new(thing: &str) -> Self {
        Self(Vec::new()).text(thing)
    }

    pub(crate) fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(crate) fn text(self, text: &str) -> Self {
        let mut with_length = self.number(text.len() as u64);
        with_length.0.extend_from_slice(text.as_bytes());
        with_length
    }

    pub(crate) fn optional_text(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.number(1).text(text),
            None => self.number(0),
        }
    }
}
