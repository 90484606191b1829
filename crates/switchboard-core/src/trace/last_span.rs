//! The last span of a kind.

use std::sync::Mutex;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::SpanId;
use crate::lock::lock;

/// A span that can be noted while its run is shared.
#[derive(Debug, Default)]
pub(crate) struct LastSpan(Mutex<Option<SpanId>>);

impl LastSpan {
    pub(crate) fn set(&self, span: SpanId) {
        *lock(&self.0) = Some(span);
    }

    pub(crate) fn get(&self) -> Option<SpanId> {
        *lock(&self.0)
    }

    pub(crate) fn is_none(&self) -> bool {
        self.get().is_none()
    }
}

impl Clone for LastSpan {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.get()))
    }
}

impl Serialize for LastSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LastSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let span = Option::deserialize(deserializer)?;
        Ok(Self(Mutex::new(span)))
    }
}
