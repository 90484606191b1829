//! The keys of clients: stored hashed, each with a tenant and limits.
//!
//! A key is `sb_ID_SECRET`. The file holds the identifier, a random salt and the HMAC-SHA-256 of the secret
//! under it. A secret has 256 random bits, so a slow hash would add nothing.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::error::{ServiceError, ServiceErrorKind};
use crate::tenant::Tenant;

/// The largest file of keys, room for 60,000 of them.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The seconds of a day, the period of the limits on tokens and cost.
const DAY: u64 = 24 * 60 * 60;

/// The keys of a service, read from a file. Clones share them.
///
/// ```toml
/// [[keys]]
/// id = "7Qm2c1X0"
/// tenant = "acme"
/// hash = "v1.SALT.HMAC"
/// requests_per_minute = 120
/// concurrent_runs = 8
/// tokens_per_day = 2_000_000
/// cost_per_day = 25.0
/// teams = ["support"]
/// ```
///
/// Several keys of one tenant see the same conversations: to rotate a key, add another one, and remove the first
/// when nobody uses it any more. [`Keys::reload`] reads the file again; limits that are partly used stay so.
#[derive(Clone)]
pub struct Keys(Arc<Shared>);

struct Shared {
    path: Option<PathBuf>,
    by_id: RwLock<HashMap<Arc<str>, Arc<Key>>>,
    /// A hash that unknown keys are compared with, so that the time tells nothing.
    unknown: KeyHash,
}

/// A key and the state of its limits.
pub(crate) struct Key {
    pub(crate) tenant: Tenant,
    entry: KeyEntry,
    hash: KeyHash,
    used: Arc<Mutex<Used>>,
}

/// One key of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KeyEntry {
    /// The identifier, which is a part of the key.
    pub id: String,
    /// The tenant whose conversations the key gives access to.
    pub tenant: String,
    /// The hash of the secret.
    pub hash: String,
    /// The number of requests in a minute; `None` is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// The number of runs at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrent_runs: Option<u32>,
    /// The tokens of all models in a day (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// The cost of all models in a day (UTC), in the currency of the prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<f64>,
    /// The teams that the key may use; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teams: Option<Vec<String>>,
    /// Lets the key read the metrics.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub metrics: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    #[serde(default)]
    keys: Vec<KeyEntry>,
}

/// The use of a key's limits. It outlives a reload of the file.
#[derive(Debug, Default)]
struct Used {
    bucket: Option<(f64, Instant)>,
    runs: u32,
    day: u64,
    /// The use by this process.
    here: DayUsage,
    /// The use by processes before it, and beside it when it began.
    elsewhere: DayUsage,
}

/// The use of the limits of a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DayUsage {
    pub(crate) tokens: u64,
    pub(crate) cost: f64,
}

impl DayUsage {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost: self.cost + other.cost,
        }
    }
}

impl Used {
    /// Begins another day, if it is one.
    fn begin_day(&mut self, day: u64) {
        if self.day != day {
            self.day = day;
            (self.here, self.elsewhere) = Default::default();
        }
    }

    fn of_day(&self) -> DayUsage {
        self.here.plus(self.elsewhere)
    }
}

