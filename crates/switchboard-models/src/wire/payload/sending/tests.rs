//! That blocks make up what was noted.

use proptest::prelude::*;
use switchboard_core::__private::{Form, Usual};
use switchboard_core::Items;

use super::*;
use crate::wire::payload::Draft;

/// Items as they stand, and one that is a call with what follows it.
fn in_pairs(block: &mut Vec<u8>, items: &[Item], after: Option<&Item>) -> usize {
    let mut at = 0;
    while at < items.len() && (at == 0 || !is_full(block)) {
        if at > 0 {
            block.push(b',');
        }
        block.extend_from_slice(items[at].as_json().as_bytes());
        at += 1;
        if let Some(next) = items.get(at).or(after)
            && items[at - 1].call_id().is_some()
        {
            block.push(b'+');
            block.extend_from_slice(next.as_json().as_bytes());
            at += 1;
        }
    }
    at
}

#[test]
fn what_was_taken_back_is_not_sent() {
    let items: Items = vec![Item::user("Hi"), Item::user("Ho")].into();
    let mut draft = Draft::of(&items, as_they_are);
    draft.json.push(b'<');
    let before = draft.end();
    draft.all();
    draft.back_to(before);
    draft.json.push(b'>');
    let payload = draft.finish();
    assert_eq!(payload.json(), b"<>");
    assert_eq!(Sending::new(payload).size_hint().exact(), Some(2));
}

#[test]
fn what_is_not_as_long_as_was_noted_is_not_sent() {
    let items: Items = vec![Item::user("Hi")].into();
    let length = items[0].as_json().len();
    let sent = |noted| {
        let mut draft = Draft::of(&items, as_they_are);
        draft.run(0, 1, noted, true);
        let mut sending = Sending::new(draft.finish());
        let first = sending.next_block().map(|block| block.is_some());
        (first, sending.next_block(), sending.is_end_stream())
    };
    assert_eq!(sent(length), (Ok(true), Ok(None), true));
    assert_eq!(sent(length + 7), (Ok(true), Err(WrongLength), true));
    assert_eq!(sent(length - 1), (Err(WrongLength), Ok(None), true));
}

/// Wherever a block ends, also right before the comma between two stretches.
#[test]
fn blocks_may_end_anywhere() {
    for length in 0..3 * BLOCK {
        let mut items: Items = vec![Item::user("x".repeat(length)), Item::user("a")].into();
        let _shared = items.clone();
        items.extend([Item::user("b"), Item::user("c")]);
        let mut draft = Draft::of(&items, as_they_are);
        draft.all();
        let list: Vec<&str> = items.iter().map(Item::as_json).collect();
        let expected = format!("[{}]", list.join(","));
        assert_eq!(draft.finish().json(), expected.as_bytes(), "{length}");
    }
}

proptest! {
    #[test]
    fn blocks_make_up_the_whole(
        parts in prop::collection::vec(
            (
                prop_oneof![4 => 0usize..BLOCK, 1 => BLOCK..3 * BLOCK],
                any::<bool>(),
                prop_oneof![3 => Just(0), 1 => 0usize..300],
            ),
            0..14,
        ),
    ) {
        let mut items = Items::new();
        let mut shared = Vec::new();
        for (length, is_pair, _) in &parts {
            let mut list = Vec::new();
            if *is_pair { list.push(Item::function_call("c", "n", &"x".repeat(*length))) } else { list.push(Item::user("x".repeat(*length))) }
            if *is_pair {
                list.push(Item::user("next"));
            }
            // Pairs may lie in one stretch or in two.
            for item in list {
                if length % 3 > 0 {
                    shared.push(items.clone());
                }
                items.extend([item]);
            }
        }
        let mut draft = Draft::of(&items, in_pairs);
        let (mut place, mut expected) = (0, Vec::new());
        for (_, is_pair, between) in parts {
            if between > 0 {
                draft.json.extend(std::iter::repeat_n(b'-', between));
                expected.extend(std::iter::repeat_n(b'-', between));
            }
            if place > 0 {
                expected.push(b',');
            }
            let start = expected.len();
            let mut one = Vec::new();
            let count = in_pairs(&mut one, &[items[place].clone()], items.get(place + 1));
            expected.extend(one);
            prop_assert_eq!(count == 2, is_pair);
            draft.run(place, count, expected.len() - start, place == 0);
            place += count;
        }
        let payload = draft.finish();
        prop_assert_eq!(payload.0.length, expected.len());
        let mut sending = Sending::new(payload.clone());
        prop_assert_eq!(sending.size_hint().exact(), Some(expected.len() as u64));
        let mut sent = Vec::new();
        while let Some(block) = sending.next_block().unwrap() {
            prop_assert!(!block.is_empty());
            sent.extend_from_slice(&block);
        }
        prop_assert!(sending.is_end_stream());
        prop_assert_eq!(sent, expected);
    }

    #[test]
    fn all_items_are_a_list(lengths in prop::collection::vec(0usize..400, 0..12)) {
        let mut items = Items::new();
        let mut shared = Vec::new();
        for length in lengths {
            if length % 3 > 0 {
                shared.push(items.clone());
            }
            items.extend([Item::user("x".repeat(length))]);
            // What is known of the first items is used.
            let known = items.chunks().last().filter(|_| length % 2 > 0);
            if let Some(stretch) = known {
                let length = stretch.elements.iter().map(|item| item.as_json().len() + 1).sum();
                stretch.note(Form::Responses, Usual { elements: stretch.elements.len(), length });
            }
        }
        let mut draft = Draft::of(&items, as_they_are);
        draft.all();
        let list: Vec<&str> = items.iter().map(Item::as_json).collect();
        let expected = format!("[{}]", list.join(","));
        prop_assert_eq!(draft.finish().json(), expected.as_bytes());
    }
}
