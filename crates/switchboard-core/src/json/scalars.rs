//! The strings and numbers of a JSON text, with their positions.

use super::first_byte;

/// An iterator over the strings and numbers of a JSON text.
pub(crate) struct Scalars<'a> {
    raw: &'a str,
    at: usize,
    /// For each open container: `true` for an object, and its current key.
    open: Vec<(bool, Option<&'a str>)>,
    expects_key: bool,
}

/// One string or number of a JSON text.
pub(crate) struct Scalar<'a> {
    pub(crate) token: &'a str,
    /// The offset of the token.
    pub(crate) at: usize,
    pub(crate) is_key: bool,
    /// The number of containers it is in.
    pub(crate) depth: usize,
    /// The JSON of its key, or of the key of the lists it is in, without the quotes.
    pub(crate) key: Option<&'a str>,
    /// The JSON of the key of the container around its own, without the quotes.
    pub(crate) outer_key: Option<&'a str>,
}

impl<'a> Scalars<'a> {
    /// `raw` must be JSON.
    pub(crate) fn new(raw: &'a str) -> Self {
        Self {
            raw,
            at: 0,
            open: Vec::new(),
            expects_key: false,
        }
    }

    pub(crate) fn next_scalar(&mut self) -> Option<Scalar<'a>> {
        let bytes = self.raw.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'{' | b'[' => {
                    // A list has the key of its field.
                    let key = self.open.last().and_then(|(_, key)| *key);
                    let key = key.filter(|_| *byte == b'[');
                    self.open.push((*byte == b'{', key));
                    self.expects_key = *byte == b'{';
                }
                b'}' | b']' => {
                    self.open.pop();
                    self.expects_key = false;
                }
                b',' => {
                    self.expects_key = self.open.last().is_some_and(|(is_object, _)| *is_object)
                }
                b'"' => return self.scalar(string_len),
                b'-' | b'0'..=b'9' => return self.scalar(number_len),
                _ => {}
            }
            self.at += 1;
        }
        None
    }

    fn scalar(&mut self, len: fn(&str) -> Option<usize>) -> Option<Scalar<'a>> {
        let at = self.at;
        let rest = &self.raw[at..];
        let token = rest.get(..len(rest)?)?;
        self.at += token.len();
        let is_key = std::mem::take(&mut self.expects_key);
        let depth = self.open.len();
        let key = match self.open.last_mut() {
            Some((true, key)) if is_key => {
                *key = token.get(1..token.len() - 1);
                None
            }
            Some((_, key)) => *key,
            None => None,
        };
        let outer = depth.checked_sub(2).and_then(|outer| self.open.get(outer));
        Some(Scalar {
            token,
            at,
            is_key,
            depth,
            key,
            outer_key: outer.and_then(|(_, key)| *key),
        })
    }
}

/// The length of the number that a text begins with.
fn number_len(text: &str) -> Option<usize> {
    let ends = |c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9');
    Some(text.find(ends).unwrap_or(text.len()))
}

/// The length of the string that a text begins with. `None` if it does not end.
fn string_len(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut end = 1;
    loop {
        end += first_byte(bytes.get(end..)?, |byte| (byte == b'"') | (byte == b'\\'));
        match bytes.get(end)? {
            b'"' => return Some(end + 1),
            _ => end += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::unquote;

    proptest! {
        #[test]
        fn every_string_is_found_with_its_offset(
            texts in prop::collection::vec("([ -~]{0,20}|[\"\\\\\n账]){0,4}", 0..5),
        ) {
            let raw = serde_json::to_string(&texts).unwrap();
            let mut scalars = Scalars::new(&raw);
            for text in &texts {
                let scalar = scalars.next_scalar().unwrap();
                prop_assert_eq!(unquote(scalar.token).unwrap(), text.as_str());
                prop_assert!(raw[scalar.at..].starts_with(scalar.token));
            }
            prop_assert!(scalars.next_scalar().is_none());
        }
    }
}
