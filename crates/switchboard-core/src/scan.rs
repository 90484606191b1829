//! JSON as it mostly is, read in one pass into what is needed of it.
//!
//! A reader asks for the values of the fields it knows and skips the rest, which is checked all the
//! same: what is no JSON is not read. What is not as it should be (a field twice, a number as text,
//! half a character, lists as deep as no server's) is `None` here, and whoever asked has a closer look
//! with a reader that takes it: what is read is the same, the cost is not.
//!
//! A field costs about 90 instructions: what is usual is tried first, in line, and
//! that is a short name with its colon, a short value, and a comma with no white space around. What is
//! left to read is a slice, so that one check is enough for all of a short name.

mod behind;

use std::borrow::Cow;

use behind::{
    NAME_END, behind_escaped, behind_number, behind_one_space, behind_plain, behind_space,
    behind_value, next, short_end,
};

/// A place in a JSON text.
#[derive(Debug)]
pub struct Scanner<'a> {
    json: &'a str,
    /// What is left of it.
    rest: &'a [u8],
}

/// Reads one object, whose fields `field` takes.
#[inline]
pub fn object<'a>(
    json: &'a str,
    field: impl FnMut(&mut Scanner<'a>, &'a [u8]) -> Option<()>,
) -> Option<()> {
    let mut scanner = Scanner::new(json);
    scanner.object(field)?;
    scanner.is_at_end().then_some(())
}

/// Keeps the value of a field. A field that is there twice is not usual.
#[inline]
pub fn keep<T>(slot: &mut Option<T>, value: Option<Option<T>>) -> Option<()> {
    let value = value?;
    if slot.is_some() {
        return None;
    }
    *slot = value;
    Some(())
}

/// Reads the value of a field where it is kept, since what is large is not moved for nothing. A field
/// that is there twice is not usual.
#[inline]
pub fn fill<'a, T: Default>(
    slot: &mut Option<T>,
    scanner: &mut Scanner<'a>,
    read: impl FnOnce(&mut T, &mut Scanner<'a>) -> Option<()>,
) -> Option<()> {
    if slot.is_some() {
        return None;
    }
    match scanner.peek()? {
        b'n' => scanner.null(),
        _ => read(slot.insert(T::default()), scanner),
    }
}

/// Keeps a count that stands in an object of its own.
#[inline]
pub fn detail(scanner: &mut Scanner<'_>, name: &[u8], slot: &mut Option<u64>) -> Option<()> {
    let read = scanner.nullable(|scanner| {
        scanner.object(|scanner, key| {
            if key == name {
                keep(slot, scanner.count())
            } else {
                scanner.ignore()
            }
        })
    });
    read.map(|_| ())
}

impl<'a> Scanner<'a> {
    #[inline]
    pub(crate) fn new(json: &'a str) -> Self {
        let rest = json.as_bytes();
        Self { json, rest }
    }

