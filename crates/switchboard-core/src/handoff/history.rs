//! Nested history: the conversation so far as a summary in front of the next agent.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::HandoffInputData;
use super::owned::Owned;
use super::summary::{self, Begun};
use crate::items::{Item, ItemKind, Items, RunItem};

/// The lines around a nested history. They belong to a run, not to the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryMarkers {
    /// The line before the records.
    pub start: Cow<'static, str>,
    /// The line after them.
    pub end: Cow<'static, str>,
}

impl Default for HistoryMarkers {
    fn default() -> Self {
        Self {
            start: "<CONVERSATION HISTORY>".into(),
            end: "</CONVERSATION HISTORY>".into(),
        }
    }
}

/// Makes the history the next agent sees out of the whole transcript.
#[derive(Clone)]
pub struct HistoryMapper(Arc<dyn Fn(Vec<Item>) -> Vec<Item> + Send + Sync>);

impl HistoryMapper {
    /// A mapper.
    pub fn new(map: impl Fn(Vec<Item>) -> Vec<Item> + Send + Sync + 'static) -> Self {
        Self(Arc::new(map))
    }

    fn map(&self, transcript: Vec<Item>) -> Vec<Item> {
        (self.0)(transcript)
    }
}

impl fmt::Debug for HistoryMapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HistoryMapper")
    }
}

/// One assistant message that summarises a transcript: what a mapper can fall back on.
pub fn default_history_mapper(transcript: &[Item], markers: &HistoryMarkers) -> Vec<Item> {
    vec![summary::write(transcript, markers)]
}

/// Puts the conversation so far into summaries for the next agent.
///
/// Messages of the current turn stay as they are, between summaries of what came before and
/// after; calls, outputs and reasoning are in the summaries only. A summary that is already in
/// the history is opened again, so nesting twice does not nest twice. With a mapper, what it
/// returns for the whole transcript is the history.
///
/// The new items stay as they are for the session; the next agent sees the history alone.
/// A summary hides nothing: arguments and outputs of tools are in it. Filter before, or filter
/// the result, where something must not be passed on.
pub fn nest_handoff_history<C>(
    data: HandoffInputData<C>,
    mapper: Option<&HistoryMapper>,
    markers: &HistoryMarkers,
) -> HandoffInputData<C> {
    let history = data.history_items();
    if let Some(mapper) = mapper {
        let mut transcript = flattened(&history, markers);
        let made = data.pre_handoff_items().iter().chain(data.new_items());
        transcript.extend(made.map(RunItem::to_input_item));
        let history = mapper.map(transcript).into();
        return data.nested(history, Vec::new());
    }
    let before = data.pre_handoff_items().iter();
    let before = before.map(|made| (made, stays_from_before(made.item())));
    let now = data.new_items().iter();
    let now = now.map(|made| (made, stays_from_now(made.item())));

    // Only the first summary's records keep their numbers.
    let begun = history.iter().next();
    let begun = begun.and_then(|first| Begun::with(first, markers));
    let mut ordered = Ordered {
        history: Vec::new(),
        owned: Vec::new(),
        pending: flattened(history.iter().skip(usize::from(begun.is_some())), markers),
        begun,
        markers,
    };
    for (made, stays) in before.chain(now) {
        if stays {
            ordered.keep(made);
        } else {
            ordered.pending.push(made.to_input_item());
        }
    }
    let (history, owned) = ordered.finish();
    data.nested(history, owned)
}

/// Summaries and kept messages in the order of the conversation.
struct Ordered<'a> {
    history: Vec<Item>,
    owned: Vec<Owned>,
    /// What the next summary begins with, and what else is in it.
    begun: Option<Begun<'a>>,
    pending: Vec<Item>,
    markers: &'a HistoryMarkers,
}