impl Keys {
    /// Reads a file of keys.
    ///
    /// # Errors
    /// An error that names the file and what is wrong in it.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, KeysError> {
        let path = path.into();
        let keys = Self::new(Some(path));
        keys.reload()?;
        Ok(keys)
    }

    /// Creates keys from entries, for services that keep them elsewhere.
    ///
    /// # Errors
    /// An error if an entry is not valid.
    pub fn from_entries(entries: impl IntoIterator<Item = KeyEntry>) -> Result<Self, KeysError> {
        let keys = Self::new(None);
        keys.replace(entries.into_iter().collect())?;
        Ok(keys)
    }

    fn new(path: Option<PathBuf>) -> Self {
        Self(Arc::new(Shared {
            path,
            by_id: RwLock::default(),
            unknown: KeyHash::of(&[0; 16], ""),
        }))
    }

    /// Reads the file again. If it cannot be read, the keys stay as they are.
    ///
    /// # Errors
    /// An error that names the file and what is wrong in it.
    pub fn reload(&self) -> Result<(), KeysError> {
        match &self.0.path {
            Some(path) => self.replace(read_file(path)?.keys),
            None => Ok(()),
        }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// Returns `true` if there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn all(&self) -> HashMap<Arc<str>, Arc<Key>> {
        let keys = self.0.by_id.read();
        keys.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, entries: Vec<KeyEntry>) -> Result<(), KeysError> {
        let known = self.all();
        let mut keys = HashMap::new();
        for entry in entries {
            let problem = |what: String| KeysError(format!("the key {:?}: {what}", entry.id));
            let tenant =
                Tenant::named(&entry.tenant).map_err(|error| problem(error.to_string()))?;
            let hash = KeyHash::parse(&entry.hash)
                .ok_or_else(|| problem("its hash is not of the form v1.SALT.HMAC".to_owned()))?;
            let id: Arc<str> = entry.id.as_str().into();
            let used = known
                .get(&id)
                .map(|key| key.used.clone())
                .unwrap_or_default();
            let key = Key {
                tenant,
                hash,
                used,
                entry,
            };
            if keys.insert(id.clone(), Arc::new(key)).is_some() {
                return Err(KeysError(format!("the key {id:?} is there twice")));
            }
        }
        *self.0.by_id.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    /// Returns `true` if the key is one of these, as it was when it was found.
    pub(crate) fn has(&self, key: &Key) -> bool {
        let keys = self.0.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let known = keys.get(key.id());
        known.is_some_and(|known| known.entry.hash == key.entry.hash && known.tenant == key.tenant)
    }

    /// Finds the key that a client has sent. Its secret is compared in constant time.
    pub(crate) fn authenticate(&self, sent: &str) -> Option<Arc<Key>> {
        let parts = sent
            .strip_prefix("sb_")
            .and_then(|rest| rest.split_once('_'));
        let (id, secret) = parts.unwrap_or(("", sent));
        let keys = self.0.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.get(id).cloned();
        drop(keys);
        let hash = key.as_ref().map_or(&self.0.unknown, |key| &key.hash);
        let is_right = hash.verify(secret);
        key.filter(|_| is_right)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.len())
    }
}

/// Makes a new key. Returns the key for the client, which is stored nowhere, and the entry for the file.
///
/// ```
/// use switchboard_server::{Keys, make_key};
///
/// let (key, entry) = make_key("acme")?;
/// assert!(key.starts_with(&format!("sb_{}_", entry.id)));
/// assert!(!format!("{entry:?}").contains(&key[12..]));
/// let keys = Keys::from_entries([entry])?;
/// assert_eq!(keys.len(), 1);
/// # Ok::<(), switchboard_server::KeysError>(())
/// ```
///
/// # Errors
/// An error if the tenant's name is not valid, or the system has no random numbers.
pub fn make_key(tenant: &str) -> Result<(String, KeyEntry), KeysError> {
    Tenant::named(tenant).map_err(|error| KeysError(error.to_string()))?;
    let id = hex(&random::<4>()?);
    let secret = hex(&random::<32>()?);
    let entry = KeyEntry {
        hash: KeyHash::of(&random::<16>()?, &secret).to_text(),
        tenant: tenant.to_owned(),
        requests_per_minute: None,
        concurrent_runs: None,
        tokens_per_day: None,
        cost_per_day: None,
        teams: None,
        metrics: false,
        id: id.clone(),
    };
    Ok((format!("sb_{id}_{secret}"), entry))
}

/// Makes a new key and appends its entry to a file, which is created if there is none. An entry that cannot be
/// written whole is taken away again.
///
/// # Errors
/// An error if the file cannot be read or written, or is not valid.
pub fn add_key(path: &Path, tenant: &str) -> Result<String, KeysError> {
    let problem = |error: std::io::Error| KeysError(format!("{}: {error}", path.display()));
    let is_new = match std::fs::metadata(path) {
        Ok(found) if found.is_file() => {
            read_file(path)?;
            false
        }
        Ok(_) => return Err(KeysError(format!("{} is no plain file", path.display()))),
        Err(_) => true,
    };
    let (key, entry) = make_key(tenant)?;
    let added = toml::to_string(&KeyFile { keys: vec![entry] })
        .map_err(|error| KeysError(error.to_string()))?;
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(problem)?;
    if let Err(error) = append(&mut file, &format!("\n{added}")) {
        // Another program may have added a key to it meanwhile.
        if is_new && file.metadata().is_ok_and(|found| found.len() == 0) {
            // An empty file does no harm.
            let _ = std::fs::remove_file(path);
        }
        return Err(problem(error));
    }
    Ok(key)
}

/// Appends a text to a file, or nothing of it.
fn append(file: &mut File, text: &str) -> io::Result<()> {
    // What another program appends at the same time must not be cut off below. Not all file systems have locks.
    let _ = file.lock();
    let len = file.metadata()?.len();
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    if written.is_err() {
        // The first error is the one to tell.
        let _ = file.set_len(len);
    }
    written
}

