//! The keys that sessions are encrypted with, from the environment.

use std::error::Error;
use std::ffi::OsString;

use switchboard_core::conversation::{ConversationError, ConversationErrorKind};
use switchboard_sessions::{EncryptionError, EncryptionErrorKind, Key, Keys};

use crate::failure::Failure;

/// The variable of the key that sessions are encrypted with.
const KEY: &str = "SWITCHBOARD_STORE_KEY";

/// The variable of the keys that they were encrypted with before.
const OLD_KEYS: &str = "SWITCHBOARD_STORE_OLD_KEYS";

/// Reads the keys; `None` if sessions are not to be encrypted.
pub(crate) fn of_environment() -> Result<Option<Keys>, Failure> {
    read(|name| std::env::var_os(name))
}

fn read(var: impl Fn(&str) -> Option<OsString>) -> Result<Option<Keys>, Failure> {
    let old = var(OLD_KEYS).map(|texts| parse(OLD_KEYS, texts));
    let Some(text) = var(KEY) else {
        return match old {
            // Somebody who has old keys does not mean to store anything readable.
            Some(_) => Err(Failure::usage(
                format!("{OLD_KEYS} is set, and {KEY} is not"),
                format!("set {KEY} to the key that sessions are encrypted with from now on"),
            )),
            None => Ok(None),
        };
    };
    let mut keys = parse(KEY, text)?.into_iter();
    let (Some(key), None) = (keys.next(), keys.next()) else {
        return Err(Failure::usage(
            format!("{KEY} must have one key"),
            format!("keys of before belong into {OLD_KEYS}; without encryption, unset {KEY}"),
        ));
    };
    let mut keys = Keys::new(key.fingerprint(), key);
    for key in old.transpose()?.unwrap_or_default() {
        keys = keys.and_older(key.fingerprint(), key);
    }
    Ok(Some(keys))
}

/// The keys of a variable, with commas or white space between them. No message quotes them.
fn parse(variable: &str, texts: OsString) -> Result<Vec<Key>, Failure> {
    let is_separator = |character: char| character == ',' || character.is_whitespace();
    let texts = texts.into_string().unwrap_or_else(|_| "?".to_owned());
    let texts = texts.split(is_separator).filter(|text| !text.is_empty());
    let keys = texts.map(|text| {
        text.parse::<Key>().map_err(|error| {
            let help =
                format!("make a key with `openssl rand -base64 32`, and set {variable} to it");
            Failure::usage(format!("{variable} cannot be used: {error}"), help)
        })
    });
    keys.collect()
}

/// Advice on an error of an encrypted session, or of one that should be.
pub(crate) fn help(error: &(dyn Error + Send + Sync + 'static)) -> Option<&'static str> {
    if let Some(error) = error.downcast_ref::<ConversationError>() {
        let is_encrypted = error.kind() == ConversationErrorKind::Encrypted;
        return is_encrypted.then_some(
            "set SWITCHBOARD_STORE_KEY to the key that the session was encrypted with, or use \
             another --session",
        );
    }
    match error.downcast_ref::<EncryptionError>()?.kind() {
        EncryptionErrorKind::MissingKey | EncryptionErrorKind::WrongKey => Some(
            "SWITCHBOARD_STORE_KEY is another key than the one that the session was encrypted with: \
             add that one to SWITCHBOARD_STORE_OLD_KEYS, or use another --session",
        ),
        EncryptionErrorKind::NotEncrypted => Some(
            "use another --session, which will be encrypted, or unset SWITCHBOARD_STORE_KEY to go on \
             with this one as it is",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
    const OLD: &str = "EjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJCrze8=";

    fn keys(key: Option<&str>, old: Option<&str>) -> Result<String, String> {
        let read = read(|name| match name {
            KEY => key.map(OsString::from),
            OLD_KEYS => old.map(OsString::from),
            _ => panic!("{name}"),
        });
        read.map(|keys| format!("{keys:?}"))
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn keys_are_named_by_their_fingerprints_and_never_printed() {
        assert_eq!(keys(None, None).unwrap(), "None");
        let one = keys(Some(NEW), None).unwrap();
        let both = keys(Some(&format!(" {NEW}\n")), Some(OLD)).unwrap();
        let name = one.strip_prefix("Some(Keys([\"").unwrap();
        let name = name.strip_suffix("\"]))").unwrap();
        assert!(name.len() == 16 && both.contains(name), "{one} {both}");
        assert_eq!(
            keys(Some(NEW), Some(&format!("{OLD},\n{OLD} ")))
                .unwrap()
                .len(),
            both.len() + 20
        );
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_quoted() {
        // A command that was to print the key may have failed: nothing must be stored readable then.
        for empty in ["", " "] {
            assert!(
                keys(Some(empty), None)
                    .unwrap_err()
                    .contains("must have one key")
            );
        }
        assert!(
            keys(None, Some(OLD))
                .unwrap_err()
                .contains("SWITCHBOARD_STORE_KEY is not")
        );
        for bad in ["hunter2", &NEW[1..], &format!("{NEW}x")] {
            for error in [keys(Some(bad), None), keys(Some(NEW), Some(bad))] {
                let error = error.unwrap_err();
                assert!(error.contains("32 random bytes in base64"), "{error}");
                assert!(!error.contains(bad), "{error}");
            }
        }
    }
}
