//! A payload's blocks make up its JSON.

use proptest::prelude::*;
use switchboard_core::Item;
use switchboard_core::items::Items;

use super::*;
use crate::wire::payload::{PayloadBuilder, write_unchanged};

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
    let mut builder = PayloadBuilder::new(&items, write_unchanged);
    builder.json.push(b'<');
    let before = builder.end();
    builder.add_items(0, 2, 100);
    builder.truncate(before);
    builder.json.push(b'>');
    let payload = builder.build();
    assert_eq!(payload.json(), b"<>");
    assert_eq!(PayloadStream::new(payload).size_hint().exact(), Some(2));
}

#[test]
fn a_payload_of_the_wrong_length_is_an_error() {
    let items: Items = vec![Item::user("Hi")].into();
    let length = items[0].as_json().len();
    let sent = |expected| {
        let mut builder = PayloadBuilder::new(&items, write_unchanged);
        builder.add_items(0, 1, expected);
        let mut stream = PayloadStream::new(builder.build());
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
        let mut builder = PayloadBuilder::new(&items, write_pairs);
        let (mut first, mut expected) = (0, Vec::new());
        for (_, is_pair, between) in parts {
            builder.json.extend(std::iter::repeat_n(b'-', between));
            expected.extend(std::iter::repeat_n(b'-', between));
            if first > 0 {
                expected.push(b',');
            }
            let start = expected.len();
            let count = write_pairs(&mut expected, &items[first], items.get(first + 1));
            prop_assert_eq!(count == 2, is_pair);
            builder.add_items(first, count, expected.len() - start);
            first += count;
        }
        let payload = builder.build();
        prop_assert_eq!(payload.0.length, expected.len());
        let mut stream = PayloadStream::new(payload);
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
