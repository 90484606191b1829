//! Assertions on a run.

use std::fmt::Debug;

use serde_json::Value;

use super::Report;
use crate::run::HandoffRecord;

/// Assertions. Each panics if it does not hold.
impl Report {
    /// Asserts that these agents had the conversation, in this order, beginning with the first.
    #[track_caller]
    pub fn assert_agents<'a>(&self, expected: impl IntoIterator<Item = &'a str>) -> &Self {
        let expected: Vec<&str> = expected.into_iter().collect();
        let what = "the agents that had the conversation";
        self.assert_same(what, &expected, &self.agents())
    }

    /// Asserts that one agent handed the conversation to the other, at least once.
    #[track_caller]
    pub fn assert_handoff(&self, from: &str, to: &str) -> &Self {
        self.handoffs_between(from, to);
        self
    }

    /// Asserts that one agent handed the conversation to the other with this payload, at least once.
    #[track_caller]
    pub fn assert_payload(&self, from: &str, to: &str, expected: impl Into<Value>) -> &Self {
        let expected = expected.into();
        let handoffs = self.handoffs_between(from, to);
        if !handoffs.iter().any(|handoff| handoff.payload == expected) {
            let found: Vec<String> = handoffs.iter().map(|h| h.payload.to_string()).collect();
            let found = found.join(" and ");
            let what = format!("the payload from {from} to {to}");
            self.fail(&what, &format_args!("{expected}"), &format_args!("{found}"));
        }
        self
    }

    /// Asserts that a handoff from one agent to the other was refused, at least once.
    #[track_caller]
    pub fn assert_refused(&self, from: &str, to: &str) -> &Self {
        let mut refused = self.refused().into_iter();
        if !refused.any(|handoff| *handoff.from == *from && *handoff.to == *to) {
            self.panic_with(&format!("no handoff from {from} to {to} was refused"));
        }
        self
    }

    /// Asserts that the agent's model called this tool, at least once.
    #[track_caller]
    pub fn assert_tool(&self, agent: &str, tool: &str) -> &Self {
        let calls = self.tools().into_iter().filter(|call| call.agent == agent);
        let called: Vec<String> = calls.map(|call| call.tool).collect();
        self.assert_contains(&format!("the tools that {agent} called"), tool, &called)
    }

    /// Asserts that one of the agent's messages has this text.
    #[track_caller]
    pub fn assert_said(&self, agent: &str, text: &str) -> &Self {
        self.assert_contains(
            &format!("the messages of {agent}"),
            text,
            &self.said_by(agent),
        )
    }

    /// Asserts that the first request for the agent had this input, its items
    /// [in short](super::describe_item). [`Report::shown_to`] returns the later ones too.
    #[track_caller]
    pub fn assert_shown<'a>(
        &self,
        agent: &str,
        expected: impl IntoIterator<Item = &'a str>,
    ) -> &Self {
        let expected: Vec<&str> = expected.into_iter().collect();
        match self.shown_to(agent).first() {
            Some(shown) => self.assert_same(&format!("what {agent} was shown"), &expected, shown),
            None => self.panic_with(&format!(
                "the report has no request for {agent}; add the requests with \
                 Report::with_requests"
            )),
        }
    }

    /// Asserts that the run ended with this output. An output that is not text is compared as JSON.
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
        let mut handoffs = self.handoffs();
        handoffs.retain(|handoff| *handoff.from == *from && *handoff.to == *to);
        if handoffs.is_empty() {
            self.panic_with(&format!("{from} did not hand the conversation to {to}"));
        }
        handoffs
    }

    #[track_caller]
    fn assert_contains(&self, what: &str, expected: &str, found: &[String]) -> &Self {
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
        self.panic_with(&format!(
            "not as expected: {what}\nexpected: {expected:#?}\nfound: {found:#?}"
        ))
    }

    /// Panics with a message and the transcript of the run.
    #[track_caller]
    fn panic_with(&self, message: &str) -> ! {
        match self.to_string() {
            transcript if transcript.is_empty() => {
                panic!("{message}\nIn the run, nothing happened.")
            }
            transcript => panic!("{message}\nIn the run:\n{transcript}"),
        }
    }
}
