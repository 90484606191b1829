//! The table of results.

use std::io::{self, Write};

use super::{Outcome, Summary};
use crate::screen::style::{BAD, GOOD, Look};
use crate::screen::wrap::{one_line, padded, shortened, wrapped};
use unicode_width::UnicodeWidthStr as _;

/// Draws the table, and then why cases failed.
pub(super) fn draw(
    results: &[Outcome],
    summary: &Summary,
    look: Look,
    out: &mut impl Write,
) -> io::Result<()> {
    // The verdict, then half of the rest for the name.
    let room = look
        .width
        .map_or(60, |width| (width.saturating_sub(8) / 2).max(8));
    let names: Vec<_> = results
        .iter()
        .map(|result| one_line(&result.name))
        .collect();
    let widest = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let column = widest.min(room);
    for (result, name) in results.iter().zip(&names) {
        let verdict = match result.ok() {
            true => look.paint(GOOD, "ok  "),
            false => look.paint(BAD, "FAIL"),
        };
        let name = padded(&shortened(name, column), column);
        let path = one_line(&result.path.join(" → ")).into_owned();
        let path = wrapped(&path, look.width, column + 8, column + 8);
        writeln!(out, "{verdict}  {name}  {path}")?;
        for failure in &result.failures {
            writeln!(out, "      {}", wrapped(failure, look.width, 6, 8))?;
        }
    }
    let Summary {
        passed,
        failed,
        seconds,
    } = summary;
    let verdict = match failed {
        0 => look.paint(GOOD, "ok"),
        _ => look.paint(BAD, "FAILED"),
    };
    writeln!(
        out,
        "\n{verdict}: {passed} passed, {failed} failed in {seconds:.2} s"
    )?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::super::Ended;
    use super::*;
    use crate::screen::style::{Colours, Language};

    #[test]
    fn columns_line_up_also_with_wide_characters() {
        let result = |name: &str, path: &[&str], failures: &[&str]| Outcome {
            name: name.to_owned(),
            path: path.iter().map(|agent| (*agent).to_owned()).collect(),
            payload: None,
            failures: failures
                .iter()
                .map(|failure| (*failure).to_owned())
                .collect(),
            seconds: 0.0,
            ended: Ended::Tried,
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
            seconds: 0.5,
        };
        let look = Look {
            width: Some(60),
            colours: Colours::Off,
            language: Language::En,
        };
        let mut out = Vec::new();
        draw(&results, &summary, look, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\
ok    wrong bill          Triage → Billing
FAIL  你们多扣了我一次钱  Triage → Sales
      expected 账单, got Sales

FAILED: 1 passed, 1 failed in 0.50 s
"
        );
    }
}
