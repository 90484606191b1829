//! Recall and false alarms of redaction, measured on the texts in `tests/data/redaction`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use switchboard_core::filters::{Pii, Redaction};
use switchboard_core::items::Item;

/// The classes of the texts, and their placeholders.
const CLASSES: [(&str, &str); 7] = [
    ("card", "[CARD]"),
    ("iban", "[IBAN]"),
    ("ssn", "[SSN]"),
    ("resident_id", "[RESIDENT_ID]"),
    ("passport", "[PASSPORT]"),
    ("email", "[EMAIL]"),
    ("phone", "[PHONE]"),
];

/// The prefixes of the files of each set.
const SETS: [&str; 6] = ["", "second_", "third_", "fourth_", "fifth_", "sixth_"];

/// The sets whose held-out half nobody has read.
const UNREAD: [&str; 3] = ["", "fifth_", "sixth_"];

/// A text of a data file; see its README.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Text {
    Message { text: String },
    Parts { parts: Vec<String> },
    Arguments { arguments: String },
}

#[derive(Debug, Deserialize)]
struct Record {
    #[serde(flatten)]
    text: Text,
    #[serde(default)]
    beyond: bool,
}

fn records(file: &str) -> Vec<Record> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/redaction");
    let lines = std::fs::read_to_string(format!("{folder}/{file}.jsonl")).unwrap();
    let record = |line| serde_json::from_str(line).unwrap();
    lines.lines().map(record).collect()
}

/// Replaces the marked data, by itself or by its placeholder.
fn without_marks(text: &str, is_redacted: bool) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, marked)) = rest.split_once('⟦') {
        out.push_str(before);
        let (class, after) = marked.split_once('|').unwrap();
        let (data, after) = after.split_once('⟧').unwrap();
        let placeholder = |class: &str| {
            let known = CLASSES.iter().find(|(name, _)| *name == class);
            known.unwrap_or_else(|| panic!("no class {class:?}")).1
        };
        match (is_redacted, class.strip_prefix('#')) {
            (false, _) => out.push_str(data),
            (true, Some(class)) => write!(out, "\"{}\"", placeholder(class)).unwrap(),
            (true, None) if class.is_empty() => {}
            (true, None) => out.push_str(placeholder(class)),
        }
        rest = after;
    }
    out + rest
}

impl Text {
    fn item(&self, is_redacted: bool) -> Item {
        let text = |marked: &String| without_marks(marked, is_redacted);
        match self {
            Self::Message { text: marked } => Item::user(text(marked)),
            Self::Arguments { arguments } => Item::function_call("c", "f", &text(arguments)),
            Self::Parts { parts } => {
                let part = |marked| serde_json::json!({"type": "input_text", "text": text(marked)});
                let parts = parts
                    .iter()
                    .filter(|marked| !is_redacted || !text(marked).trim().is_empty());
                let content: Vec<_> = parts.map(part).collect();
                let item = serde_json::json!({"role": "user", "content": content});
                Item::from_json(item.to_string()).unwrap()
            }
        }
    }

    fn classes(&self) -> Vec<&'static str> {
        let marks = format!("{self:?}");
        let is_marked = |class: &str| {
            marks.contains(&format!("⟦{class}|")) || marks.contains(&format!("⟦#{class}|"))
        };
        let names = CLASSES.iter().map(|(name, _)| *name);
        names.filter(|name| is_marked(name)).collect()
    }
}

/// The JSON of an item without escapes and direction marks, which may go along with a number or stay.
fn comparable(item: &Item) -> String {
    let value: serde_json::Value = serde_json::from_str(item.as_json()).unwrap();
    value.to_string().replace(['\u{2066}', '\u{2069}'], "")
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Score {
    found: usize,
    texts: usize,
}

impl Score {
    fn percent(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "there are some hundred texts")]
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        percent(self.found, self.texts)
    }
}

/// The result for one pair of files.
#[derive(Debug, Default)]
struct Measured {
    promised: BTreeMap<&'static str, Score>,
    beyond: Score,
    false_alarms: BTreeMap<&'static str, usize>,
    clean_texts: usize,
}