impl Ordered<'_> {
    fn keep(&mut self, made: &RunItem) {
        self.summarise();
        let item = made.to_input_item();
        self.owned.push(Owned {
            input_item: item.clone(),
            run_item: made.clone(),
        });
        self.history.push(item);
    }

    fn summarise(&mut self) {
        let begun = self.begun.take();
        if begun.is_some() || !self.pending.is_empty() || self.history.is_empty() {
            let summary = summary::write_on(begun.as_ref(), &self.pending, self.markers);
            self.history.push(summary);
            self.pending.clear();
        }
    }

    fn finish(mut self) -> (Items, Vec<Owned>) {
        self.summarise();
        (self.history.into(), self.owned)
    }
}

/// The history with earlier summaries opened.
pub(super) fn flattened<'a>(
    history: impl IntoIterator<Item = &'a Item>,
    markers: &HistoryMarkers,
) -> Vec<Item> {
    let history = history.into_iter();
    let mut flat = Vec::with_capacity(history.size_hint().0);
    for item in history {
        match summary::read(item, markers) {
            Some(items) => flat.extend(items),
            None => flat.push(item.without_internal_fields()),
        }
    }
    flat
}

/// Whether an item of an earlier turn stays outside the summary.
fn stays_from_before(item: &Item) -> bool {
    !belongs_to_program(item)
        && item.role().is_none_or(|role| role != "assistant")
        && !is_only_for_summary(item)
}

/// Whether an item of this turn stays outside the summary.
fn stays_from_now(item: &Item) -> bool {
    !belongs_to_program(item)
        && (item.role().is_some_and(|role| !role.is_empty()) || !is_only_for_summary(item))
}

fn is_only_for_summary(item: &Item) -> bool {
    matches!(
        item.kind(),
        ItemKind::FunctionCall | ItemKind::FunctionCallOutput | ItemKind::Reasoning
    )
}

