//! The table of results.

use std::io::{self, Write};

use super::{CaseResult, Summary};
use crate::screen::style::{BAD, GOOD, Look, NOTICE};
use crate::screen::wrap::{one_line, padded, shortened, wrapped};
use crate::translate::translate;
use unicode_width::UnicodeWidthStr as _;

/// A table that is drawn row by row.
pub(super) struct Table {
    look: Look,
    /// The width of the column of names.
    column: usize,
}

impl Table {
    /// Creates a table for cases of these names.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>, look: Look) -> Self {
        // The name gets half of the space beside the verdict.
        let room = look
            .width
            .map_or(60, |width| (width.saturating_sub(8) / 2).max(8));
        let widest = names.map(|name| one_line(name).width()).max().unwrap_or(0);
        Self {
            look,
            column: widest.min(room),
        }
    }

    /// Draws the result of a case, with its failures.
    pub(super) fn row(&self, result: &CaseResult, out: &mut impl Write) -> io::Result<()> {
        let Self { look, column } = *self;
        let verdict = if result.passed() {
            look.paint(GOOD, look.language.choose("ok  ", "通过"))
        } else {
            look.paint(BAD, look.language.choose("FAIL", "失败"))
        };
        let name = padded(&shortened(&one_line(&result.name), column), column);
        let path = one_line(&result.path.join(" → ")).into_owned();
        let path = wrapped(&path, look.width, column + 8, column + 8);
        writeln!(out, "{verdict}  {name}  {path}")?;
        for failure in &result.failures {
            let failure = translate(failure, look.language);
            writeln!(out, "      {}", wrapped(&failure, look.width, 6, 8))?;
        }
        out.flush()
    }

    /// Draws the summary.
    pub(super) fn end(&self, summary: &Summary, out: &mut impl Write) -> io::Result<()> {
        let Summary {
            passed,
            failed,
            untried,
            seconds,
        } = summary;
        let language = self.look.language;
        let verdict = match (failed, untried) {
            (0, 0) => self.look.paint(GOOD, language.choose("ok", "通过")),
            (0, _) => self
                .look
                .paint(NOTICE, language.choose("stopped", "已停止")),
            _ => self.look.paint(BAD, language.choose("FAILED", "失败")),
        };
        let untried = match untried {
            0 => String::new(),
            untried => language.choose(
                format!(", {untried} not tried"),
                format!("，{untried} 个未运行"),
            ),
        };
        let counts = language.choose(
            format!("{passed} passed, {failed} failed{untried} in {seconds:.2} s"),
            format!("{passed} 个通过，{failed} 个失败{untried}，用时 {seconds:.2} 秒"),
        );
        writeln!(out, "\n{verdict}: {counts}")?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::style::{Colours, Language};

    #[test]
    fn columns_are_aligned_also_with_wide_characters() {
        let result = |name: &str, path: &[&str], failures: &[&str]| CaseResult {
            path: path.iter().map(|agent| (*agent).to_owned()).collect(),
            failures: failures
                .iter()
                .map(|failure| (*failure).to_owned())
                .collect(),
            ..CaseResult::new(name)
        };
        let results = [
            result("wrong bill", &["Triage", "Billing"], &[]),
            result(
                "你们多扣了我一次钱",
                &["Triage", "Sales"],
                &["expected 账单, got Sales"],
            ),
        ];
        let summary = Summary {
            passed: 1,
            failed: 1,
            untried: 2,
            seconds: 0.5,
        };
        let look = Look {
            width: Some(60),
            colours: Colours::Off,
            language: Language::En,
        };
        let mut out = Vec::new();
        let names = results.iter().map(|result| result.name.as_str());
        let table = Table::new(names, look);
        for result in &results {
            table.row(result, &mut out).unwrap();
        }
        table.end(&summary, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\
ok    wrong bill          Triage → Billing
FAIL  你们多扣了我一次钱  Triage → Sales
      expected 账单, got Sales

FAILED: 1 passed, 1 failed, 2 not tried in 0.50 s
"
        );
    }
}