fn measure(redaction: &Redaction, files: &str, print_failures: bool) -> Measured {
    let mut measured = Measured::default();
    for record in records(&format!("private_{files}")) {
        let item = record.text.item(false);
        let redacted = redaction.item(&item).unwrap_or(item);
        let is_found = comparable(&redacted) == comparable(&record.text.item(true));
        if print_failures && !is_found && !record.beyond {
            println!("missed: {:?}\n    {}", record.text, redacted.as_json());
        }
        let count = |score: &mut Score| {
            score.texts += 1;
            score.found += usize::from(is_found);
        };
        if record.beyond {
            count(&mut measured.beyond);
        } else {
            for class in record.text.classes() {
                count(measured.promised.entry(class).or_default());
            }
        }
    }
    for record in records(&format!("clean_{files}")) {
        measured.clean_texts += 1;
        let Some(redacted) = redaction.item(&record.text.item(false)) else {
            continue;
        };
        if print_failures {
            println!("false alarm: {:?}\n    {}", record.text, redacted.as_json());
        }
        for (class, placeholder) in CLASSES {
            if redacted.as_json().contains(placeholder) {
                *measured.false_alarms.entry(class).or_default() += 1;
            }
        }
    }
    measured
}

/// The table of the documentation.
fn table([development, held_out]: &[Measured; 2]) -> String {
    let mut table = String::from(
        "| class | found, development | found, held out | false alarms, development | false alarms, held out |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    let score = |score: Score| {
        format!(
            "{} of {} ({:.1} %)",
            score.found,
            score.texts,
            score.percent()
        )
    };
    for (class, _) in CLASSES {
        let found = |set: &Measured| score(set.promised.get(class).copied().unwrap_or_default());
        let alarms = |set: &Measured| {
            let count = set.false_alarms.get(class).copied().unwrap_or_default();
            format!("{count} of {}", set.clean_texts)
        };
        writeln!(
            table,
            "| `{class}` | {} | {} | {} | {} |",
            found(development),
            found(held_out),
            alarms(development),
            alarms(held_out)
        )
        .unwrap();
    }
    writeln!(
        table,
        "| not promised | {} | {} | | |",
        score(development.beyond),
        score(held_out.beyond)
    )
    .unwrap();
    table
}

/// Measures the two halves of the first set, or with a prefix, such as `second_`, of another.
fn halves(prefix: &str) -> [Measured; 2] {
    let redaction = Redaction::new();
    [
        measure(&redaction, &format!("{prefix}development"), true),
        // Nobody looks at which texts of these fail.
        measure(
            &redaction,
            &format!("{prefix}held_out"),
            !UNREAD.contains(&prefix),
        ),
    ]
}

#[test]
fn at_least_99_percent_of_what_is_promised_is_found_with_at_most_1_percent_of_false_alarms() {
    for set in halves("") {
        for (class, _) in CLASSES {
            let score = set.promised[class];
            assert!(score.percent() >= 99.0, "{class}: {score:?}");
        }
        let alarms: usize = set.false_alarms.values().sum();
        assert!(alarms * 100 <= set.clean_texts, "{:?}", set.false_alarms);
    }
}

#[test]
fn of_each_other_set_as_a_whole_it_is_the_same() {
    for prefix in &SETS[1..] {
        let halves = halves(prefix);
        let scores = halves.iter().flat_map(|half| half.promised.values());
        let all = scores.fold(Score::default(), |sum, score| Score {
            found: sum.found + score.found,
            texts: sum.texts + score.texts,
        });
        assert!(all.percent() >= 99.0, "{prefix}: {all:?}");
        let alarms = halves.iter().flat_map(|half| half.false_alarms.values());
        let clean_texts: usize = halves.iter().map(|half| half.clean_texts).sum();
        assert!(alarms.sum::<usize>() * 100 <= clean_texts, "{prefix}");
    }
}

#[test]
fn the_guide_has_the_measured_tables() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/redaction.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let mut missing = Vec::new();
    for prefix in SETS {
        let table = table(&halves(prefix));
        println!("{table}");
        if !guide.contains(&table) {
            missing.push(table);
        }
    }
    assert!(
        missing.is_empty(),
        "docs/redaction.md must have these tables:\n{}",
        missing.join("\n")
    );
}

#[test]
fn the_sets_cover_classes_countries_and_scripts() {
    let count = |file: &str| {
        records(&format!("{file}_development")).len() + records(&format!("{file}_held_out")).len()
    };
    assert!(count("private") >= 400 && count("clean") >= 400);
    let lines = |file: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/redaction");
        std::fs::read_to_string(format!("{folder}/{file}.jsonl")).unwrap()
    };
    let private = lines("private_development") + &lines("private_held_out");
    let forms = private
        .lines()
        .filter_map(|line| line.strip_prefix("{\"form\": \""));
    let countries = forms
        .filter_map(|form| form.split_once(", "))
        .map(|(country, _)| country);
    let mut countries: Vec<&str> = countries.filter(|country| country.len() == 2).collect();
    countries.sort_unstable();
    countries.dedup();
    assert!(countries.len() >= 45, "{countries:?}");
}