fn read_file(path: &Path) -> Result<KeyFile, KeysError> {
    let problem = |error: &dyn fmt::Display| KeysError(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(|error| problem(&error))?;
    let mut text = String::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
    let read = read.map_err(|error| problem(&error))?;
    if read as u64 > MAX_FILE_BYTES {
        return Err(problem(&"it is too large for a file of keys"));
    }
    toml::from_str(&text).map_err(|error| problem(&error))
}

impl Key {
    pub(crate) fn id(&self) -> &str {
        &self.entry.id
    }

    /// Returns `true` if the key may use the team.
    pub(crate) fn allows_team(&self, team: &str) -> bool {
        let teams = self.entry.teams.as_ref();
        teams.is_none_or(|teams| teams.iter().any(|known| known == team))
    }

    /// Returns `true` if the key may read the metrics.
    pub(crate) fn allows_metrics(&self) -> bool {
        self.entry.metrics
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, unless there were too many.
    pub(crate) fn take_request(&self) -> Result<(), ServiceError> {
        let Some(limit) = self.entry.requests_per_minute else {
            return Ok(());
        };
        let limit = f64::from(limit.max(1));
        let per_second = limit / 60.0;
        let mut used = self.used();
        let now = Instant::now();
        let (left, at) = used.bucket.unwrap_or((limit, now));
        let left = (left + now.duration_since(at).as_secs_f64() * per_second).min(limit);
        if left < 1.0 {
            used.bucket = Some((left, now));
            let wait = Duration::from_secs_f64((1.0 - left) / per_second);
            let message = format!("the key's limit of {limit} requests per minute is reached");
            return Err(ServiceError::new(ServiceErrorKind::RateLimited, message).retry_after(wait));
        }
        used.bucket = Some((left - 1.0, now));
        Ok(())
    }

    /// Takes one of the key's runs until the permit is dropped.
    pub(crate) fn take_run(self: &Arc<Self>) -> Result<RunPermit, ServiceError> {
        self.check_day()?;
        let mut used = self.used();
        if let Some(limit) = self.entry.concurrent_runs
            && used.runs >= limit
        {
            let message = format!("the key's limit of {limit} runs at once is reached");
            let error = ServiceError::new(ServiceErrorKind::RateLimited, message);
            return Err(error.retry_after(Duration::from_secs(1)));
        }
        used.runs += 1;
        drop(used);
        Ok(RunPermit(self.clone()))
    }

    /// Checks the limits of the day.
    pub(crate) fn check_day(&self) -> Result<(), ServiceError> {
        let limited = |message: String, wait: Duration| {
            ServiceError::new(ServiceErrorKind::RateLimited, message).retry_after(wait)
        };
        let mut used = self.used();
        let (day, tomorrow) = today();
        used.begin_day(day);
        let spent = used.of_day();
        if let Some(limit) = self.entry.tokens_per_day
            && spent.tokens >= limit
        {
            let message = format!("the key's limit of {limit} tokens per day is used up");
            return Err(limited(message, tomorrow));
        }
        if let Some(limit) = self.entry.cost_per_day
            && spent.cost >= limit
        {
            let message = format!("the key's limit of a cost of {limit} per day is used up");
            return Err(limited(message, tomorrow));
        }
        Ok(())
    }

    /// Counts what a run has used. Returns the day and its use by this process, if the key has a limit on it.
    pub(crate) fn add_usage(&self, tokens: u64, cost: f64) -> Option<(u64, DayUsage)> {
        let mut used = self.used();
        let (day, _) = today();
        used.begin_day(day);
        used.here = used.here.plus(DayUsage { tokens, cost });
        self.has_daily_limit().then_some((day, used.here))
    }

    /// Returns `true` if the tokens or the cost of a day are limited.
    pub(crate) fn has_daily_limit(&self) -> bool {
        self.entry.tokens_per_day.is_some() || self.entry.cost_per_day.is_some()
    }

    /// Sets the use by other processes on a day.
    pub(crate) fn set_elsewhere(&self, day: u64, usage: DayUsage) {
        let mut used = self.used();
        used.begin_day(today().0);
        if used.day == day {
            used.elsewhere = usage;
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?} of {:?})", self.entry.id, self.tenant.name())
    }
}

/// One of the runs that a key may have at once.
#[derive(Debug)]
pub(crate) struct RunPermit(Arc<Key>);

impl Drop for RunPermit {
    fn drop(&mut self) {
        let mut used = self.0.used();
        used.runs = used.runs.saturating_sub(1);
    }
}

/// The number of the day (UTC), and the time until the next.
pub(crate) fn today() -> (u64, Duration) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = now.as_secs();
    (seconds / DAY, Duration::from_secs(DAY - seconds % DAY))
}

