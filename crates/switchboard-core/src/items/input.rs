//! The input of a run.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Item, Items};

/// The input of a run: a text of the user, or a whole conversation.
///
/// It is also the history of an agent during a handoff: text as long as it is only the text that the
/// run began with, items otherwise.
///
/// ```
/// use switchboard_core::{Input, Item};
///
/// let text: Input = "My bill is wrong".into();
/// let conversation: Input = vec![Item::user("Hi"), Item::assistant("Hello!")].into();
/// assert_eq!(text.items().len(), 1);
/// assert_eq!(conversation.items().len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A text of the user.
    Text(Arc<str>),
    /// A conversation.
    Items(Items),
}

impl Input {
    /// The text of the user's last message, if only instructions follow it. A message that was already
    /// answered belongs to an earlier turn.
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

    /// The input as items; text becomes one message of the user.
    pub fn items(&self) -> Items {
        match self {
            Self::Text(text) => vec![Item::input_message(text)].into(),
            Self::Items(items) => items.clone(),
        }
    }
}

impl_from! {
    Input {
        |text: &str| Self::Text(text.into()),
        |text: String| Self::Text(text.into()),
        |text: &String| Self::Text(text.as_str().into()),
        |item: Item| Self::Items(vec![item].into()),
        |items: Vec<Item>| Self::Items(items.into()),
        |items: Items| Self::Items(items),
        |items: &Items| Self::Items(items.clone()),
    }
}
