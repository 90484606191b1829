//! The items of a conversation, and those that a run makes.

mod field_positions;
mod input;
mod item;
mod item_builder;
mod item_cache;
mod item_kind;
pub(crate) mod item_table;
mod pairing;
mod run_item;
mod run_item_json;

pub use input::Input;
pub use item::{InvalidItem, Item};
pub use item_builder::ItemBuilder;
pub(crate) use item_cache::{Search, Summary};
pub use item_kind::ItemKind;
pub(crate) use pairing::Pairing;
pub use run_item::{RunItem, RunItemKind, RunItems};

pub use crate::seq::{Chunk, Seq};

/// A list of items that shares its storage.
pub type Items = Seq<Item>;
