//! The headers of tables in text, which say what the numbers in their columns are.

use std::ops::Range;

use super::labels::{self, Meaning};

/// The cells of tables whose header names a phone or another thing, in order.
#[derive(Default)]
pub(super) struct Columns {
    cells: Vec<(Range<usize>, Meaning)>,
}

/// A header and the rows after it so far.
struct Table {
    delimiter: char,
    meanings: Vec<Option<Meaning>>,
}

impl Columns {
    /// Finds the tables of a text: a line of words divided by `|`, tabs, commas or semicolons, and lines after it with as many cells.
    pub(super) fn new(text: &str) -> Self {
        let mut columns = Self::default();
        if !text.contains('\n') {
            return columns;
        }
        super::count_steps(text.len());
        let mut table: Option<Table> = None;
        let mut before: Option<&str> = None;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let row = line.trim_end_matches(['\n', '\r']);
            if table
                .as_ref()
                .is_none_or(|table| cells(row, table.delimiter).count() != table.meanings.len())
            {
                table = before.and_then(|header| Table::new(header, row));
            }
            if let Some(table) = &table {
                let cells = cells(row, table.delimiter).zip(&table.meanings);
                let named = cells.filter_map(|(cell, meaning)| Some((cell, (*meaning)?)));
                columns.cells.extend(
                    named.map(|(cell, meaning)| (start + cell.start..start + cell.end, meaning)),
                );
            }
            before = Some(row);
            start += line.len();
        }
        columns
    }

    /// Returns what the header says of a number that is all of its cell.
    pub(super) fn meaning(&self, number: &Range<usize>) -> Option<Meaning> {
        let next = self
            .cells
            .partition_point(|(cell, _)| cell.end < number.end);
        let (cell, meaning) = self.cells.get(next)?;
        (cell.start <= number.start && number.start - cell.start <= 1 && cell.end - number.end <= 1)
            .then_some(*meaning)
    }
}

impl Table {
    /// Reads a header, if the row after it has as many cells.
    fn new(header: &str, row: &str) -> Option<Self> {
        const LONGEST_NAME: usize = 32;
        let delimiter = ['|', '\t', ';', ',']
            .into_iter()
            .find(|delimiter| header.contains(*delimiter))?;
        // "About my order, please" is a sentence.
        let most_words = if matches!(delimiter, ',' | ';') { 2 } else { 5 };
        let is_name = |name: &str| {
            name.len() <= LONGEST_NAME
                && name.split_whitespace().take(most_words + 1).count() <= most_words
                && !name.contains(|c: char| c.is_ascii_digit())
        };
        let names = || cells(header, delimiter).map(|cell| &header[cell]);
        if names().count() != cells(row, delimiter).count() || !names().all(is_name) {
            return None;
        }
        let meanings = names().map(|name| labels::meaning_of_key(&labels::words_of_key(name)));
        Some(Self {
            delimiter,
            meanings: meanings.collect(),
        })
    }
}

/// Returns the ranges of the cells of a row, without the spaces and quotes around them.
fn cells(row: &str, delimiter: char) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    row.split(delimiter).map(move |cell| {
        let trimmed = cell.trim_start_matches([' ', '"', '\'']);
        let begin = start + cell.len() - trimmed.len();
        start += cell.len() + delimiter.len_utf8();
        begin..begin + trimmed.trim_end_matches([' ', '"', '\'']).len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_names_the_cells_below() {
        let meanings = |text: &str| {
            let columns = Columns::new(text);
            let cells = columns.cells.into_iter();
            cells
                .map(|(cell, meaning)| (text[cell].to_owned(), meaning))
                .collect::<Vec<_>>()
        };
        let phone = |cell: &str| (cell.to_owned(), Meaning::Phone);
        let other = |cell: &str| (cell.to_owned(), Meaning::Other);
        assert_eq!(
            meanings("order,phone\n12,34\n56,78\n\n9,0"),
            [other("12"), phone("34"), other("56"), phone("78")]
        );
        assert_eq!(
            meanings("| phone |\n|---|\n| 1 |"),
            [phone("---"), phone("1")]
        );
        assert_eq!(meanings("my order, please\ncall 12"), []);
    }
}
