//! The context of realtime scenarios: the JSON of the case, the log, and the gates at which code waits.

use std::collections::HashSet;
use std::sync::Mutex;

use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::compare;
use crate::lock::lock;

/// The context of a scenario.
#[derive(Default)]
pub(crate) struct SessionContext {
    fields: Mutex<Map<String, Value>>,
    log: Mutex<Vec<Value>>,
    open_gates: Mutex<HashSet<String>>,
    opened: Notify,
}

impl SessionContext {
    pub(crate) fn new(fields: &Value) -> Self {
        let context = Self::default();
        context.set(fields);
        context
    }

    /// Sets fields of the context.
    pub(crate) fn set(&self, fields: &Value) {
        if let Some(fields) = fields.as_object() {
            lock(&self.fields).extend(fields.clone());
        }
    }

    /// Returns `true` if a field has this value.
    pub(crate) fn has(&self, field: &str, value: &Value) -> bool {
        let fields = lock(&self.fields);
        let known = fields.get(field).unwrap_or(&Value::Null);
        compare::plain(value, known).is_none()
    }

    /// Fills the fields into a template.
    pub(crate) fn fill(&self, template: &str, agent: &str) -> String {
        let mut text = template.replace("{agent}", agent);
        for (name, value) in lock(&self.fields).iter() {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            text = text.replace(&format!("{{{name}}}"), &value);
        }
        text
    }

    pub(crate) fn log(&self, entry: Value) {
        lock(&self.log).push(entry);
    }

    pub(crate) fn entries(&self) -> Vec<Value> {
        lock(&self.log).clone()
    }

    /// Opens a gate, for good.
    pub(crate) fn open(&self, gate: &str) {
        lock(&self.open_gates).insert(gate.to_owned());
        self.opened.notify_waiters();
    }

    /// Waits at a gate, if there is one. Code that is cancelled there is logged.
    pub(crate) async fn wait(&self, gate: Option<&str>, kind: &str, name: &str) {
        let Some(gate) = gate else {
            return;
        };
        let mut cancelled = Cancelled {
            context: self,
            entry: Some(json!({"cancelled": kind, "name": name})),
        };
        loop {
            let opened = self.opened.notified();
            if lock(&self.open_gates).contains(gate) {
                break;
            }
            opened.await;
        }
        cancelled.entry = None;
    }
}

/// Logs an entry when it is dropped.
struct Cancelled<'a> {
    context: &'a SessionContext,
    entry: Option<Value>,
}

impl Drop for Cancelled<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.context.log(entry);
        }
    }
}
