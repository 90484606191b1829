//! The contents of a screen, in a form that can be drawn.

use std::sync::Arc;

use vt100::{Cell, Screen};

use crate::{
    Size,
    colours::{self, Rgb},
};

/// The contents of a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Screenshot {
    pub(crate) size: Size,
    pub(crate) rows: Vec<Arc<Row>>,
    /// The row and column of the cursor, if it is visible.
    pub(crate) cursor: Option<(u16, u16)>,
}

/// The text runs of a row from left to right, without blank ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Row(pub(crate) Vec<TextRun>);

/// Neighbouring cells with the same style.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TextRun {
    pub(crate) column: u16,
    pub(crate) width: u16,
    pub(crate) text: String,
    pub(crate) style: Style,
    glyph_width: GlyphWidth,
}

/// The width of a character's glyph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum GlyphWidth {
    /// As wide as its cells: it can be drawn together with its neighbours.
    Fixed,
    /// It may be from another font with another width, and is positioned by itself.
    Unknown,
}

/// The style of a text run, with inverse colours already swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Style {
    pub(crate) foreground: Option<Rgb>,
    pub(crate) background: Option<Rgb>,
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    pub(crate) italic: bool,
    pub(crate) underline: bool,
}

/// The cursor in a screenshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cursor {
    /// Visible unless the program hides it.
    Visible,
    Hidden,
}

impl Screenshot {
    pub(crate) fn of(screen: &Screen, cursor: Cursor) -> Self {
        let (rows, columns) = screen.size();
        let size = Size {
            columns: columns.get(),
            rows: rows.get(),
        };
        let (row, column) = screen.cursor_position();
        let is_visible = cursor == Cursor::Visible && !screen.hide_cursor();
        Self {
            size,
            rows: (0..size.rows)
                .map(|row| Arc::new(Row::of(screen, row, size.columns)))
                .collect(),
            // After the last column, the cursor is still drawn in it.
            cursor: is_visible.then_some((row, column.min(size.columns - 1))),
        }
    }

    /// Shares the rows that are equal to those of an earlier screenshot.
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
        let mut runs: Vec<TextRun> = Vec::new();
        let cells = (0..columns).filter_map(|column| Some((column, screen.cell(row, column)?)));
        for (column, cell) in cells.filter(|(_, cell)| !cell.is_wide_continuation()) {
            let next = TextRun::of(column, cell);
            match runs.last_mut() {
                Some(last) if last.can_extend_with(&next) => {
                    last.width += next.width;
                    last.text.push_str(&next.text);
                }
                _ => runs.push(next),
            }
        }
        runs.retain(|run| !run.is_blank());
        Self(runs)
    }
}

impl TextRun {
    fn of(column: u16, cell: &Cell) -> Self {
        let text = if cell.has_contents() {
            cell.contents()
        } else {
            " "
        };
        Self {
            column,
            width: if cell.is_wide() { 2 } else { 1 },
            text: text.to_owned(),
            style: Style::of(cell),
            glyph_width: if is_in_every_monospace_font(text) {
                GlyphWidth::Fixed
            } else {
                GlyphWidth::Unknown
            },
        }
    }

    /// The column, width and text without spaces at the ends, unless these are underlined.
    pub(crate) fn visible_text(&self) -> Option<(u16, u16, &str)> {
        if self.style.underline {
            return Some((self.column, self.width, &self.text));
        }
        let text = self.text.trim_start_matches(' ');
        let before = u16::try_from(self.text.len() - text.len()).ok()?;
        let trimmed = text.trim_end_matches(' ');
        let after = u16::try_from(text.len() - trimmed.len()).ok()?;
        let width = self.width.checked_sub(before + after)?;
        (width > 0).then_some((self.column + before, width, trimmed))
    }

    fn can_extend_with(&self, next: &Self) -> bool {
        let is_fixed = |run: &Self| run.glyph_width == GlyphWidth::Fixed;
        is_fixed(self) && is_fixed(next) && self.style == next.style
    }

    fn is_blank(&self) -> bool {
        self.style.background.is_none() && self.visible_text().is_none()
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

/// Returns `true` for a Latin, Greek or Cyrillic letter, punctuation, or a box-drawing character.
fn is_in_every_monospace_font(text: &str) -> bool {
    let mut chars = text.chars();
    let is_common = |c: char| {
        matches!(c, ' '..='~' | '\u{a0}'..='\u{17f}' | '\u{391}'..='\u{3c9}' | '\u{410}'..='\u{44f}'
            | '\u{2010}'..='\u{2026}' | '\u{2500}'..='\u{259f}')
    };
    chars.next().is_some_and(is_common) && chars.next().is_none()
}
