//! Stored responses: what `GET /v1/responses/ID` returns, and where a response with `previous_response_id` goes on.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_core::conversation::{Expected, Revision};

use crate::error::{ServiceError, ServiceErrorKind};
use crate::records::{NewRecord, RecordKind};
use crate::service::{Caller, Service};

/// The number of times that a response is read while others change it.
const LOAD_ATTEMPTS: usize = 8;

/// A stored response.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ResponseRecord {
    pub(super) response: Value,
    /// The items of the request.
    pub(super) input: Vec<Value>,
    /// The conversation's identifier.
    pub(super) conversation: String,
    /// The position after the last entry of the response; `None` before its end, 0 if nothing of it was stored.
    pub(super) next: Option<u64>,
    /// Set if the conversation goes with the run.
    #[serde(default)]
    pub(super) is_temporary: bool,
    /// The process that has the run.
    #[serde(default)]
    pub(super) process: Option<String>,
}

impl ResponseRecord {
    /// Stores the response as it is now. Returns its revision; `None` if it is not as expected.
    pub(super) async fn save(
        &self,
        service: &Service,
        caller: &Caller,
        id: &str,
        expected: Expected,
    ) -> Result<Option<Revision>, ServiceError> {
        let record = NewRecord {
            content: self,
            expected,
            summary: None,
        };
        let saved = service.save_record(caller, RecordKind::Response, id, record);
        saved.await
    }

    /// Stores the response as it is after its run, unless it was deleted or changed meanwhile.
    pub(super) async fn end(
        mut self,
        service: &Service,
        caller: &Caller,
        response: Value,
        revision: Revision,
    ) -> Result<(), ServiceError> {
        let conversation = service.conversation(caller, &self.conversation)?;
        let head = conversation.head().await;
        let head = head.map_err(|error| ServiceError::of_store(&error))?;
        self.next = Some(head.map_or(0, |head| head.revision.next));
        self.response = response;
        let id = self.response["id"].as_str().unwrap_or_default();
        let saved = self.save(service, caller, id, Expected::At(revision));
        saved.await.map(drop)
    }

    /// Reads a response of the caller. One whose run has ended with its process has failed.
    pub(super) async fn load(
        service: &Service,
        caller: &Caller,
        id: &str,
    ) -> Result<Self, ServiceError> {
        let missing = || ServiceError::not_found(format!("there is no response {id:?}"));
        for _ in 0..LOAD_ATTEMPTS {
            let loaded = service.load_record(caller, RecordKind::Response, id);
            let (mut record, revision): (Self, Revision) = loaded.await?.ok_or_else(missing)?;
            if !record.is_lost(service, caller, id).await? {
                return Ok(record);
            }
            let mut response = record.response.clone();
            response["status"] = "failed".into();
            response["error"] =
                json!({"code": "server_error", "message": "the service was restarted meanwhile"});
            record.process = None;
            // Read again: another reader may have been faster.
            record.end(service, caller, response, revision).await?;
        }
        let message = "the response is being changed; try again";
        Err(ServiceError::new(ServiceErrorKind::Conflict, message))
    }

    /// Returns `true` if the response has not ended, and no process works on it.
    async fn is_lost(
        &self,
        service: &Service,
        caller: &Caller,
        id: &str,
    ) -> Result<bool, ServiceError> {
        let run = service.run(caller, &run_id(id));
        let is_here = run.is_ok_and(|run| run.is_under_way());
        Ok(self.next.is_none() && !is_here && self.running_elsewhere(service).await?.is_none())
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
        let missing = || ServiceError::not_found(format!("there is no response {id:?}"));
        let loaded = service.load_record::<Self>(caller, RecordKind::Response, id);
        loaded.await?.ok_or_else(missing)?;
        let deleted = service.delete_record(caller, RecordKind::Response, id);
        deleted.await
    }
}

/// The run of a response.
pub(super) fn run_id(response: &str) -> String {
    response.replacen("resp_", "run_", 1)
}

/// The response of a run.
pub(super) fn response_id(run: &str) -> String {
    run.replacen("run_", "resp_", 1)
}
