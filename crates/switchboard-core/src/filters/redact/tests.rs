//! Tests of redaction, by subject.

mod classes;
mod emails;
mod items;
mod phones;
mod searches;
mod work;

use std::cell::Cell;

use super::*;
use crate::context::RunContext;
use crate::handoff::HandoffInputData;

thread_local! {
    pub(super) static SEARCHED_ITEMS: Cell<usize> = const { Cell::new(0) };
    pub(super) static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// Counts the items that are searched while `work` runs.
fn count_searches(work: impl FnOnce()) -> usize {
    let before = SEARCHED_ITEMS.get();
    work();
    SEARCHED_ITEMS.get() - before
}

fn only_patterns() -> Redaction {
    Redaction::new().only([])
}

fn emails() -> Redaction {
    Redaction::new().only([Pii::Email])
}

fn all() -> Redaction {
    Redaction::new()
}

#[track_caller]
fn becomes(text: &str, expected: &str) {
    assert_eq!(all().text(text), expected, "of {text:?}");
}

#[track_caller]
fn stays(text: &str) {
    becomes(text, text);
}
