//! Looking through bytes a block at a time.
//!
//! Within a block there is no branch, so the compiler makes vector instructions of it; a plain fold
//! over a record took ten instructions a byte. Long histories are put into
//! summaries, and looked through for private data, at the speed of this.

/// Longer ones go faster over prose, shorter ones where much is found.
const BLOCK: usize = 16;

/// Where the first byte is that is so; the length where none is.
#[inline]
pub(crate) fn first_byte(bytes: &[u8], is_so: impl Fn(u8) -> bool) -> usize {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let clear = blocks.iter().take_while(|block| !any_in(block, &is_so));
    let start = clear.count() * BLOCK;
    let rest = &bytes[start..];
    let found = rest.iter().position(|byte| is_so(*byte));
    start + found.unwrap_or(rest.len())
}

/// Whether any byte is so. By longer blocks, since it does not matter where; what is left at the end
/// is looked at together with what comes before it.
#[inline]
pub(crate) fn any_byte(bytes: &[u8], is_so: impl Fn(u8) -> bool) -> bool {
    let Some(last) = bytes.last_chunk::<BLOCK>() else {
        return bytes.iter().any(|byte| is_so(*byte));
    };
    let (blocks, rest) = bytes.as_chunks::<{ 2 * BLOCK }>();
    blocks.iter().any(|block| any_in(block, &is_so))
        || rest
            .first_chunk::<BLOCK>()
            .is_some_and(|block| any_in(block, &is_so))
        || any_in(last, &is_so)
}

/// Summed up as bytes: of a sum of `bool`s the compiler makes no vector instructions.
#[inline]
fn any_in<const N: usize>(block: &[u8; N], is_so: &impl Fn(u8) -> bool) -> bool {
    let any = block
        .iter()
        .fold(0, |any, byte| any | u8::from(is_so(*byte)));
    any != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_hide_nothing(bytes in prop::collection::vec(0_u8..40, 0..100)) {
            let is_so = |byte: u8| byte == 7;
            prop_assert_eq!(any_byte(&bytes, is_so), bytes.contains(&7));
            let first = bytes.iter().position(|byte| *byte == 7);
            prop_assert_eq!(first_byte(&bytes, is_so), first.unwrap_or(bytes.len()));
        }
    }
}
