//! A run that waits, and the decisions and answers that it was given.

use switchboard_core::Run;
use switchboard_core::approval::{Decision, DecisionError, Interruption};
use switchboard_core::people::PersonAnswer;
use switchboard_durable::Reply;

/// A run that waits, with the replies that it was given.
#[derive(Debug, Clone)]
pub(crate) struct WaitingRun {
    run: Run,
    replies: Vec<Reply>,
}

impl WaitingRun {
    pub(crate) fn new(run: Run) -> Self {
        Self {
            run,
            replies: Vec::new(),
        }
    }

    /// The calls and people that the run waits for.
    pub(crate) fn interruptions(&self) -> Vec<Interruption> {
        self.run.interruptions()
    }

    /// Decides a call.
    pub(crate) fn decide(
        &mut self,
        waiting: &Interruption,
        decision: Decision,
    ) -> Result<(), DecisionError> {
        self.run.decide(waiting, decision.clone())?;
        self.replies
            .push(Reply::Decision(waiting.clone(), decision));
        Ok(())
    }

    /// Answers for a person.
    pub(crate) fn answer(
        &mut self,
        waiting: &Interruption,
        answer: PersonAnswer,
    ) -> Result<(), DecisionError> {
        self.run.answer(waiting, answer.clone())?;
        self.replies.push(Reply::Answer(waiting.clone(), answer));
        Ok(())
    }

    /// Says something to the agent, beside decisions.
    pub(crate) fn add_input(&mut self, words: &str) -> Result<(), DecisionError> {
        self.run.add_input(words)?;
        self.replies.push(Reply::Input(words.to_owned()));
        Ok(())
    }

    /// The run with its decisions.
    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// The run with its decisions.
    pub(crate) fn into_run(self) -> Run {
        self.run
    }

    /// The replies, for a durable run.
    pub(crate) fn into_replies(self) -> Vec<Reply> {
        self.replies
    }
}
