//! Keys, and the bytes that a terminal sends for them.

use std::str::FromStr;

/// A key that does not type a character.
///
/// `"Enter".parse::<Key>()` parses the name of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Key {
    /// Enter, also called Return.
    Enter,
    /// Enter while Alt is pressed.
    AltEnter,
    /// Tab.
    Tab,
    /// Backspace.
    Backspace,
    /// Escape.
    Escape,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Ctrl-C. The line discipline turns it into an interrupt, unless the program reads raw keys.
    CtrlC,
    /// Ctrl-D. At the start of a line, it ends the input.
    CtrlD,
}

/// The mode of the cursor keys, which the program sets (DECCKM).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CursorKeys {
    Normal,
    Application,
}

impl Key {
    const NAMES: [(&'static str, Self); 13] = [
        ("Enter", Self::Enter),
        ("AltEnter", Self::AltEnter),
        ("Tab", Self::Tab),
        ("Backspace", Self::Backspace),
        ("Escape", Self::Escape),
        ("Up", Self::Up),
        ("Down", Self::Down),
        ("Left", Self::Left),
        ("Right", Self::Right),
        ("Home", Self::Home),
        ("End", Self::End),
        ("CtrlC", Self::CtrlC),
        ("CtrlD", Self::CtrlD),
    ];

    /// The bytes that xterm sends for the key.
    pub(crate) fn bytes(self, cursor_keys: CursorKeys) -> Vec<u8> {
        let cursor = |end: u8| match cursor_keys {
            CursorKeys::Normal => vec![0x1b, b'[', end],
            CursorKeys::Application => vec![0x1b, b'O', end],
        };
        match self {
            Self::Enter => vec![b'\r'],
            Self::AltEnter => vec![0x1b, b'\r'],
            Self::Tab => vec![b'\t'],
            Self::Backspace => vec![0x7f],
            Self::Escape => vec![0x1b],
            Self::Up => cursor(b'A'),
            Self::Down => cursor(b'B'),
            Self::Right => cursor(b'C'),
            Self::Left => cursor(b'D'),
            Self::Home => cursor(b'H'),
            Self::End => cursor(b'F'),
            Self::CtrlC => vec![0x03],
            Self::CtrlD => vec![0x04],
        }
    }
}

impl FromStr for Key {
    type Err = crate::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, key)| *key)
            .ok_or_else(|| {
                let known: Vec<_> = Self::NAMES.iter().map(|(known, _)| *known).collect();
                crate::Error::new(format!(
                    "no key is named {name:?}: there are {}",
                    known.join(", ")
                ))
            })
    }
}
