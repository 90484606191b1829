//! The entries of a conversation, and those a run makes.

mod head;
mod item;
mod item_cache;
mod kind;
mod pairing;
mod run_item;

use std::borrow::Cow;
use std::sync::Arc;

pub use item::{Building, InvalidItem, Item};
pub use item_cache::Fact;
pub(crate) use item_cache::{Search, Summary};
pub use kind::ItemKind;
pub(crate) use pairing::Pairing;
pub use run_item::{RunItem, RunItemKind, RunItems};
use serde::{Deserialize, Serialize};

use crate::seq::Seq;

/// A list of items that shares its storage.
pub type Items = Seq<Item>;

/// What a run starts from: the user's words, or a whole conversation.
///
/// It is also what an agent's history is during a handoff: text while it is still the words the
/// run began with, items otherwise.
///
/// ```
/// use switchboard_core::{Input, Item};
///
/// let words: Input = "My bill is wrong".into();
/// let conversation: Input = vec![Item::user("Hi"), Item::assistant("Hello!")].into();
/// assert_eq!(words.items().len(), 1);
/// assert_eq!(conversation.items().len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The words of the user.
    Text(Arc<str>),
    /// A conversation.
    Items(Items),
}

impl Input {
    /// What the user said last, where there is text and nothing but instructions comes after it:
    /// what was answered already, or acted upon, belongs to an earlier turn.
    ///
    /// ```
    /// use switchboard_core::{Input, Item};
    ///
    /// let mut items = vec![Item::user("Hi"), Item::assistant("Hello!"), Item::user("Help")];
    /// assert_eq!(Input::from(items.clone()).last_words().as_deref(), Some("Help"));
    /// items.truncate(2);
    /// assert_eq!(Input::from(items).last_words(), None);
    /// ```
    pub fn last_words(&self) -> Option<Cow<'_, str>> {
        let items = match self {
            Self::Text(text) => return Some(Cow::Borrowed(text)),
            Self::Items(items) => items,
        };
        let mut last = None;
        for item in items {
            match item.role().as_deref() {
                Some("user") => last = Some(item),
                Some("system" | "developer") => {}
                _ => last = None,
            }
        }
        last?.text()
    }

    /// The input as items: text becomes one message of the user.
    pub fn items(&self) -> Items {
        match self {
            Self::Text(text) => vec![Item::words_of_user(text)].into(),
            Self::Items(items) => items.clone(),
        }
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<&String> for Input {
    fn from(text: &String) -> Self {
        Self::Text(text.as_str().into())
    }
}

impl From<Item> for Input {
    fn from(item: Item) -> Self {
        Self::Items(vec![item].into())
    }
}

impl From<Vec<Item>> for Input {
    fn from(items: Vec<Item>) -> Self {
        Self::Items(items.into())
    }
}

impl From<Items> for Input {
    fn from(items: Items) -> Self {
        Self::Items(items)
    }
}

impl From<&Items> for Input {
    fn from(items: &Items) -> Self {
        Self::Items(items.clone())
    }
}

impl<T: Serialize> Serialize for Seq<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Seq<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}
