//! Tables, which are drawn once all of their rows are there.

use super::inline::{Base, Before, End, render};
use super::styles::{BOLD, mark};
use crate::screen::wrap::columns;

/// The space between columns.
const BETWEEN: &str = " │ ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alignment {
    Left,
    Middle,
    Right,
}

/// Returns `true` if these two lines begin a table.
pub(super) fn is_table(header: &str, delimiters: &str) -> bool {
    alignments(delimiters).is_some_and(|columns| columns.len() == cells(header).len())
}

/// Draws a table, one line a row. If it is wider than `room`, its cells are not aligned.
pub(super) fn draw(lines: &[String], room: Option<usize>) -> Vec<String> {
    let alignments = lines.get(1).and_then(|line| alignments(line));
    let alignments = alignments.unwrap_or_default();
    let rows: Vec<Vec<String>> = lines
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != 1)
        .map(|(index, line)| {
            let styles = if index == 0 { BOLD } else { 0 };
            cells(line).iter().map(|cell| drawn(cell, styles)).collect()
        })
        .collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| columns(cell)).max().unwrap_or(0)
        })
        .collect();
    let width = widths.iter().sum::<usize>() + count.saturating_sub(1) * 3;
    let is_aligned = room.is_none_or(|room| width <= room);
    let mut drawn = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let cells = widths.iter().enumerate().map(|(column, width)| {
            let cell = row.get(column).map_or("", String::as_str);
            let missing = width.saturating_sub(columns(cell));
            let left = match alignments.get(column) {
                _ if !is_aligned => return cell.to_owned(),
                Some(Alignment::Right) => missing,
                Some(Alignment::Middle) => missing / 2,
                _ => 0,
            };
            format!("{:left$}{cell}{:right$}", "", "", right = missing - left)
        });
        drawn.push(cells.collect::<Vec<_>>().join(BETWEEN));
        if index == 0 {
            let lines = widths.iter().map(|width| match room {
                Some(room) if !is_aligned => "─".repeat(room.min(8) / count.max(1)),
                _ => "─".repeat(*width),
            });
            drawn.push(lines.collect::<Vec<_>>().join("─┼─"));
        }
    }
    drawn
}

fn drawn(cell: &str, styles: u32) -> String {
    let before = Before {
        last: '\n',
        in_url: false,
    };
    let base = Base { styles, prefix: "" };
    let rendered = render(cell, before, base, End::Final);
    let text = rendered.map(|rendered| rendered.marked).unwrap_or_default();
    if styles == 0 || text.is_empty() {
        return text;
    }
    format!("{}{text}{}", mark(styles), mark(0))
}

/// The cells of a row. `\|` is a bar within a cell.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut cells = vec![String::new()];
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, cells.last_mut()) {
            ('|', _) => cells.push(String::new()),
            ('\\', Some(cell)) if chars.peek() == Some(&'|') => cell.extend(chars.next()),
            (c, Some(cell)) => cell.push(c),
            (_, None) => {}
        }
    }
    if cells.len() > 1 && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn alignments(line: &str) -> Option<Vec<Alignment>> {
    let of_cell = |cell: &String| {
        let dashes = cell.strip_prefix(':').unwrap_or(cell);
        let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
        if dashes.is_empty() || dashes.chars().any(|c| c != '-') {
            return None;
        }
        Some(match (cell.starts_with(':'), cell.ends_with(':')) {
            (true, true) => Alignment::Middle,
            (false, true) => Alignment::Right,
            _ => Alignment::Left,
        })
    };
    cells(line).iter().map(of_cell).collect()
}
