//! Properties of the library's filters that hold for every conversation, valid or not.

use proptest::prelude::*;
use switchboard_core::filters::{self, Filter};
use switchboard_core::handoff::HandoffInputData;
use switchboard_core::items::{ItemKind, RunItem, RunItemKind};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Item, RunContext};

/// A conversation, valid or not, whose items are all different.
#[derive(Debug, Clone)]
struct Conversation {
    items: Vec<Item>,
    /// The end of the history.
    history_end: usize,
    /// The start of this turn.
    turn_start: usize,
}

fn conversations() -> impl Strategy<Value = Conversation> {
    let call_type = prop_oneof![
        4 => Just(("function_call", "function_call_output")),
        1 => Just(("shell_call", "shell_call_output")),
        1 => Just(("computer_call", "computer_call_output")),
        1 => Just(("apply_patch_call", "apply_patch_call_output")),
        1 => Just(("custom_tool_call", "custom_tool_call_output")),
    ];
    let call_or_output =
        (call_type, 0..4_u8, any::<bool>()).prop_map(|((call, output), id, is_call)| {
            let kind = if is_call { call } else { output };
            format!(r#""type":"{kind}","call_id":"{id}""#)
        });
    let other = prop::sample::select(vec![
        r#""role":"user","content":"hi""#,
        r#""role":"assistant","content":"hm""#,
        r#""type":"reasoning","summary":[]"#,
        r#""type":"reasoning","summary":[]"#,
        r#""type":"mcp_call","id":"m""#,
        r#""type":"web_search_call","id":"w""#,
        r#""type":"tool_search_call","call_id":null"#,
        r#""type":"tool_search_output","call_id":null"#,
        r#""type":"hologram""#,
    ]);
    let item = prop_oneof![3 => call_or_output, 2 => other.prop_map(str::to_owned)];
    let items = prop::collection::vec(item, 0..24);
    (items, 0..24_usize, 0..24_usize).prop_map(|(items, one, other)| {
        let numbered = items.iter().enumerate();
        let items = numbered.map(|(n, json)| Item::from_json(format!(r#"{{"n":{n},{json}}}"#)));
        let items: Vec<Item> = items.map(Result::unwrap).collect();
        Conversation {
            history_end: one.min(other).min(items.len()),
            turn_start: one.max(other).min(items.len()),
            items,
        }
    })
}

impl Conversation {
    fn data(&self) -> HandoffInputData {
        let run_item = |item: &Item| RunItem::new(RunItemKind::Other, "A", item.clone());
        let run_items = |items: &[Item]| items.iter().map(run_item).collect::<Vec<_>>();
        HandoffInputData::new(
            self.items[..self.history_end].to_vec(),
            run_items(&self.items[self.history_end..self.turn_start]),
            run_items(&self.items[self.turn_start..]),
            RunContext::new(()),
        )
    }

    /// Returns what the next agent sees after the filter was applied once, and after twice.
    fn apply(&self, filter: &Filter) -> (Vec<Item>, Vec<Item>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let once = filter.apply(self.data()).await.unwrap();
            assert_eq!(once.new_items(), self.data().new_items());
            let twice = filter.apply(once.clone()).await.unwrap();
            (visible_items(&once), visible_items(&twice))
        })
    }
}

fn visible_items(data: &HandoffInputData) -> Vec<Item> {
    let new = data.input_items().unwrap_or_else(|| data.new_items());
    let run_items = data.pre_handoff_items().iter().chain(new);
    let history = data.history_items();
    let history = history.iter().cloned();
    history
        .chain(run_items.map(|run_item| run_item.item().clone()))
        .collect()
}

/// Returns `true` if every call has an output before its identifier is used again, and every output
/// has a call.
fn has_no_orphans(items: &[Item]) -> bool {
    let mut open = Vec::new();
    for item in items {
        if let Some(kind) = item.kind().output_kind() {
            let call = (kind, item.call_id());
            if call.1.is_some() && open.contains(&call) {
                return false;
            }
            open.push(call);
        } else if item.kind().is_output() {
            let call = (item.kind(), item.call_id());
            let Some(at) = open.iter().position(|other| *other == call) else {
                return false;
            };
            open.remove(at);
        }
    }
    open.is_empty()
}

/// Returns `true` if all reasoning is followed by the same item as before.
fn keeps_items_after_reasoning(before: &[Item], after: &[Item]) -> bool {
    let follower = |items: &[Item], reasoning: &Item| {
        let mut rest = items.iter().skip_while(|item| *item != reasoning);
        rest.find(|item| item.kind() != ItemKind::Reasoning)
            .cloned()
    };
    let reasoning = |item: &&Item| item.kind() == ItemKind::Reasoning;
    after.iter().filter(reasoning).all(|item| {
        let follower_now = follower(after, item);
        follower_now.is_some() && follower_now == follower(before, item)
    })
}

fn is_subsequence(part: &[Item], whole: &[Item]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|item| whole.any(|other| other == item))
}

fn trimming() -> impl Strategy<Value = (&'static str, Filter)> {
    let keep_first_and_last =
        |(first, last)| ("first and last", filters::keep_first_and_last(first, last));
    let budget = |tokens| {
        // Calls cost more than outputs, so that cuts fall everywhere.
        let count = |item: &Item| 1 + usize::from(item.kind().output_kind().is_some()) * 3;
        ("budget", filters::token_budget_by(tokens, count))
    };
    prop_oneof![
        (0..26_usize).prop_map(|count| ("last", filters::keep_last(count))),
        (0..12_usize, 0..12_usize).prop_map(keep_first_and_last),
        (0..40_usize).prop_map(budget),
        (0..2000_usize).prop_map(|tokens| ("tokens", filters::token_budget(tokens))),
        Just(()).prop_map(|()| ("reasoning", filters::drop_reasoning())),
        Just(()).prop_map(|()| ("redaction", filters::redact_pii())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_filter_leaves_no_orphans(conversation in conversations(), (name, filter) in trimming()) {
        let (once, twice) = conversation.apply(&filter);
        prop_assert!(has_no_orphans(&once), "{name} left {once:#?}");
        prop_assert!(keeps_items_after_reasoning(&conversation.items, &once), "{name} left {once:#?}");
        prop_assert!(is_subsequence(&once, &conversation.items), "{name} left {once:#?}");
        prop_assert_eq!(once, twice, "{} applied again", name);
    }

    #[test]
    fn a_filter_that_keeps_everything_drops_only_orphans(conversation in conversations()) {
        let (whole, _) = conversation.apply(&filters::keep_last(usize::MAX));
        let unpaired = |items: &[Item]| items.iter().filter(|item| {
            item.kind() != ItemKind::Reasoning
                && item.kind().output_kind().is_none()
                && !item.kind().is_output()
        }).count();
        prop_assert_eq!(unpaired(&whole), unpaired(&conversation.items));
        let valid = Conversation { history_end: 0, turn_start: 0, items: whole.clone() };
        prop_assert_eq!(valid.apply(&filters::keep_last(usize::MAX)).0, whole);
    }

    #[test]
    fn a_filter_that_allows_orphans_cuts_exactly(conversation in conversations(), count in 0..26_usize) {
        let (exact, _) = conversation.apply(&filters::keep_last(count).allow_orphans());
        let cut = conversation.items.len().saturating_sub(count);
        prop_assert_eq!(&exact[..], &conversation.items[cut..]);
    }

    #[test]
    fn a_summary_replaces_only_older_items(conversation in conversations(), keep_last in 0..26_usize) {
        let (whole, _) = conversation.apply(&filters::keep_last(usize::MAX));
        let writer = ScriptedModel::new().say("short").say("shorter");
        let (left, _) = conversation.apply(&filters::summarize(writer.clone(), keep_last));
        if writer.requests().is_empty() {
            prop_assert_eq!(left, conversation.items);
            return Ok(());
        }
        let kept = &left[1..];
        prop_assert!(has_no_orphans(kept) && keeps_items_after_reasoning(&conversation.items, kept), "{kept:#?}");
        let cut = conversation.items.len().saturating_sub(keep_last);
        let last = conversation.items[cut..].iter().filter(|item| whole.contains(item));
        prop_assert!(last.clone().all(|item| kept.contains(item)), "{kept:#?}");
    }

    #[test]
    fn a_note_is_not_repeated(conversation in conversations()) {
        let note = filters::note(|_: &HandoffInputData| "noted");
        let (once, twice) = conversation.apply(&note);
        prop_assert_eq!(&once[0], &Item::developer("noted"));
        prop_assert!(is_subsequence(&once[1..], &conversation.items));
        prop_assert_eq!(once, twice);
    }
}
