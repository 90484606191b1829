//! Stored responses: what `GET /v1/responses/ID` returns, and where a response with `previous_response_id` goes on.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_core::conversation::Expected;

use crate::error::ServiceError;
use crate::records::{NewRecord, RecordKind};
use crate::service::{Caller, Service};

/// A stored response.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ResponseRecord {
    pub(super) response: Value,
    /// The items of the request.
    pub(super) input: Vec<Value>,
    /// The conversation's identifier.
    pub(super) conversation: String,
    /// The position after the last entry of the response; `None` before its end.
    pub(super) next: Option<u64>,
    /// The process that has the run.
    #[serde(default)]
    pub(super) process: Option<String>,
}

impl ResponseRecord {
    /// Stores the response as it is now.
    pub(super) async fn save(
        &self,
        service: &Service,
        caller: &Caller,
        id: &str,
    ) -> Result<(), ServiceError> {
        let record = NewRecord {
            content: self,
            expected: Expected::Any,
            summary: None,
        };
        let saved = service.save_record(caller, RecordKind::Response, id, record);
        saved.await.map(drop)
    }

    /// Reads a response of the caller.
    pub(super) async fn load(
        service: &Service,
        caller: &Caller,
        id: &str,
    ) -> Result<Self, ServiceError> {
        let loaded = service.load_record(caller, RecordKind::Response, id);
        let found = loaded.await?.map(|(record, _)| record);
        found.ok_or_else(|| ServiceError::not_found(format!("there is no response {id:?}")))
    }

    /// The other process that has the run of a response that has not ended.
    pub(super) async fn running_elsewhere(
        &self,
        service: &Service,
    ) -> Result<Option<&str>, ServiceError> {
        let process = self.process.as_deref().filter(|process| {
            let is_here = **process == **service.process();
            self.next.is_none() && !is_here
        });
        match process {
            Some(process) if service.is_process_alive(process).await? => Ok(Some(process)),
            _ => Ok(None),
        }
    }

    /// Deletes a response of the caller. Its conversation stays.
    pub(super) async fn delete(
        service: &Service,
        caller: &Caller,
        id: &str,
    ) -> Result<(), ServiceError> {
        Self::load(service, caller, id).await?;
        let deleted = service.delete_record(caller, RecordKind::Response, id);
        deleted.await
    }
}

/// The run of a response.
pub(super) fn run_id(response: &str) -> String {
    response.replacen("resp_", "run_", 1)
}
