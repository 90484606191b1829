//! What a test may say of a run.

use std::fmt::Debug;

use serde_json::Value;

use super::Report;
use crate::run::HandoffRecord;

/// Assertions. Each panics where it does not hold.
impl Report {
    /// These agents had the conversation, in this order, the first one included.
    #[track_caller]
    pub fn assert_agents<'a>(&self, expected: impl IntoIterator<Item = &'a str>) -> &Self {
        let expected: Vec<&str> = expected.into_iter().collect();
        self.assert_same(
            "the agents that had the conversation",
            &expected,
            &self.agents(),
        )
    }

    /// One agent handed the conversation to the other, at least once.
    #[track_caller]
    pub fn assert_handoff(&self, from: &str, to: &str) -> &Self {
        self.handoffs_between(from, to);
        self
    }

    /// One agent handed the conversation to the other and sent this along, at least once.
    #[track_caller]
    pub fn assert_payload(&self, from: &str, to: &str, expected: impl Into<Value>) -> &Self {
        let expected = expected.into();
        let taken = self.handoffs_between(from, to);
        if !taken.iter().any(|taken| taken.payload == expected) {
            let sent: Vec<String> = taken.iter().map(|h| h.payload.to_string()).collect();
            let what = format!("what {from} sent to {to}");
            let sent = sent.join(" and ");
            self.fail(&what, &format_args!("{expected}"), &format_args!("{sent}"));
        }
        self
    }

    /// One agent asked to hand the conversation to the other and was refused, at least once.
    #[track_caller]
    pub fn assert_refused(&self, from: &str, to: &str) -> &Self {
        let mut refused = self.refused().into_iter();
        if !refused.any(|asked| *asked.from == *from && *asked.to == *to) {
            panic!(
                "{from} was not refused to hand the conversation to {to}\n{}",
                self.told()
            );
        }
        self
    }

    /// The agent's model called this tool, at least once.
    #[track_caller]
    pub fn assert_tool(&self, agent: &str, tool: &str) -> &Self {
        let used = self.tools().into_iter().filter(|used| used.agent == agent);
        let used: Vec<String> = used.map(|used| used.tool).collect();
        self.assert_among(&format!("the tools that {agent} called"), tool, &used)
    }

    /// The agent said this, as one of its messages.
    #[track_caller]
    pub fn assert_said(&self, agent: &str, text: &str) -> &Self {
        self.assert_among(&format!("what {agent} said"), text, &self.said_by(agent))
    }

    /// This is what the agent's model was shown when it was asked for the first time, each item
    /// [in short](super::describe_item). [`Report::shown_to`] has the later times.
    #[track_caller]
    pub fn assert_shown<'a>(
        &self,
        agent: &str,
        expected: impl IntoIterator<Item = &'a str>,
    ) -> &Self {
        let expected: Vec<&str> = expected.into_iter().collect();
        match self.shown_to(agent).first() {
            Some(shown) => self.assert_same(&format!("what {agent} was shown"), &expected, shown),
            None => panic!(
                "the report knows of no request for {agent}; give it all there are with \
                 Report::with_requests\n{}",
                self.told()
            ),
        }
    }

    /// The run ended with this output. One that is not text is compared as its JSON.
    #[track_caller]
    pub fn assert_output(&self, expected: &str) -> &Self {
        self.assert_same(
            "the final output",
            &Some(expected),
            &self.output().as_deref(),
        )
    }

    #[track_caller]
    fn handoffs_between(&self, from: &str, to: &str) -> Vec<HandoffRecord> {
        let all = self.handoffs().into_iter();
        let taken: Vec<_> = all.filter(|h| *h.from == *from && *h.to == *to).collect();
        if taken.is_empty() {
            panic!(
                "{from} did not hand the conversation to {to}\n{}",
                self.told()
            );
        }
        taken
    }

    #[track_caller]
    fn assert_among(&self, what: &str, expected: &str, found: &[String]) -> &Self {
        if !found.iter().any(|found| found == expected) {
            self.fail(what, &expected, found);
        }
        self
    }

    #[track_caller]
    fn assert_same<E: Debug, F: Debug + PartialEq<E>>(
        &self,
        what: &str,
        expected: &E,
        found: &F,
    ) -> &Self {
        if found != expected {
            self.fail(what, expected, found);
        }
        self
    }

    #[track_caller]
    fn fail(
        &self,
        what: &str,
        expected: &(impl Debug + ?Sized),
        found: &(impl Debug + ?Sized),
    ) -> ! {
        panic!(
            "not as expected: {what}\nexpected: {expected:#?}\nfound: {found:#?}\n{}",
            self.told()
        )
    }

    /// How the run went, to be told below what went wrong.
    fn told(&self) -> String {
        match self.to_string() {
            told if told.is_empty() => "In the run, nothing happened.".to_owned(),
            told => format!("In the run:\n{told}"),
        }
    }
}
