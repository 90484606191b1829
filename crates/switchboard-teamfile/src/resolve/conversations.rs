//! Checks the settings of conversations.

use super::Resolver;
use crate::diagnostics::Severity;
use crate::document::steps;
use crate::types::ValueSpec;

/// The beginnings of addresses of stores.
const STORES: [&str; 5] = [
    "sqlite:",
    "postgres://",
    "postgresql://",
    "redis://",
    "rediss://",
];

impl Resolver<'_> {
    pub(super) fn check_conversations(&mut self) {
        let spec = &self.spec.conversations;
        let help = "write sqlite:PATH, postgres://USER@HOST/DATABASE or redis://HOST, or { env = \"NAME\" }";
        match &spec.store {
            Some(ValueSpec::Text(address)) if address != "memory:" => {
                let path = steps!["conversations", "store"];
                let store = STORES.iter().find(|store| address.starts_with(**store));
                match store.map(|store| &address[store.len()..]) {
                    None => self.report("bad-store", path, "there is no such kind of store", help),
                    Some("") => {
                        let message = "this address of a store is incomplete";
                        self.report("bad-store", path, message, help);
                    }
                    Some(_) => {}
                }
            }
            _ => {}
        }
        if spec.compact_at.is_some() && self.spec.run.session_limit.is_some() {
            let message = "this has no effect beside session_limit of [run]";
            let path = steps!["conversations", "compact_at"];
            let problem = self.name_problem("no-effect", path, message);
            let help = "remove one of them: a summary needs the whole conversation";
            let problem = problem.severity(Severity::Warning).help(help);
            self.problems.add(problem);
        }
    }
}
