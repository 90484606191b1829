//! Searches bytes block by block.
//!
//! A block is searched without branches, which the compiler vectorizes; `Iterator::position` looks at
//! one byte at a time. With the latter, a nested history of 1,000 items takes 2.2 times the CPU time.

const BLOCK: usize = 16;

/// The index of the first byte that matches, or the length if none does.
#[inline]
pub(crate) fn first_byte(bytes: &[u8], matches: impl Fn(u8) -> bool) -> usize {
    let any_in = |block: &[u8; BLOCK]| {
        // A fold over `bool`s is not vectorized.
        let any = block
            .iter()
            .fold(0, |any, byte| any | u8::from(matches(*byte)));
        any != 0
    };
    let (blocks, rest) = bytes.as_chunks();
    let start = blocks.iter().take_while(|block| !any_in(block)).count() * BLOCK;
    let is_in_rest = start + rest.len() == bytes.len();
    // The last block overlaps the one before it.
    if is_in_rest && bytes.last_chunk().is_some_and(|last| !any_in(last)) {
        return bytes.len();
    }
    let found = bytes[start..].iter().position(|byte| matches(*byte));
    found.map_or(bytes.len(), |found| start + found)
}

/// Returns `true` if any byte matches.
#[inline]
pub(crate) fn any_byte(bytes: &[u8], matches: impl Fn(u8) -> bool) -> bool {
    first_byte(bytes, matches) < bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_match_is_found_as_by_position(bytes in prop::collection::vec(0_u8..40, 0..100)) {
            let matches = |byte: u8| byte == 7;
            let first = bytes.iter().position(|byte| *byte == 7);
            prop_assert_eq!(first_byte(&bytes, matches), first.unwrap_or(bytes.len()));
            prop_assert_eq!(any_byte(&bytes, matches), first.is_some());
        }
    }
}