fn belongs_to_program(item: &Item) -> bool {
    if matches!(item.kind(), ItemKind::Program | ItemKind::ProgramOutput) {
        return true;
    }
    // Only calls and their outputs have a caller; looking for one in every item would cost.
    item.kind() != ItemKind::Message
        && item
            .field("caller")
            .and_then(|caller| serde_json::from_str::<serde_json::Value>(caller).ok())
            .is_some_and(|caller| caller["type"] == "program")
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::context::RunContext;

    thread_local! {
        /// How many records were read.
        pub(in crate::handoff) static READ: Cell<usize> = const { Cell::new(0) };
    }

    /// The history after a turn that made these items, and how many records were read for it.
    fn nested(history: Items, made: &[Item], markers: &HistoryMarkers) -> (Items, usize) {
        nested_after(history, &[], made, markers)
    }

    /// The same where the run had made items before that turn.
    fn nested_after(
        history: Items,
        before: &[Item],
        made: &[Item],
        markers: &HistoryMarkers,
    ) -> (Items, usize) {
        let run_items = |items: &[Item]| -> Vec<RunItem> {
            let items = items.iter();
            let items = items.map(|item| RunItem::new(RunItem::kind_of(item), "A", item.clone()));
            items.collect()
        };
        let (before, made) = (run_items(before), run_items(made));
        let data = HandoffInputData::new(history, before, made, RunContext::new(()));
        let read = READ.get();
        let history = nest_handoff_history(data, None, markers).history_items();
        (history, READ.get() - read)
    }

    /// The same items, of which nothing is known yet.
    fn read_anew(items: &Items) -> Items {
        let anew = items
            .iter()
            .map(|item| Item::from_json(item.as_json()).unwrap());
        anew.collect()
    }

    fn handoff(n: usize) -> [Item; 2] {
        let id = format!("c{n}");
        let call = Item::function_call(&id, "transfer", "{}");
        [
            call,
            Item::function_call_output(&id, r#"{"assistant":"B"}"#),
        ]
    }

    #[test]
    fn a_summary_is_gone_on_with_and_not_read_again() {
        let markers = HistoryMarkers::default();
        // White space around a message is lost in reading.
        let said = |n: usize| match n % 3 {
            0 => Item::user(format!(" \t\u{a0}This is number {n}.")),
            1 => Item::user(format!("This is number {n}. \t")),
            _ => Item::user(format!("This is number {n}.")),
        };
        let mut history: Items = (0..1000).map(said).collect();
        for n in 0..5 {
            let slowly = nested(read_anew(&history), &handoff(n), &markers);
            let (next, read) = nested(history, &handoff(n), &markers);
            assert_eq!((read, slowly.1), (0, if n == 0 { 0 } else { 1000 + 2 * n }));
            assert_eq!(next, slowly.0);
            history = next;
        }
        let text = history.iter().next().unwrap().text().unwrap().into_owned();
        assert!(
            text.contains("\n1000. user: This is number 999.\n1001. {"),
            "{text}"
        );
        let unchanged = nested(history.clone(), &[Item::assistant("Hm.")], &markers).0;
        assert!(
            unchanged
                .iter()
                .next()
                .unwrap()
                .ptr_eq(history.iter().next().unwrap())
        );
    }

    #[test]
    fn a_summary_between_other_markers_is_read() {
        let outer = HistoryMarkers {
            start: "<H>\n1. user: x".into(),
            end: "2. user: y\n</H>".into(),
        };
        let inner = HistoryMarkers {
            start: "<H>".into(),
            end: "</H>".into(),
        };
        let history = nested(Items::from(vec![Item::user("Hi")]), &handoff(1), &outer).0;
        let slowly = nested(read_anew(&history), &handoff(2), &inner).0;
        let (next, read) = nested(history, &handoff(2), &inner);
        assert_eq!((next, read), (slowly, 5));
    }

    #[test]
    fn what_is_not_written_the_same_way_twice_is_read() {
        let named = |name| Item::named_message("user", name, "x");
        let json = |json: &str| Item::from_json(json).unwrap();
        let copied = [
            named("A"),
            named(")"),
            named("A b) \u{e9}\"\\"),
            Item::user("1. user (A): {x}"),
            Item::user(" \t\u{1f}\u{3000}"),
            json(r#"{"role":"user","content":"\ud800\n"}"#),
            json(r#"{"role":"user","content":[1], "created_by":1,"provider_data":2}"#),
            json(r#"{"type":"x","y":"\ud800\u2028"}"#),
        ];
        let read = [
            named("A:b"),
            named("A(b"),
            named(" A"),
            named("A\u{a0}"),
            named("A\u{b}b"),
            named("A\u{2028}b"),
            Item::user("a\u{85}b"),
            Item::user("a\u{1c}"),
            Item::message("tool", "{}"),
            Item::message("user ", "x"),
            json("{\"type\":\"x\",\n\"y\":1}"),
            json(r#"{"type":"x","y":"\u2028"}"#),
            // No `Value` holds this, so it stays as it is.
            json("{\"type\":\"x\",\"y\":\"\\ud800\u{2028}\"}"),
        ];
        let markers = HistoryMarkers::default();
        let copied = copied.into_iter().map(|item| (item, true));
        for (item, is_copied) in copied.chain(read.into_iter().map(|item| (item, false))) {
            let history = vec![item.clone(), Item::user("Hi")];
            let history = nested(history.into(), &handoff(1), &markers).0;
            let slowly = nested(read_anew(&history), &handoff(2), &markers).0;
            let (next, read) = nested(history, &handoff(2), &markers);
            assert_eq!((next, read == 0), (slowly, is_copied), "{item:?}");
        }
    }

    /// Markers of which each could be taken for something else.
    fn odd_markers(which: usize) -> HistoryMarkers {
        let markers = |start: &'static str, end: &'static str| HistoryMarkers {
            start: start.into(),
            end: end.into(),
        };
        match which {
            0..4 => HistoryMarkers::default(),
            4 => markers("", ""),
            5 => markers("\n", "\n"),
            6 => markers("<H>", "<H>"),
            7 => markers("<H>\n1. user: x", "2. user: y\n<H>"),
            _ => markers(" \u{2028}1. \"\\\u{1}\r", "\r3. \u{85}"),
        }
    }

    /// An item that says this in one of many forms.
    fn item_of(said: &str, form: usize) -> Item {
        let quoted = serde_json::to_string(said).unwrap();
        let inside = &quoted[1..quoted.len() - 1];
        let json = |json: String| Item::from_json(json).unwrap();
        match form {
            0 => Item::user(said),
            1 => Item::named_message("user", said, "x"),
            2 => Item::function_call("c", "f", said),
            3 => Item::output_message("m", said),
            4 => json(format!("{{\n \"type\": \"x\",\r\n \"y\": {quoted}}}")),
            5 => json(format!(
                r#"{{"type":"x","created_by":1,"provider_data":{quoted}}}"#
            )),
            6 => json(format!(r#"{{"role":"user","content":"\u2028\/{inside}"}}"#)),
            7 => json(format!(r#"{{"type":"x","y":"\u2028\u00e9","z":{quoted}}}"#)),
            8 => Item::message(said, "x"),
            9 => Item::message("tool", said),
            10 => json(format!(
                r#"{{"role":"developer","provider_data":{quoted},"x":2}}"#
            )),
            11 => json(format!(
                r#"{{"role":"user","content":[{quoted}],"provider_data":{quoted}, "created_by":{quoted}}}"#
            )),
            12 => json(format!(
                r#"{{"role":"user","content":"\ud800{inside}\udfff"}}"#
            )),
            13 => json(format!(
                r#"{{"role":"user","content":[1],"c\u006fntent":{quoted},"provider_data":1}}"#
            )),
            14 => json(format!(
                r#"{{"type":"x","\u0063reated_by":1,"provider_dat\u0061":2,"\u0072ole":[{quoted}]}}"#
            )),
            15 => json(format!(
                r#"{{"type":"x","\ud800":{quoted},"provider_data":1}}"#
            )),
            _ => Item::message("system", said.trim()),
        }
    }

    proptest! {
        #[test]
        fn what_is_copied_is_what_would_be_read_and_written(
            said in prop::collection::vec(
                "([ -~]{0,20}|[\n\r\t\"\\\\\u{1}\u{b}\u{1c}\u{1f}\u{85}\u{a0}\u{2028}é账“ :().{}]|1\\. |٣\\.){0,4}", 1..12,
            ),
            forms in prop::collection::vec(0..17_usize, 12),
            // Most summaries of odd items cannot be copied, so they are all, one or none.
            odd in prop::sample::select(vec![12, 1, 0]),
            turns in prop::collection::vec((0..4_usize, 0..3_usize, 0..9_usize, any::<bool>()), 1..5),
        ) {
            let item = |(at, (said, form)): (usize, (&String, &usize))| match form % 3 {
                _ if at < odd => item_of(said, *form),
                0 => item_of("\"{x}\") 1. é\\", 1),
                1 => Item::function_call_output("c", "{\"said\":\"\\n\"}"),
                _ => item_of(&said.replace(|c: char| c.is_control() || c == '\u{2028}', " "), 0),
            };
            let items: Vec<Item> = said.iter().zip(&forms).enumerate().map(item).collect();
            let mut made = items.iter();
            let mut history: Items = made.by_ref().take(items.len() / 2).cloned().collect();
            let mut slowly = history.clone();
            let mut markers = HistoryMarkers::default();
            for (now, before, which, is_saved) in turns {
                let before: Vec<Item> = made.by_ref().take(before).cloned().collect();
                let new: Vec<Item> = made.by_ref().take(now).cloned().chain(handoff(now)).collect();
                if which > 0 {
                    markers = odd_markers(which);
                }
                if is_saved && now == 0 {
                    history = read_anew(&history);
                }
                history = nested_after(history, &before, &new, &markers).0;
                slowly = nested_after(read_anew(&slowly), &before, &new, &markers).0;
                prop_assert_eq!(&history, &slowly);
            }
        }
    }
}
