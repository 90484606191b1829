//! The trace of the run: beginning and ending it, the spans that other spans lie under, and errors.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Driver;
use crate::error::{Error, ErrorKind};
use crate::model::Usage;
use crate::run::{RunTrace, Step};
use crate::tool::ToolError;
use crate::trace::trace_handle::{OpenSpan, ResumedTrace, TraceEnd};
use crate::trace::{REDACTED, SpanData, SpanId};

/// The part of a run that a driver takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TraceScope {
    /// The rest of it. The trace ends with it, also if it is cancelled.
    Run,
    /// One step. The trace goes on with the next one.
    Step,
}

impl<C: Send + Sync + 'static> Driver<C> {
    /// Begins the trace, unless the run goes on in one, and the span of the run.
    pub(super) fn begin_trace(&mut self, scope: TraceScope) {
        let Some(info) = self.trace.info().cloned() else {
            return;
        };
        let stored = self.run.trace.as_ref();
        let name = self.config.trace.name(stored.map(|stored| &*stored.info));
        let is_ended = if self.is_inside_trace {
            true
        } else {
            let goes_on = stored.filter(|stored| stored.info == info);
            let resumed = goes_on.map(|stored| ResumedTrace {
                is_ended: stored.is_ended,
            });
            let has_begun = self.trace.begin(resumed);
            let is_ended = !has_begun && resumed.is_some_and(|trace| trace.is_ended);
            if !is_ended && scope == TraceScope::Run {
                self.trace_end = TraceEnd(self.trace.clone());
            }
            is_ended || scope == TraceScope::Run
        };
        let generation = stored.map(|stored| stored.generation.clone());
        self.run_mut().trace = Some(Box::new(RunTrace {
            info,
            is_ended,
            generation: generation.unwrap_or_default(),
        }));
        self.is_traced = true;
        if self.config.trace_tasks_and_turns {
            let usage = Usage::default();
            self.task_span = self
                .trace
                .span(self.root_span, || SpanData::Task { name, usage });
            self.task_span.count_usage_from(self.usage());
        }
    }

    /// Ends the spans, and the trace with the run.
    pub(super) fn leave_trace(&mut self, has_failed: bool) {
        if !std::mem::take(&mut self.is_traced) {
            return;
        }
        self.end_spans();
        self.count_usage_in_spans();
        self.task_span.end();
        self.trace_end = TraceEnd::default();
        let is_over = has_failed || matches!(self.run.step(), Step::Done(_));
        if is_over && self.run.trace.as_ref().is_some_and(|trace| !trace.is_ended) {
            self.trace.end();
            if let Some(trace) = &mut self.run_mut().trace {
                trace.is_ended = true;
            }
        }
    }

    /// Begins the span of a turn.
    pub(super) fn begin_turn_span(&mut self) {
        if !self.config.trace_tasks_and_turns {
            return;
        }
        self.turn_span = self.trace.span(self.agent_span.id(), || SpanData::Turn {
            turn: self.turn,
            agent: self.agent.name_arc().clone(),
            usage: Usage::default(),
        });
        if self.turn_span.is_open() {
            self.turn_span.count_usage_from(self.usage());
        }
    }

    /// The span that has the errors of a turn: its own, or that of the agent where turns have none.
    pub(super) fn span_of_turn(&mut self) -> &mut OpenSpan {
        if self.config.trace_tasks_and_turns {
            &mut self.turn_span
        } else {
            &mut self.agent_span
        }
    }

    /// Ends the span of a turn.
    pub(super) fn end_turn_span(&mut self) {
        self.count_usage_in_spans();
        self.turn_span.end();
    }

    /// Ends the spans of the turn and the agent.
    pub(super) fn end_spans(&mut self) {
        self.end_turn_span();
        self.agent_span.end();
    }

    /// Adds the usage so far to the spans of the turn and the run.
    pub(super) fn count_usage_in_spans(&mut self) {
        if !self.task_span.is_open() {
            return;
        }
        let usage = self.usage();
        self.turn_span.set_usage(usage);
        self.task_span.set_usage(usage);
    }

    fn usage(&self) -> Usage {
        *self.run.usage() + self.added_usage.get()
    }

    pub(super) fn parent_span(&self) -> Option<SpanId> {
        self.turn_span.id().or(self.agent_span.id())
    }

    /// Opens the agent's span unless it is open.
    pub(super) fn open_agent_span(&mut self) {
        if self.agent_span.is_open() {
            return;
        }
        let parent = self.task_span.id().or(self.root_span);
        self.agent_span = self.trace.span(parent, || SpanData::Agent {
            name: self.agent.name_arc().clone(),
            handoffs: Arc::default(),
            tools: Arc::default(),
            output_type: match self.agent.output_type() {
                None => Cow::Borrowed("str"),
                Some(output) => Cow::Owned(output.name().to_owned()),
            },
        });
    }

    /// The details of an error for a span.
    pub(super) fn error_data(&self, error: &impl std::fmt::Display) -> Value {
        let text = if self.config.trace_sensitive_data {
            error.to_string()
        } else {
            REDACTED.to_owned()
        };
        json!({"error": text})
    }

    pub(super) fn mark_failure(&mut self, error: &Error) {
        let cause = error.cause();
        let is_of_inner_run = cause.is_some_and(|cause| cause.is::<ToolError>());
        match error.kind() {
            // The inner run has marked its own agent, and the call is marked as failed.
            ErrorKind::InputGuardrail | ErrorKind::OutputGuardrail if is_of_inner_run => {}
            ErrorKind::MaxTurns if !is_of_inner_run => {
                let max = self.config.max_turns;
                let data = || json!({"max_turns": max});
                self.agent_span.fail_with("Max turns exceeded", data);
            }
            _ if error.is_guardrail() && !is_of_inner_run => {
                let name = || error.guardrail().map(|result| &*result.guardrail);
                let data = || json!({"guardrail": name()});
                // The agent has done nothing yet when an input guardrail trips.
                let span = match error.kind() {
                    ErrorKind::InputGuardrail => self.span_of_turn(),
                    _ => &mut self.agent_span,
                };
                span.fail_with("Guardrail tripwire triggered", data);
            }
            ErrorKind::ModelBehavior => self.span_of_turn().fail("The model broke the rules"),
            ErrorKind::Configuration => self
                .span_of_turn()
                .fail("The run is not configured to work"),
            _ => {
                let data = self.error_data(error);
                self.agent_span.fail_with("Error in agent run", || data);
            }
        }
    }
}
