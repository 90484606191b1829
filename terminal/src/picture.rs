//! What a screen shows, in pieces that can be drawn.

use std::sync::Arc;

use vt100::{Cell, Screen};

use crate::{
    Size,
    colours::{self, Rgb},
};

/// A screen at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) size: Size,
    pub(crate) rows: Vec<Arc<Row>>,
    /// Row and column of a cursor that is shown.
    pub(crate) cursor: Option<(u16, u16)>,
}

/// The pieces of a row, from left to right; none for what is blank.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Row(pub(crate) Vec<Piece>);

/// Neighbouring cells of one style.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Piece {
    pub(crate) column: u16,
    pub(crate) width: u16,
    pub(crate) text: String,
    pub(crate) style: Style,
    fit: Fit,
}

/// Whether a character is as wide as its cells in whatever font.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fit {
    /// It can be drawn together with its neighbours.
    Even,
    /// It may come from another font, with another width, and is put in its place alone.
    Alone,
}

/// How a piece looks, with inverse colours exchanged already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Style {
    pub(crate) foreground: Option<Rgb>,
    pub(crate) background: Option<Rgb>,
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    pub(crate) italic: bool,
    pub(crate) underline: bool,
}

/// Whether the cursor is part of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cursor {
    AsShown,
    Gone,
}

impl Picture {
    pub(crate) fn of(screen: &Screen, cursor: Cursor) -> Self {
        let (rows, columns) = screen.size();
        let size = Size {
            columns: columns.get(),
            rows: rows.get(),
        };
        let (row, column) = screen.cursor_position();
        let shown = cursor == Cursor::AsShown && !screen.hide_cursor();
        Self {
            size,
            rows: (0..size.rows)
                .map(|row| Arc::new(Row::of(screen, row, size.columns)))
                .collect(),
            // After the last column the cursor still stands in it.
            cursor: shown.then_some((row, column.min(size.columns - 1))),
        }
    }

    /// Shares the rows that are the same as in an earlier picture.
    pub(crate) fn share(&mut self, earlier: &Self) {
        for (row, before) in self.rows.iter_mut().zip(&earlier.rows) {
            if row == before {
                *row = before.clone();
            }
        }
    }
}

impl Row {
    pub(crate) fn is_blank(&self) -> bool {
        self.0.is_empty()
    }

    fn of(screen: &Screen, row: u16, columns: u16) -> Self {
        let mut pieces: Vec<Piece> = Vec::new();
        let cells = (0..columns).filter_map(|column| Some((column, screen.cell(row, column)?)));
        for (column, cell) in cells.filter(|(_, cell)| !cell.is_wide_continuation()) {
            let next = Piece::of(column, cell);
            match pieces.last_mut() {
                Some(last) if last.goes_on_with(&next) => {
                    last.width += next.width;
                    last.text.push_str(&next.text);
                }
                _ => pieces.push(next),
            }
        }
        pieces.retain(|piece| !piece.is_blank());
        Self(pieces)
    }
}

impl Piece {
    fn of(column: u16, cell: &Cell) -> Self {
        let text = if cell.has_contents() {
            cell.contents()
        } else {
            " "
        };
        let even = is_in_every_monospace_font(text);
        Self {
            column,
            width: if cell.is_wide() { 2 } else { 1 },
            text: text.to_owned(),
            style: Style::of(cell),
            fit: if even { Fit::Even } else { Fit::Alone },
        }
    }

    /// The column, width and text of what has ink: spaces at the ends need none.
    pub(crate) fn inked(&self) -> Option<(u16, u16, &str)> {
        if self.style.underline {
            return Some((self.column, self.width, &self.text));
        }
        let text = self.text.trim_start_matches(' ');
        let before = u16::try_from(self.text.len() - text.len()).ok()?;
        let inked = text.trim_end_matches(' ');
        let after = u16::try_from(text.len() - inked.len()).ok()?;
        let width = self.width.checked_sub(before + after)?;
        (width > 0).then_some((self.column + before, width, inked))
    }

    fn goes_on_with(&self, next: &Self) -> bool {
        self.fit == Fit::Even && next.fit == Fit::Even && self.style == next.style
    }

    fn is_blank(&self) -> bool {
        self.style.background.is_none() && self.inked().is_none()
    }
}

impl Style {
    fn of(cell: &Cell) -> Self {
        let mut foreground = colours::rgb(cell.fgcolor());
        let mut background = colours::rgb(cell.bgcolor());
        if cell.inverse() {
            (foreground, background) = (
                background.or(Some(colours::BACKGROUND)),
                foreground.or(Some(colours::TEXT)),
            );
        }
        Self {
            foreground,
            background,
            bold: cell.bold(),
            dim: cell.dim(),
            italic: cell.italic(),
            underline: cell.underline(),
        }
    }
}

/// Latin, Greek and Cyrillic letters, punctuation, and lines and blocks to draw with; nothing wide.
fn is_in_every_monospace_font(text: &str) -> bool {
    let mut chars = text.chars();
    let even = |c: char| {
        matches!(c, ' '..='~' | '\u{a0}'..='\u{17f}' | '\u{391}'..='\u{3c9}' | '\u{410}'..='\u{44f}'
            | '\u{2010}'..='\u{2026}' | '\u{2500}'..='\u{259f}')
    };
    chars.next().is_some_and(even) && chars.next().is_none()
}
