//! The teams that runs go on with.

use std::sync::Arc;

use switchboard_core::run::ContextSource;
use switchboard_core::{Agent, Runner, Team};

/// The number of times in a row that a step is tried again after failures that may pass.
const MAX_FAILURES: u32 = 8;

/// The number of interruptions of a step in a row after which it does not begin again.
const MAX_INTERRUPTIONS: u32 = 10;

/// The team of new runs, and older versions of it for the runs that began with them.
///
/// ```
/// use switchboard_core::conversation::Conversations;
/// use switchboard_core::{Agent, Runner};
/// use switchboard_durable::{DurableRunner, Embedded, Teams};
///
/// let old: Agent = Agent::new("Support");
/// let new: Agent = Agent::new("Support").instructions("Be brief.");
/// let teams = Teams::new(&new).version("2").previous("1", &old);
/// let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), teams);
/// ```
pub struct Teams<C = ()> {
    pub(crate) current: Runner<C, Arc<C>>,
    pub(crate) version: Option<String>,
    previous: Vec<(String, Runner<C, Arc<C>>)>,
    pub(crate) max_failures: u32,
    pub(crate) max_interruptions: u32,
}

impl<C> Teams<C> {
    /// Creates teams with one of no version: an agent, a team, or a [`Runner`] with the settings of runs.
    pub fn new(team: impl IntoTeams<C>) -> Self {
        team.into_teams()
    }

    /// Names the version of the team of new runs. A run goes on with the version that it began with. If this process has
    /// not that version, the run stops with an error that says so, and goes on when
    /// [`DurableRun::resume_as`](crate::DurableRun::resume_as) names another version, or with
    /// [`DurableRun::resume`](crate::DurableRun::resume) in a process that has it.
    ///
    /// Without versions, runs go on with the team of today, and stop where it does something else than they did.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Adds an older version, for the runs that began with it.
    #[must_use]
    pub fn previous(mut self, version: impl Into<String>, team: impl IntoTeams<C>) -> Self {
        let team = team.into_teams();
        self.previous.push((version.into(), team.current));
        self
    }

    /// Sets the number of times in a row that a step is tried again after failures that may pass, with growing pauses. The
    /// default is 8.
    #[must_use]
    pub fn retries(mut self, number: u32) -> Self {
        self.max_failures = number;
        self
    }

    /// Sets the number of times in a row that a step may be interrupted by the end of its process, on the embedded engine. Then
    /// the run stops ([`RunStatus::Stopped`](crate::RunStatus::Stopped)) and goes on when it is resumed, so that a step which ends
    /// its process does not end one after the other. After a third of them, the run pauses before the step begins again. The
    /// default is 10.
    #[must_use]
    pub fn interruptions(mut self, number: u32) -> Self {
        self.max_interruptions = number.max(1);
        self
    }

    /// The team of a run, or a sentence that says why there is none.
    pub(crate) fn of_version(&self, version: Option<&str>) -> Result<&Runner<C, Arc<C>>, String> {
        let (Some(version), Some(current)) = (version, self.version.as_deref()) else {
            return Ok(&self.current);
        };
        if version == current {
            return Ok(&self.current);
        }
        if let Some((_, team)) = self.previous.iter().find(|(known, _)| known == version) {
            return Ok(team);
        }
        let known = self.previous.iter().map(|(known, _)| known.as_str());
        let known: Vec<&str> = std::iter::once(current).chain(known).collect();
        Err(format!(
            "the run began with version \"{version}\" of the team, and this process has version {}. Resume it in a \
             process with that version, or resume it as another version",
            known.join(", ")
        ))
    }
}

/// A team, an agent, or a runner with the settings of runs.
pub trait IntoTeams<C> {
    /// The teams.
    fn into_teams(self) -> Teams<C>;
}

impl<C> IntoTeams<C> for Teams<C> {
    fn into_teams(self) -> Teams<C> {
        self
    }
}

impl IntoTeams<()> for &Agent<()> {
    fn into_teams(self) -> Teams<()> {
        Runner::new(self).into_teams()
    }
}

/// The first agent of a team gets the first message.
impl IntoTeams<()> for &Team<()> {
    fn into_teams(self) -> Teams<()> {
        let first = self.agents().first().cloned();
        Runner::new(&first.unwrap_or_else(|| Agent::new(""))).into_teams()
    }
}

impl<C, S: ContextSource<C>> IntoTeams<C> for Runner<C, S> {
    fn into_teams(self) -> Teams<C> {
        Teams {
            current: self.with_shared_context(),
            version: None,
            previous: Vec::new(),
            max_failures: MAX_FAILURES,
            max_interruptions: MAX_INTERRUPTIONS,
        }
    }
}

impl<C> std::fmt::Debug for Teams<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Teams")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
