//! The names under which DBOS has runs.

use crate::record::RunRecord;

/// The names under which DBOS has the runs of a team. Those of another application or team differ, so that no process gets
/// runs that it cannot execute.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) workflow: String,
    pub(super) version: String,
    /// The queue for runs that no process has.
    pub(super) queue: String,
    /// The start of the identifiers of workflows, before the names of logs.
    pub(super) prefix: String,
}

impl Names {
    pub(super) fn new(application: &str, team: Option<&str>, version: &str) -> Self {
        // Applications have no dots in their names, and what follows begins after the only slash.
        let team = team.map(|team| format!(".{}", team.replace('%', "%25").replace('/', "%2F")));
        let team = team.unwrap_or_default();
        Self {
            workflow: format!("switchboard_run{team}"),
            version: format!("{application}{team}/{version}"),
            queue: format!("{application}{team}/runs"),
            prefix: format!("{application}{team}/"),
        }
    }

    pub(super) fn workflow_id(&self, run: &RunRecord) -> String {
        format!("{}{}", self.prefix, run.log_name())
    }
}
