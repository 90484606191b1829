//! A payload's blocks make up its JSON.

use proptest::prelude::*;
use switchboard_core::Item;
use switchboard_core::items::Items;

use super::*;
use crate::wire::payload::write_unchanged;

/// Writes a call together with the next item.
fn write_pairs(out: &mut Vec<u8>, item: &Item, next: Option<&Item>) -> usize {
    out.extend_from_slice(item.as_json().as_bytes());
    match next {
        Some(next) if item.call_id().is_some() => {
            out.push(b'+');
            out.extend_from_slice(next.as_json().as_bytes());
            2
        }
        _ => 1,
    }
}

#[test]
fn truncated_items_are_not_sent() {
    let items: Items = vec![Item::user("Hi"), Item::user("Ho")].into();
    let mut payload = Payload::new(&items, write_unchanged);
    payload.json.push(b'<');
    let before = payload.end();
    payload.add_items(0, 2, 100);
    payload.truncate(before);
    payload.json.push(b'>');
    assert_eq!(payload.length(), 2);
    assert_eq!(payload.into_json(), b"<>");
}

#[test]
fn a_payload_of_the_wrong_length_is_an_error() {
    let items: Items = vec![Item::user("Hi")].into();
    let length = items[0].as_json().len();
    let sent = |expected| {
        let mut payload = Payload::new(&items, write_unchanged);
        payload.add_items(0, 1, expected);
        let mut stream = PayloadStream::new(Arc::new(payload));
        let first = stream.next_block().map(|block| block.is_some());
        (first, stream.next_block(), stream.is_end_stream())
    };
    assert_eq!(sent(length), (Ok(true), Ok(None), true));
    assert_eq!(sent(length + 7), (Ok(true), Err(WrongLength), true));
    assert_eq!(sent(length - 1), (Err(WrongLength), Ok(None), true));
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
            let text = "x".repeat(*length);
            let added = if *is_pair {
                vec![Item::function_call("c", "n", &text), Item::user("next")]
            } else {
                vec![Item::user(text)]
            };
            // A pair may be in one chunk or in two.
            for item in added {
                if length % 3 > 0 {
                    shared.push(items.clone());
                }
                items.extend([item]);
            }
        }
        let mut payload = Payload::new(&items, write_pairs);
        let (mut first, mut expected) = (0, Vec::new());
        for (_, is_pair, between) in parts {
            payload.json.extend(std::iter::repeat_n(b'-', between));
            expected.extend(std::iter::repeat_n(b'-', between));
            if first > 0 {
                expected.push(b',');
            }
            let start = expected.len();
            let count = write_pairs(&mut expected, &items[first], items.get(first + 1));
            prop_assert_eq!(count == 2, is_pair);
            payload.add_items(first, count, expected.len() - start);
            first += count;
        }
        prop_assert_eq!(payload.length(), expected.len());
        let mut stream = PayloadStream::new(Arc::new(payload));
        prop_assert_eq!(stream.size_hint().exact(), Some(expected.len() as u64));
        let mut sent = Vec::new();
        while let Some(block) = stream.next_block().unwrap() {
            prop_assert!(!block.is_empty());
            sent.extend_from_slice(&block);
        }
        prop_assert!(stream.is_end_stream());
        prop_assert_eq!(sent, expected);
    }
}