    /// Whether nothing but white space follows.
    #[inline]
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// The next byte that is no white space.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<u8> {
        let (byte, rest) = next(self.rest)?;
        self.rest = rest;
        Some(byte)
    }

    /// Where it is, in bytes.
    #[inline]
    pub(crate) fn place(&self) -> usize {
        self.json.len() - self.rest.len()
    }

    /// What was gone over since it was at `start`.
    #[inline]
    pub(crate) fn since(&self, start: usize) -> Option<&'a str> {
        self.json.get(start..self.place())
    }

    /// An object, whose fields `field` takes.
    #[inline]
    pub fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &'a [u8]) -> Option<()>,
    ) -> Option<()> {
        if self.opens(b'{', b'}')? {
            return Some(());
        }
        loop {
            let name = self.name()?;
            field(self, name)?;
            if !self.goes_on(b'}')? {
                return Some(());
            }
        }
    }

    /// A list, whose elements `element` takes.
    #[inline]
    pub fn list(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        if self.opens(b'[', b']')? {
            return Some(());
        }
        loop {
            element(self)?;
            if !self.goes_on(b']')? {
                return Some(());
            }
        }
    }

    /// A value, or `Some(None)` for a null.
    #[inline]
    pub fn nullable<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.peek()? {
            b'n' => self.null().map(|()| None),
            _ => read(self).map(Some),
        }
    }

    /// A null and nothing else.
    #[inline]
    pub fn null(&mut self) -> Option<()> {
        self.peek()?;
        self.rest = self.rest.strip_prefix(b"null")?;
        Some(())
    }

    /// A text, or `Some(None)` for a null.
    pub fn text(&mut self) -> Option<Option<Cow<'a, str>>> {
        self.nullable(|scanner| {
            let start = scanner.place();
            let is_plain = scanner.string()?;
            let end = scanner.place();
            if is_plain {
                return scanner.json.get(start + 1..end - 1).map(Cow::Borrowed);
            }
            let text = serde_json::from_str(scanner.since(start)?);
            text.ok().map(Cow::Owned)
        })
    }

    /// A number that counts something, or `Some(None)` for a null.
    pub fn count(&mut self) -> Option<Option<u64>> {
        self.nullable(|scanner| {
            let [first @ b'0'..=b'9', rest @ ..] = scanner.rest else {
                return None;
            };
            let (mut count, mut rest) = (u64::from(first - b'0'), rest);
            while let [digit @ b'0'..=b'9', after @ ..] = rest {
                if count == 0 {
                    return None;
                }
                count = count
                    .checked_mul(10)?
                    .checked_add(u64::from(digit - b'0'))?;
                rest = after;
            }
            scanner.rest = rest;
            (!matches!(rest, [b'.' | b'e' | b'E', ..])).then_some(count)
        })
    }

    /// A value as it is written, or `Some(None)` for a null.
    #[inline]
    pub fn raw(&mut self) -> Option<Option<&'a str>> {
        self.nullable(Self::skip)
    }

    /// Skips a value; its JSON.
    #[inline]
    pub fn skip(&mut self) -> Option<&'a str> {
        self.peek()?;
        let start = self.place();
        self.ignore()?;
        self.since(start)
    }

    /// Skips a value that nobody asked for. What is no list and no object is skipped in line.
    #[inline(always)]
    pub fn ignore(&mut self) -> Option<()> {
        self.rest = match self.rest {
            [b'"', ..] => match short_end(self.rest) {
                Some((end, [b'"', _])) => &self.rest[end + 1..],
                _ => behind_value(self.rest)?,
            },
            [b'n', rest @ ..] => rest.strip_prefix(b"ull")?,
            [b't', rest @ ..] => rest.strip_prefix(b"rue")?,
            [b'f', rest @ ..] => rest.strip_prefix(b"alse")?,
            [b'-' | b'0'..=b'9', ..] => behind_number(self.rest)?,
            [b'[', b']', rest @ ..] | [b'{', b'}', rest @ ..] => rest,
            _ => behind_value(self.rest)?,
        };
        Some(())
    }

    /// Goes behind a string; whether it is written as it is meant.
    #[inline]
    pub(crate) fn string(&mut self) -> Option<bool> {
        if let Some((end, [b'"', _])) = short_end(self.rest) {
            self.rest = &self.rest[end + 1..];
            return Some(true);
        }
        let rest = behind_plain(self.rest.strip_prefix(b"\"")?)?;
        if let [b'"', rest @ ..] = rest {
            self.rest = rest;
            return Some(true);
        }
        self.rest = behind_escaped(rest)?;
        Some(false)
    }

    /// The name of a field, and the colon after it. A name is written as it is meant.
    #[inline(always)]
    fn name(&mut self) -> Option<&'a [u8]> {
        if let Some((end, two)) = short_end(self.rest)
            && two == NAME_END
        {
            let name = &self.rest[1..end];
            self.rest = &self.rest[end + 2..];
            return Some(name);
        }
        self.odd_name()
    }

    /// The same for a longer name, or with white space around it.
    #[cold]
    fn odd_name(&mut self) -> Option<&'a [u8]> {
        let rest = behind_space(self.rest);
        if let Some((end, NAME_END)) = short_end(rest) {
            self.rest = behind_one_space(&rest[end + 2..]);
            return Some(&rest[1..end]);
        }
        let [b'"', name @ ..] = rest else {
            return None;
        };
        let rest = behind_plain(name)?;
        let [b'"', after @ ..] = rest else {
            return None;
        };
        self.rest = behind_space(after).strip_prefix(b":")?;
        name.get(..name.len() - rest.len())
    }

    /// Goes into what starts with this; whether it ends at once.
    #[inline(always)]
    fn opens(&mut self, start: u8, end: u8) -> Option<bool> {
        if self.take()? != start {
            return None;
        }
        let is_empty = self.peek()? == end;
        if is_empty {
            self.take()?;
        }
        Some(is_empty)
    }

    /// Whether another element follows, or this was the last.
    #[inline(always)]
    fn goes_on(&mut self, end: u8) -> Option<bool> {
        if let [b',', rest @ ..] = self.rest {
            self.rest = rest;
            return Some(true);
        }
        match self.take()? {
            b',' => Some(true),
            byte => (byte == end).then_some(false),
        }
    }

    /// Goes behind the next byte that is no white space.
    #[inline(always)]
    fn take(&mut self) -> Option<u8> {
        let (byte, at) = next(self.rest)?;
        self.rest = &at[1..];
        Some(byte)
    }
}

#[cfg(test)]
mod tests;
