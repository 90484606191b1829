//! The results in the form of JUnit, which many services for continuous integration show.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::{CaseEnd, CaseResult};
use crate::atomic_write;
use crate::failure::Failure;

/// Checks that the file can be written over: that it is no file of anything else.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    if !path.is_file() {
        return Ok(());
    }
    let mut start = String::new();
    let read = File::open(path).and_then(|file| file.take(1_000).read_to_string(&mut start));
    let is_report = read.is_ok() && (start.trim().is_empty() || start.contains("<testsuite"));
    if is_report {
        return Ok(());
    }
    Err(Failure::usage(
        format!(
            "{} is there already and is no report of JUnit",
            path.display()
        ),
        "name another file with --junit, or delete this one",
    ))
}

/// Writes the results to a file.
pub(super) fn write(
    path: &Path,
    suite: &str,
    results: &[CaseResult],
    seconds: f64,
) -> Result<(), Failure> {
    let xml = xml(suite, results, seconds);
    atomic_write::write(&[(path.to_owned(), xml.as_bytes())])
}

fn xml(suite: &str, results: &[CaseResult], seconds: f64) -> String {
    let is_invalid = |result: &&CaseResult| result.end == CaseEnd::Invalid;
    let errors = results.iter().filter(is_invalid).count();
    let failed = results.iter().filter(|result| !result.passed()).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{errors}\" time=\"{seconds:.3}\"",
        results.len(),
        failed - errors
    );
    let suite = escaped(suite);
    // Writing to a String cannot fail.
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites {counts}>");
    let _ = writeln!(out, "  <testsuite name=\"{suite}\" {counts}>");
    for result in results {
        let name = escaped(&result.name);
        let case = format!(
            "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"{:.3}\"",
            result.seconds
        );
        if result.passed() {
            let _ = writeln!(out, "{case}/>");
            continue;
        }
        let kind = if result.end == CaseEnd::Invalid {
            "error"
        } else {
            "failure"
        };
        let first = escaped(result.failures.first().map_or("", String::as_str));
        let all = escaped(&result.failures.join("\n"));
        let path = escaped(&result.path.join(" → "));
        let _ = writeln!(out, "{case}>");
        let _ = writeln!(
            out,
            "      <{kind} message=\"{first}\">{all}\n{path}</{kind}>"
        );
        let _ = writeln!(out, "    </testcase>");
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

/// Escapes text for XML. Control characters, which XML does not allow, become spaces.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_invalid_cases_are_told_apart_and_text_is_escaped() {
        let result = |name: &str, failures: &[&str], end| CaseResult {
            failures: failures.iter().map(|text| (*text).to_owned()).collect(),
            path: vec!["A".to_owned()],
            seconds: 0.5,
            end,
            ..CaseResult::new(name)
        };
        let results = [
            result("ok", &[], CaseEnd::Completed),
            result("a <b>", &["got \"x\" & y", "two"], CaseEnd::Completed),
            result("case 3", &["no message"], CaseEnd::Invalid),
        ];
        assert_eq!(
            xml("cases.toml", &results, 1.5),
            "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites tests=\"3\" failures=\"1\" errors=\"1\" time=\"1.500\">
  <testsuite name=\"cases.toml\" tests=\"3\" failures=\"1\" errors=\"1\" time=\"1.500\">
    <testcase classname=\"cases.toml\" name=\"ok\" time=\"0.500\"/>
    <testcase classname=\"cases.toml\" name=\"a &lt;b&gt;\" time=\"0.500\">
      <failure message=\"got &quot;x&quot; &amp; y\">got &quot;x&quot; &amp; y&#10;two\nA</failure>
    </testcase>
    <testcase classname=\"cases.toml\" name=\"case 3\" time=\"0.500\">
      <error message=\"no message\">no message\nA</error>
    </testcase>
  </testsuite>
</testsuites>
"
        );
    }
}