/// The salted hash of a secret.
struct KeyHash {
    salt: Vec<u8>,
    tag: Vec<u8>,
}

impl KeyHash {
    fn of(salt: &[u8], secret: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, salt);
        Self {
            salt: salt.to_vec(),
            tag: hmac::sign(&key, secret.as_bytes()).as_ref().to_vec(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (salt, tag) = text.strip_prefix("v1.")?.split_once('.')?;
        let salt = URL_SAFE_NO_PAD.decode(salt).ok()?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        (salt.len() >= 8 && tag.len() == 32).then_some(Self { salt, tag })
    }

    fn to_text(&self) -> String {
        let salt = URL_SAFE_NO_PAD.encode(&self.salt);
        let tag = URL_SAFE_NO_PAD.encode(&self.tag);
        format!("v1.{salt}.{tag}")
    }

    /// Compares in constant time.
    fn verify(&self, secret: &str) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.salt);
        hmac::verify(&key, secret.as_bytes(), &self.tag).is_ok()
    }
}

/// A token that is made when a service begins, and is valid as long as it runs.
pub(crate) struct Token(KeyHash);

impl Token {
    /// Makes a token. Returns it as text as well.
    pub(crate) fn generate() -> Result<(Self, String), KeysError> {
        let text = URL_SAFE_NO_PAD.encode(random::<32>()?);
        let token = Self(KeyHash::of(&random::<16>()?, &text));
        Ok((token, text))
    }

    /// Compares in constant time.
    pub(crate) fn verify(&self, sent: &str) -> bool {
        self.0.verify(sent)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// A problem with keys.
#[derive(Debug)]
pub struct KeysError(String);

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeysError {}

fn random<const N: usize>() -> Result<[u8; N], KeysError> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| KeysError("the system has no random numbers".to_owned()))?;
    Ok(bytes)
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes a random identifier that nobody can guess, such as `run_5f0c…`.
pub(crate) fn random_id(prefix: &str) -> Result<Arc<str>, ServiceError> {
    let bytes = random::<16>();
    let bytes =
        bytes.map_err(|error| ServiceError::new(ServiceErrorKind::Internal, error.to_string()))?;
    Ok(format!("{prefix}_{}", hex(&bytes)).into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

    use super::*;

    #[test]
    fn only_the_whole_key_is_accepted() {
        let (key, entry) = make_key("acme").unwrap();
        let (other, _) = make_key("acme").unwrap();
        let keys = Keys::from_entries([entry.clone()]).unwrap();
        assert_eq!(keys.authenticate(&key).unwrap().tenant.name(), "acme");
        let mut wrong = key.clone();
        wrong.pop();
        let other_secret = format!("sb_{}_{}", entry.id, &other[12..]);
        for wrong in [
            &*wrong,
            &other,
            &other_secret,
            &format!("{key}0"),
            "",
            "sb_",
            &entry.hash,
        ] {
            assert!(keys.authenticate(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_file_of_keys_is_added_to_reloaded_and_kept_when_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let first = add_key(&path, "acme").unwrap();
        let keys = Keys::read(&path).unwrap();
        let second = add_key(&path, "other").unwrap();
        assert!(keys.authenticate(&second).is_none());
        keys.reload().unwrap();
        assert_eq!(keys.authenticate(&second).unwrap().tenant.name(), "other");
        assert!(!std::fs::read_to_string(&path).unwrap().contains(&first));

        std::fs::write(&path, "[[keys]]\nid = 'x'\nten = 'a'\n").unwrap();
        let error = keys.reload().unwrap_err().to_string();
        assert!(
            error.contains("keys.toml") && error.contains("ten"),
            "{error}"
        );
        assert!(keys.authenticate(&first).is_some());
    }

    #[test]
    fn the_use_of_a_limit_outlives_a_reload() {
        let (key, mut entry) = make_key("acme").unwrap();
        entry.tokens_per_day = Some(10);
        entry.requests_per_minute = Some(2);
        let keys = Keys::from_entries([entry.clone()]).unwrap();
        let found = keys.authenticate(&key).unwrap();
        found.take_request().unwrap();
        found.take_request().unwrap();
        drop(found.take_run().unwrap());
        found.add_usage(10, 0.0);
        keys.replace(vec![entry]).unwrap();
        let found = keys.authenticate(&key).unwrap();
        let error = found.take_request().unwrap_err();
        assert_eq!(error.kind(), ServiceErrorKind::RateLimited);
        assert!((1..=30).contains(&error.retry_after_seconds().unwrap()));
        assert!(
            found
                .take_run()
                .unwrap_err()
                .message()
                .contains("10 tokens per day")
        );
    }
}
