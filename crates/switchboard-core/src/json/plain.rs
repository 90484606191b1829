//! Where text stops being the same in JSON: at a quote, a backslash, or what may not be in a string.

/// What is looked through by eights; what is longer goes faster by blocks.
const SHORT: usize = 32;

/// Twice a vector: in long text there is little to find.
const BLOCK: usize = 32;

/// How long the text is up to the first byte that is not the same in a JSON string.
#[inline(never)]
pub(crate) fn plain_len(text: &[u8]) -> usize {
    let Some(last) = text.last_chunk() else {
        let end = text.iter().position(|byte| must_escape(*byte));
        return end.unwrap_or(text.len());
    };
    let mut start = 0;
    if text.len() > SHORT {
        match by_eights(&text[..SHORT]) {
            Some(end) => return end,
            None => start = behind_blocks(text),
        }
    }
    if let Some(end) = by_eights(&text[start..]) {
        return start + end;
    }
    // The last eight bytes, of which the first may have been looked at before.
    match end_in(*last) {
        Some(end) => text.len() - last.len() + end,
        None => text.len(),
    }
}

/// The start of the first block with such a byte, or of what is left.
fn behind_blocks(text: &[u8]) -> usize {
    let (blocks, _) = text[SHORT..].as_chunks::<BLOCK>();
    let clear = blocks.iter().take_while(|block| !any_in(block));
    SHORT + clear.count() * BLOCK
}

/// Of this the compiler makes vector instructions.
#[inline(always)]
fn any_in(block: &[u8; BLOCK]) -> bool {
    let any = |any, byte: &u8| any | u8::from(must_escape(*byte));
    block.iter().fold(0, any) != 0
}

#[inline(always)]
fn by_eights(text: &[u8]) -> Option<usize> {
    let (eights, _) = text.as_chunks();
    let mut eights = eights.iter().enumerate();
    eights.find_map(|(at, eight)| end_in(*eight).map(|end| at * 8 + end))
}

/// Whether a byte is not the same in a JSON string. With one bit changed a quote comes right after what
/// may not be in one, which spares a comparison.
#[inline(always)]
fn must_escape(byte: u8) -> bool {
    (byte ^ 2 < b' ' + 1) | (byte == b'\\')
}

/// The first byte of eight that is not the same in a JSON string.
#[inline(always)]
fn end_in(eight: [u8; 8]) -> Option<usize> {
    let ends = maybe_ends(eight) & !u64::from_le_bytes(eight);
    (ends != 0).then(|| ends.trailing_zeros() as usize / 8)
}

/// The same, or a byte outside ASCII before it: a quarter fewer instructions.
#[inline(always)]
pub(crate) fn maybe_end_in(eight: [u8; 8]) -> Option<usize> {
    let ends = maybe_ends(eight);
    (ends != 0).then(|| ends.trailing_zeros() as usize / 8)
}

/// The high bit of the first byte that is not the same, and of others behind it or outside ASCII.
#[inline(always)]
fn maybe_ends(eight: [u8; 8]) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let eight = u64::from_le_bytes(eight);
    // The high bit of each byte that is below another: of the lowest such byte for certain.
    let is_below = |eight: u64, other: u8| eight.wrapping_sub(ONES * u64::from(other));
    // As in `must_escape`.
    let is_quote_or_control = is_below(eight ^ (ONES * 2), b' ' + 1);
    let is_backslash = is_below(eight ^ (ONES * u64::from(b'\\')), 1);
    (is_quote_or_control | is_backslash) & HIGHS
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_is_plain_as_far_as_it_is_byte_by_byte(
            plain in vec(prop_oneof![b'#'..b'[', 0x80..=u8::MAX], 0..100),
            rest in vec(any::<u8>(), 0..20),
        ) {
            let text = [plain, rest].concat();
            for text in (0..=text.len()).map(|at| &text[at..]) {
                let end = text.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
                prop_assert_eq!(plain_len(text), end.unwrap_or(text.len()));
            }
        }
    }
}
