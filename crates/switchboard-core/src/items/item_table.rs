//! Writing each item once: while a table is active, items are written as their index in it.
//!
//! A run refers to the same item from several lists. Storing the run collects its items in a table
//! (see `run/snapshot.rs`); reading it back turns the indexes into items again, shared as before.
//! The table is active for one thread and one call, since serde passes no state along.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Item, RunItem, RunItemKind};
use crate::tool::ToolInfo;

thread_local! {
    static ACTIVE: RefCell<Option<Active>> = const { RefCell::new(None) };
}

enum Active {
    Writing(ItemWriter),
    Reading(ItemReader),
}

/// The items of a run in the order in which they were first met.
#[derive(Default)]
pub(crate) struct ItemWriter {
    pub(crate) items: Vec<Item>,
    pub(crate) run_items: Vec<StoredRunItem>,
    item_at: HashMap<usize, usize>,
    run_item_at: HashMap<(usize, usize), usize>,
}

/// The items of a stored run.
pub(crate) struct ItemReader {
    items: Vec<Item>,
    run_items: Vec<RunItem>,
}

/// A run item as it is stored; its item is an index.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredRunItem {
    kind: RunItemKind,
    agent: Arc<str>,
    item: usize,
    occurrence: u32,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::json::on_its_own::optional"
    )]
    data: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<Arc<ToolInfo>>,
}

impl ItemWriter {
    /// Runs `write`, during which items are written as indexes, and returns the items.
    pub(crate) fn collect<T>(write: impl FnOnce() -> T) -> (T, Self) {
        let _scope = Scope::enter(Active::Writing(Self::default()));
        let written = write();
        match ACTIVE.take() {
            Some(Active::Writing(writer)) => (written, writer),
            _ => (written, Self::default()),
        }
    }

    fn index_of(&mut self, item: &Item) -> usize {
        *self.item_at.entry(item.address()).or_insert_with(|| {
            self.items.push(item.clone());
            self.items.len() - 1
        })
    }

    fn index_of_run_item(&mut self, made: &RunItem) -> usize {
        let item = self.index_of(made.item());
        // Copies that a filter changed share their key; the item tells them apart.
        *self
            .run_item_at
            .entry((made.key(), item))
            .or_insert_with(|| {
                self.run_items.push(StoredRunItem {
                    kind: made.kind().clone(),
                    agent: made.agent_name().clone(),
                    item,
                    occurrence: made.occurrence(),
                    data: made.data().cloned(),
                    tool: made.tool_arc().cloned(),
                });
                self.run_items.len() - 1
            })
    }
}

impl ItemReader {
    pub(crate) fn new(items: Vec<Item>, stored: Vec<StoredRunItem>) -> Result<Self, String> {
        let run_items = stored.into_iter().map(|stored| {
            let item = items.get(stored.item).cloned().ok_or_else(|| {
                format!("run item refers to item {}, which is missing", stored.item)
            })?;
            let made = RunItem::made(stored.kind, stored.agent, item, stored.occurrence);
            Ok(made.with_data(stored.data).with_tool(stored.tool))
        });
        let run_items = run_items.collect::<Result<_, String>>()?;
        Ok(Self { items, run_items })
    }

    /// Runs `read`, during which indexes are read as these items.
    pub(crate) fn resolve<T>(self, read: impl FnOnce() -> T) -> T {
        let _scope = Scope::enter(Active::Reading(self));
        read()
    }
}

/// Makes a table active until it is dropped, also by a panic. The one that was active before is
/// restored.
struct Scope(Option<Active>);

impl Scope {
    fn enter(table: Active) -> Self {
        Self(ACTIVE.replace(Some(table)))
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        ACTIVE.replace(self.0.take());
    }
}

/// The index under which `item` is written; `None` where no table is active.
pub(crate) fn index_of(item: &Item) -> Option<usize> {
    ACTIVE.with_borrow_mut(|active| match active {
        Some(Active::Writing(writer)) => Some(writer.index_of(item)),
        _ => None,
    })
}

/// The index under which a run item is written; `None` where no table is active.
pub(crate) fn index_of_run_item(made: &RunItem) -> Option<usize> {
    ACTIVE.with_borrow_mut(|active| match active {
        Some(Active::Writing(writer)) => Some(writer.index_of_run_item(made)),
        _ => None,
    })
}

/// Returns `true` while indexes are read as items.
pub(crate) fn is_reading() -> bool {
    ACTIVE.with_borrow(|active| matches!(active, Some(Active::Reading(_))))
}

/// The item of an index that was read.
pub(crate) fn item_at(index: usize) -> Result<Item, String> {
    element_at(index, "item", |reader| &reader.items)
}

/// The run item of an index that was read.
pub(crate) fn run_item_at(index: usize) -> Result<RunItem, String> {
    element_at(index, "run item", |reader| &reader.run_items)
}

fn element_at<T: Clone>(
    index: usize,
    name: &str,
    list: impl FnOnce(&ItemReader) -> &[T],
) -> Result<T, String> {
    let element = ACTIVE.with_borrow(|active| match active {
        Some(Active::Reading(reader)) => list(reader).get(index).cloned(),
        _ => None,
    });
    element.ok_or_else(|| format!("the run refers to {name} {index}, which is missing"))
}