#[test]
fn classes_are_switched_on_and_off_with_placeholders_of_their_own() {
    let text = "ann@example.com, 4111 1111 1111 1111, DE89 3704 0044 0532 0130 00";
    let of = |redaction: Redaction| redaction.text(text).into_owned();
    assert_eq!(of(Redaction::new()), "[EMAIL], [CARD], [IBAN]");
    assert_eq!(
        of(Redaction::new().only([Pii::Card])),
        "ann@example.com, [CARD], DE89 3704 0044 0532 0130 00"
    );
    assert_eq!(
        of(Redaction::new().without([Pii::Card, Pii::Iban])),
        "[EMAIL], 4111 1111 1111 1111, DE89 3704 0044 0532 0130 00"
    );
    let own = Redaction::new()
        .placeholder(Pii::Card, "****")
        .placeholder(Pii::Email, "bob@example.com")
        .placeholder(Pii::Card, "<card>");
    assert_eq!(of(own), "bob@example.com, <card>, [IBAN]");
    assert_eq!(of(Redaction::new().only([])), text);
    for class in Pii::ALL {
        assert_eq!(
            format!("[{}]", class.name().to_uppercase()),
            class.placeholder()
        );
    }
}

#[test]
fn data_of_a_class_that_is_off_is_not_taken_for_another() {
    let phones = Redaction::new().only([Pii::Phone]);
    for text in [
        "DE89 3704 0044 0532 0130 00",
        "4111 0201 2345 6788",
        "13812345678@example.com",
    ] {
        assert_eq!(phones.text(text), text);
    }
}

#[test]
fn a_pattern_and_a_class_that_overlap_hide_both() {
    let redaction = Redaction::new().pattern(r"Ref [0-9]{4}", "[REF]").unwrap();
    let redacted = redaction.text("Ref 4111 1111 1111 1111 and Ref 1234");
    assert_eq!(redacted, "[CARD] and [REF]");
}

/// The texts of the parts of a message after redaction.
fn redacted_parts(parts: &[&str]) -> Vec<String> {
    let content = parts
        .iter()
        .map(|text| serde_json::json!({"type": "input_text", "text": text}));
    let item = serde_json::json!({"role": "user", "content": content.collect::<Vec<_>>()});
    let item = Item::from_json(item.to_string()).unwrap();
    let redacted = Redaction::new().item(&item).unwrap_or(item);
    let redacted: serde_json::Value = serde_json::from_str(redacted.as_json()).unwrap();
    let parts = redacted["content"].as_array().unwrap().iter();
    parts
        .map(|part| part["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn words_in_one_part_of_a_message_say_what_a_number_in_the_next_is() {
    for (parts, expected) in [
        (&["SSN", "123456789"][..], &["SSN", "[SSN]"][..]),
        (
            &["My SSN is", "123456789", "thanks"],
            &["My SSN is", "[SSN]", "thanks"],
        ),
        (
            &["passport number", "X1234567"],
            &["passport number", "[PASSPORT]"],
        ),
        (
            &["passport number:", "X1234567"],
            &["passport number:", "[PASSPORT]"],
        ),
        (&["order", "4155552671"], &["order", "4155552671"]),
        (&["phone", "4155552671"], &["phone", "[PHONE]"]),
        (&["护照号", "X1234567"], &["护照号", "[PASSPORT]"]),
        // What is data by itself stays it, whatever stands before.
        (
            &["order 12", "4111 1111 1111 1111"],
            &["order 12", "[CARD]"],
        ),
        (&["room 12", "415-555-2671"], &["room 12", "[PHONE]"]),
        // A part with JSON is searched by itself.
        (
            &["{\"a\": 1}", "SSN", "123456789"],
            &["{\"a\": 1}", "SSN", "[SSN]"],
        ),
    ] {
        assert_eq!(redacted_parts(parts), expected, "{parts:?}");
    }
}

#[test]
fn a_part_of_which_nothing_is_left_is_left_out() {
    assert_eq!(
        redacted_parts(&["Card 4111 1111", " 1111 1111", "thanks", ""]),
        ["Card [CARD]", "thanks", ""]
    );
    assert_eq!(redacted_parts(&["4111 1111 ", "1111 1111 "]), ["[CARD]"]);
    let hidden = Redaction::new().placeholder(Pii::Card, "");
    let item = serde_json::json!({"role": "user", "content": [
        {"type": "input_text", "text": "4111 1111 1111 1111"},
        {"type": "input_image", "image_url": "data:"},
    ]});
    let item = Item::from_json(item.to_string()).unwrap();
    let left = hidden.item(&item).unwrap();
    assert!(
        left.as_json().contains("\"text\":\"\""),
        "{}",
        left.as_json()
    );
}
