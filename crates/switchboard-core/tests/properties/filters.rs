//! What holds for the library's filters and every conversation, sound or not.

use proptest::prelude::*;
use switchboard_core::filters::{self, Filter};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{HandoffInputData, Item, ItemKind, RunContext, RunItem, RunItemKind};

/// A conversation of any items, sound or not, each with a number of its own, and where the history
/// ends and this turn begins.
#[derive(Debug, Clone)]
struct Carried {
    items: Vec<Item>,
    history: usize,
    now: usize,
}

fn conversations() -> impl Strategy<Value = Carried> {
    let call_type = prop_oneof![
        4 => Just(("function_call", "function_call_output")),
        1 => Just(("shell_call", "shell_call_output")),
        1 => Just(("computer_call", "computer_call_output")),
        1 => Just(("apply_patch_call", "apply_patch_call_output")),
        1 => Just(("custom_tool_call", "custom_tool_call_output")),
    ];
    let half = (call_type, 0..4_u8, any::<bool>()).prop_map(|((call, output), id, is_call)| {
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
    let item = prop_oneof![3 => half, 2 => other.prop_map(str::to_owned)];
    let items = prop::collection::vec(item, 0..24);
    (items, 0..24_usize, 0..24_usize).prop_map(|(items, one, other)| {
        let numbered = items.iter().enumerate();
        let items = numbered.map(|(n, json)| Item::from_json(format!(r#"{{"n":{n},{json}}}"#)));
        let items: Vec<Item> = items.map(Result::unwrap).collect();
        Carried {
            history: one.min(other).min(items.len()),
            now: one.max(other).min(items.len()),
            items,
        }
    })
}

impl Carried {
    fn data(&self) -> HandoffInputData {
        let made = |items: &[Item]| {
            let made = items.iter();
            made.map(|item| RunItem::new(RunItemKind::Other, "A", item.clone()))
                .collect::<Vec<_>>()
        };
        HandoffInputData::new(
            self.items[..self.history].to_vec(),
            made(&self.items[self.history..self.now]),
            made(&self.items[self.now..]),
            RunContext::new(()),
        )
    }

    /// What the next agent sees once the filter has been applied, and once it has been twice.
    fn filtered(&self, filter: &Filter) -> (Vec<Item>, Vec<Item>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let once = filter.apply(self.data()).await.unwrap();
            assert_eq!(
                once.new_items(),
                self.data().new_items(),
                "the record is whole"
            );
            let seen = seen(&once);
            (seen, self::seen(&filter.apply(once).await.unwrap()))
        })
    }
}

fn seen(data: &HandoffInputData) -> Vec<Item> {
    let now = data.input_items().unwrap_or_else(|| data.new_items());
    let made = data.pre_handoff_items().iter().chain(now);
    let history = data.history_items();
    let made = made.map(|made| made.item().clone());
    history.iter().cloned().chain(made).collect()
}

/// Every call has an output after it before the same is called again, and every output a call.
fn is_whole(items: &[Item]) -> bool {
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

/// Reasoning is followed by what it was followed by.
fn keeps_what_reasoning_led_to(before: &[Item], after: &[Item]) -> bool {
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

fn is_part_in_order(part: &[Item], whole: &[Item]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|item| whole.any(|other| other == item))
}

fn trimming() -> impl Strategy<Value = (&'static str, Filter)> {
    let keep_first_and_last =
        |(first, last)| ("first and last", filters::keep_first_and_last(first, last));
    let budget = |tokens| {
        // Dear calls, cheap outputs: cuts fall everywhere.
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
    fn a_filter_takes_nothing_apart(carried in conversations(), (name, filter) in trimming()) {
        let (once, twice) = carried.filtered(&filter);
        prop_assert!(is_whole(&once), "{name} left {once:#?}");
        prop_assert!(keeps_what_reasoning_led_to(&carried.items, &once), "{name} left {once:#?}");
        prop_assert!(is_part_in_order(&once, &carried.items), "{name} left {once:#?}");
        prop_assert_eq!(once, twice, "{} applied again", name);
    }

    #[test]
    fn what_is_whole_stays_whole_where_it_all_fits(carried in conversations()) {
        let (whole, _) = carried.filtered(&filters::keep_last(usize::MAX));
        let of_kind = |items: &[Item]| items.iter().filter(|item| {
            item.kind() != ItemKind::Reasoning
                && item.kind().output_kind().is_none()
                && !item.kind().is_output()
        }).count();
        prop_assert_eq!(of_kind(&whole), of_kind(&carried.items));
        let sound = Carried { history: 0, now: 0, items: whole.clone() };
        prop_assert_eq!(sound.filtered(&filters::keep_last(usize::MAX)).0, whole);
    }

    #[test]
    fn a_filter_that_is_told_so_cuts_exactly(carried in conversations(), count in 0..26_usize) {
        let (exact, _) = carried.filtered(&filters::keep_last(count).allow_orphans());
        let cut = carried.items.len().saturating_sub(count);
        prop_assert_eq!(&exact[..], &carried.items[cut..]);
    }

    #[test]
    fn a_summary_loses_nothing_it_does_not_tell(carried in conversations(), keep_last in 0..26_usize) {
        let (whole, _) = carried.filtered(&filters::keep_last(usize::MAX));
        let writer = ScriptedModel::new().say("short").say("shorter");
        let (left, _) = carried.filtered(&filters::summarize(writer.clone(), keep_last));
        if writer.requests().is_empty() {
            prop_assert_eq!(left, carried.items);
            return Ok(());
        }
        let kept = &left[1..];
        prop_assert!(is_whole(kept) && keeps_what_reasoning_led_to(&carried.items, kept), "{kept:#?}");
        let cut = carried.items.len().saturating_sub(keep_last);
        let last = carried.items[cut..].iter().filter(|item| whole.contains(item));
        prop_assert!(last.clone().all(|item| kept.contains(item)), "{kept:#?}");
    }

    #[test]
    fn a_note_is_there_once(carried in conversations()) {
        let note = filters::note(|_: &HandoffInputData| "noted");
        let (once, twice) = carried.filtered(&note);
        prop_assert_eq!(&once[0], &Item::developer("noted"));
        prop_assert!(is_part_in_order(&once[1..], &carried.items));
        prop_assert_eq!(once, twice);
    }
}
