//! What follows what in a JSON text. `None` where it is not there, or is no JSON.

use crate::json::{maybe_end_in, plain_len};

/// How deep values may be nested, each level being a bit.
const DEEPEST: u32 = 60;

/// Most names and values are no longer.
const SHORT: usize = 24;

/// The end of a name.
pub(super) const NAME_END: [u8; 2] = *b"\":";

/// Mostly there is none. Where there is, it is a line break and an indentation, or one space.
#[cold]
#[inline(never)]
pub(super) fn behind_space(mut rest: &[u8]) -> &[u8] {
    const SPACES: u64 = u64::from_ne_bytes([b' '; 8]);
    while let [b' ' | b'\n' | b'\r' | b'\t', after @ ..] = rest {
        rest = after;
        if let Some(eight) = rest.first_chunk() {
            let spaces = (u64::from_le_bytes(*eight) ^ SPACES).trailing_zeros() / 8;
            rest = &rest[spaces as usize..];
        }
    }
    rest
}

/// What follows the space that comes after a colon where there is white space elsewhere.
#[inline]
pub(super) fn behind_one_space(rest: &[u8]) -> &[u8] {
    rest.strip_prefix(b" ").unwrap_or(rest)
}

/// The next byte that is no white space, and all from it on.
#[inline(always)]
pub(super) fn next(rest: &[u8]) -> Option<(u8, &[u8])> {
    match rest {
        [byte, ..] if *byte > b' ' => Some((*byte, rest)),
        _ => {
            let rest = behind_space(rest);
            Some((*rest.first()?, rest))
        }
    }
}

/// What follows a value.
///
/// In one loop: what is open is a bit each, a set one for an object.
pub(super) fn behind_value(mut rest: &[u8]) -> Option<&[u8]> {
    const NOTHING: u64 = 0b10;
    let mut open = NOTHING;
    loop {
        if open & 1 == 1 {
            rest = behind_name(rest)?;
        }
        let (byte, at) = next(rest)?;
        rest = match byte {
            b'"' => behind_string(at)?,
            b'{' | b'[' => {
                let (first, inner) = next(at.get(1..)?)?;
                // Both ends come two after what they end.
                if first != byte + 2 {
                    open = deeper(open)? | u64::from(byte == b'{');
                    rest = inner;
                    continue;
                }
                inner.get(1..)?
            }
            b't' => at.strip_prefix(b"true")?,
            b'f' => at.strip_prefix(b"false")?,
            b'n' => at.strip_prefix(b"null")?,
            _ => behind_number(at)?,
        };
        // A value ended, and with it perhaps what it is in.
        loop {
            if open == NOTHING {
                return Some(rest);
            }
            let (byte, at) = next(rest)?;
            rest = at.get(1..)?;
            if byte == b',' {
                break;
            }
            let end = if open & 1 == 1 { b'}' } else { b']' };
            if byte != end {
                return None;
            }
            open >>= 1;
        }
    }
}

/// One level more is open; `None` where that is deeper than any server's answer.
#[inline]
fn deeper(open: u64) -> Option<u64> {
    (open >> DEEPEST == 0).then_some(open << 1)
}

/// What follows the name of a field and its colon.
#[inline]
fn behind_name(rest: &[u8]) -> Option<&[u8]> {
    if let Some((end, two)) = short_end(rest)
        && two == NAME_END
    {
        return Some(&rest[end + 2..]);
    }
    let rest = match behind_string(behind_space(rest))? {
        [b':', rest @ ..] => rest,
        rest => behind_space(rest).strip_prefix(b":")?,
    };
    Some(behind_one_space(rest))
}

/// What follows a string.
#[inline]
fn behind_string(rest: &[u8]) -> Option<&[u8]> {
    if let Some((end, [b'"', _])) = short_end(rest) {
        return Some(&rest[end + 1..]);
    }
    match behind_plain(rest.strip_prefix(b"\"")?)? {
        [b'"', rest @ ..] => Some(rest),
        rest => behind_escaped(rest),
    }
}

/// What follows a string that has a backslash here, or what may not be in one. On its own, so that
/// the usual way saves no registers: 30 of 100 instructions for a short string.
#[cold]
pub(super) fn behind_escaped(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        let length = match rest {
            [b'"', rest @ ..] => return Some(rest),
            [
                b'\\',
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't',
                ..,
            ] => 2,
            [b'\\', b'u', hex @ ..] if hex.get(..4)?.iter().all(u8::is_ascii_hexdigit) => 6,
            _ => return None,
        };
        rest = behind_plain(rest.get(length..)?)?;
    }
}

#[inline]
pub(super) fn behind_number(rest: &[u8]) -> Option<&[u8]> {
    let rest = rest.strip_prefix(b"-").unwrap_or(rest);
    let mut rest = match rest {
        [b'0', rest @ ..] => rest,
        _ => behind_digits(rest)?,
    };
    if let [b'.', after @ ..] = rest {
        rest = behind_digits(after)?;
    }
    if let [b'e' | b'E', after @ ..] = rest {
        rest = match after {
            [b'+' | b'-', after @ ..] => behind_digits(after)?,
            _ => behind_digits(after)?,
        };
    }
    // A digit here would be one after a leading zero.
    (!matches!(rest, [b'0'..=b'9', ..])).then_some(rest)
}

/// What follows the digits that must be here.
#[inline]
fn behind_digits(rest: &[u8]) -> Option<&[u8]> {
    let [b'0'..=b'9', rest @ ..] = rest else {
        return None;
    };
    let mut rest = rest;
    while let [b'0'..=b'9', after @ ..] = rest {
        rest = after;
    }
    Some(rest)
}

/// Where a short string that starts here ends, and the two bytes from there on. Where the first of them
/// is no quote, the string may go on and has to be looked at again.
///
/// By eights: most names are no longer, and so vectors are no faster. One check is enough for all of
/// it; with one for each eight bytes a field takes a fifth more.
#[inline(always)]
pub(super) fn short_end(rest: &[u8]) -> Option<(usize, [u8; 2])> {
    let rest: &[u8; SHORT + 2] = rest.first_chunk()?;
    let [b'"', text @ .., _] = rest else {
        return None;
    };
    let (eights, _) = text.as_chunks();
    for (at, eight) in eights.iter().enumerate() {
        if let Some(end) = maybe_end_in(*eight) {
            let end = 1 + at * 8 + end;
            return Some((end, [rest[end], rest[end + 1]]));
        }
    }
    None
}

/// What follows the plain part of a string: a quote, a backslash, or what may not be in one. Never in
/// line: it would cost short strings their registers.
#[inline(never)]
pub(super) fn behind_plain(text: &[u8]) -> Option<&[u8]> {
    let rest = text.get(plain_len(text)..)?;
    (!rest.is_empty()).then_some(rest)
}
