//! Tenants, and the names of their conversations in the store.
//!
//! A conversation of the tenant `acme` is stored as `acme/ID`; without tenants the name is the identifier, so
//! that the program's other commands and the service share conversations. An identifier has no `/`, so no
//! identifier leads out of its tenant. Folders that begin with `~` hold records of the service itself: `acme/~response/ID`.

use std::sync::Arc;

use crate::error::ServiceError;

/// The longest identifier of a conversation, in characters.
pub const MAX_CONVERSATION_ID: usize = 200;

/// The owner of conversations and runs: nobody else sees them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenant(Option<Arc<str>>);

impl Tenant {
    /// The only tenant of a service without keys.
    pub const fn single() -> Self {
        Self(None)
    }

    /// The tenant of this name: letters, digits, `-`, `_` and `.`.
    ///
    /// # Errors
    /// An error if the name is empty, longer than 64 bytes, or has other characters.
    pub fn named(name: &str) -> Result<Self, ServiceError> {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_valid) {
            return Err(ServiceError::invalid(format!(
                "{name:?} is no name of a tenant: it has 1 to 64 letters, digits, \"-\", \"_\" or \".\""
            )));
        }
        Ok(Self(Some(name.into())))
    }

    /// The name; empty without tenants.
    pub fn name(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The stored name of a conversation.
    pub(crate) fn stored_name(&self, id: &str) -> Result<Arc<str>, ServiceError> {
        let problem = if id.is_empty() {
            "it is empty"
        } else if id.chars().count() > MAX_CONVERSATION_ID {
            "it is longer than 200 characters"
        } else if id.contains('/') || id.chars().any(char::is_control) {
            "it has a \"/\" or a control character"
        } else if id.starts_with('~') {
            "it begins with \"~\""
        } else {
            return Ok(self.prefixed(id));
        };
        Err(ServiceError::invalid(format!(
            "this is no identifier of a conversation: {problem}"
        )))
    }

    /// The stored name of a record of the service.
    pub(crate) fn record_name(&self, kind: &str, id: &str) -> Arc<str> {
        self.prefixed(&format!("~{kind}/{id}"))
    }

    /// The folder of the tenant's conversations.
    pub(crate) fn folder(&self) -> Arc<str> {
        self.prefixed("")
    }

    /// The folder of the records of one kind.
    pub(crate) fn record_folder(&self, kind: &str) -> Arc<str> {
        self.record_name(kind, "")
    }

    /// The identifier of a record of one kind, if it is the tenant's.
    pub(crate) fn record_id<'a>(&self, kind: &str, stored: &'a str) -> Option<&'a str> {
        stored.strip_prefix(&*self.record_folder(kind))
    }

    fn prefixed(&self, id: &str) -> Arc<str> {
        match &self.0 {
            None => id.into(),
            Some(tenant) => format!("{tenant}/{id}").into(),
        }
    }

    /// The identifier of a stored conversation, if it is the tenant's.
    pub(crate) fn id_of<'a>(&self, stored: &'a str) -> Option<&'a str> {
        let id = match &self.0 {
            None => stored,
            Some(tenant) => stored.strip_prefix(&**tenant)?.strip_prefix('/')?,
        };
        let is_own = !id.is_empty() && !id.contains('/') && !id.starts_with('~');
        is_own.then_some(id)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

    use super::*;

    #[test]
    fn the_names_of_tenants_do_not_overlap() {
        let (a, ab) = (Tenant::named("a").unwrap(), Tenant::named("ab").unwrap());
        let none = Tenant::single();
        assert_eq!(&*a.stored_name("x").unwrap(), "a/x");
        assert_eq!(a.id_of("a/x"), Some("x"));
        assert_eq!(a.id_of("ab/x"), None);
        assert_eq!(ab.id_of("a/x"), None);
        assert_eq!(none.id_of("a/x"), None);
        assert_eq!(none.id_of("x"), Some("x"));
        assert_eq!(a.id_of(&a.record_name("response", "r")), None);
        assert_eq!(none.id_of(&none.record_name("response", "r")), None);
        let record = a.record_name("response", "r");
        assert_eq!(a.record_id("response", &record), Some("r"));
        assert_eq!(a.record_id("task", &record), None);
        assert_eq!(ab.record_id("response", &record), None);
        assert_eq!(none.record_id("response", &record), None);
        assert_eq!(a.record_id("response", "a/r"), None);
    }

    #[test]
    fn identifiers_that_would_lead_out_of_a_tenant_are_refused() {
        let tenant = Tenant::named("a").unwrap();
        for id in [
            "",
            "../b",
            "b/c",
            "~response/r",
            "~r",
            "a\u{0}b",
            "a\nb",
            &"x".repeat(201),
        ] {
            tenant.stored_name(id).unwrap_err();
        }
        for name in ["", "a/b", "a b", "~", "é", &"x".repeat(65)] {
            Tenant::named(name).unwrap_err();
        }
    }
}
