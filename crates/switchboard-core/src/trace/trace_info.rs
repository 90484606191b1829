//! The description of a trace, and the settings that it comes from.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::TraceId;

static DEFAULT_NAME: LazyLock<Arc<str>> = LazyLock::new(|| "Agent workflow".into());

/// A trace: one run, or several runs that an application puts into a [`Trace`](super::Trace).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TraceInfo {
    /// The identifier.
    pub id: TraceId,
    /// The name of the workflow.
    pub name: Arc<str>,
    /// The group of traces it belongs to, such as those of one chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Arc<str>>,
    /// Further details that the application sets.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// The settings of the trace of a run. A resumed run goes on in its trace, with what that has where a
/// setting is missing here.
///
/// ```
/// use switchboard_core::RunConfig;
/// use switchboard_core::trace::TraceSettings;
///
/// let config: RunConfig = RunConfig {
///     trace: TraceSettings {
///         workflow_name: Some("Support".into()),
///         group: Some("chat_7".into()),
///         ..TraceSettings::default()
///     },
///     ..RunConfig::default()
/// };
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceSettings {
    /// The name of the workflow; `Agent workflow` where there is none.
    pub workflow_name: Option<Arc<str>>,
    /// The group of traces it belongs to, such as those of one chat.
    pub group: Option<Arc<str>>,
    /// The identifier; a new one for each run where there is none.
    pub id: Option<TraceId>,
    /// Further details that the application sets.
    pub metadata: Map<String, Value>,
}

impl TraceSettings {
    /// The name of a run under these settings.
    pub(crate) fn name(&self, stored: Option<&TraceInfo>) -> Arc<str> {
        let name = self.workflow_name.as_ref();
        let name = name.or_else(|| stored.map(|stored| &stored.name));
        name.unwrap_or(&DEFAULT_NAME).clone()
    }

    /// The trace of a run under these settings, which may have had one before.
    pub(super) fn resolve(&self, stored: Option<&TraceInfo>) -> TraceInfo {
        let id = self.id.as_ref();
        let id = id.or_else(|| stored.map(|stored| &stored.id)).cloned();
        let group = self.group.as_ref();
        let group = group.or_else(|| stored.and_then(|stored| stored.group.as_ref()));
        let metadata = match stored {
            Some(stored) if self.metadata.is_empty() => &stored.metadata,
            _ => &self.metadata,
        };
        TraceInfo {
            id: id.unwrap_or_else(TraceId::generate),
            name: self.name(stored),
            group: group.cloned(),
            metadata: metadata.clone(),
        }
    }
}
