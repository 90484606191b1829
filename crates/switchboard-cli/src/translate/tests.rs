//! The catalogue has every text of the program that a user can see.

use std::path::{Path, PathBuf};

use super::*;

#[test]
fn texts_are_translated_with_what_is_in_their_holes() {
    let zh = |text| translate(text, Language::Zh).into_owned();
    assert_eq!(zh("there is no agent \"Biling\""), "没有成员“Biling”");
    assert_eq!(
        zh("there is no price of the model \"m\", which \"A\" uses"),
        "\"A\" 使用的模型 \"m\" 没有价格"
    );
    assert_eq!(zh("something new"), "something new");
    assert_eq!(
        translate("there is no agent \"x\"", Language::En),
        "there is no agent \"x\""
    );
}

#[test]
fn every_translation_has_the_holes_of_its_text() {
    for entry in PROGRAM.iter().chain(MODELS.iter()) {
        let holes = entry.literals.len() - 1;
        let in_order = entry.translation.matches("{}").count();
        let numbered =
            (1..=holes).filter(|number| entry.translation.contains(&format!("{{{number}}}")));
        let count = if in_order > 0 {
            in_order
        } else {
            numbered.count()
        };
        assert_eq!(count, holes, "{}", entry.translation);
    }
}

#[test]
fn lists_and_fields_are_translated_within_texts() {
    let zh = |text| translate(text, Language::Zh).into_owned();
    assert_eq!(
        zh(r#"there are "a", "b" and "c""#),
        r#"现有 "a"、"b" 和 "c""#
    );
    assert_eq!(
        zh(r#""tools" must be a list or a table, and this is a number"#),
        r#""tools" 必须是列表 或 表，而这里是数字"#
    );
    assert_eq!(
        zh("tools: The names of its tools."),
        "tools：其工具的名称。"
    );
    assert_eq!(zh("salt and pepper"), "salt and pepper");
}

#[test]
fn clauses_are_translated_from_the_end_and_not_within_quotes() {
    let zh = |text| translate(text, Language::Zh).into_owned();
    for (text, expected) in [
        ("check the path; try again", "请检查路径；请重试"),
        ("one; two; try again", "one; two；请重试"),
        ("try again; two", "try again; two"),
        (r#"a "b; try again; c""#, r#"a "b; try again; c""#),
        (r#"a "b; try again""#, r#"a "b; try again""#),
        (
            r#"conversations in "a; try again; b": check the path; try again"#,
            r#""a; try again; b" 中的对话：请检查路径；请重试"#,
        ),
    ] {
        assert_eq!(zh(text), expected);
    }
}

#[test]
fn the_words_of_a_server_are_not_translated() {
    let zh = |text: &str| translate(text, Language::Zh).into_owned();
    let address = "http://localhost:1/v1/responses";
    for (text, expected) in [
        (
            "status 400: try again; sent 3 times",
            "状态 400：try again；共发送 3 次",
        ),
        (
            r#"status 400 (c): SQL "select 1; try again; drop table""#,
            r#"状态 400 (c)：SQL "select 1; try again; drop table""#,
        ),
        ("status 400: bad; try again", "状态 400：bad; try again"),
        (
            "status 400: there are no agents; try again; request id r",
            "状态 400：there are no agents; try again；请求编号 r",
        ),
        (
            "status 400: 5\" disks; try again; check the model's name",
            "状态 400：5\" disks; try again；请检查模型的名称",
        ),
        (
            "status 413: the server did not say why; the conversation is too long for the model; shorten it",
            "状态 413：服务器没有说明原因；对话对模型来说太长；请缩短对话",
        ),
        ("status 400: {1} and {2}", "状态 400：{1} and {2}"),
    ] {
        let text = format!("agent \"A\": the model could not answer: {address}: {text}");
        let expected = format!("成员“A”：模型未能回答：{address}：{expected}");
        assert_eq!(zh(&text), expected, "{text}");
    }
    // An error that is reported within an answer has no status.
    let text = format!("{address}: there are no agents; try again; sent 2 times");
    let expected = format!("{address}: there are no agents; try again；共发送 2 次");
    assert_eq!(zh(&text), expected);
}

#[test]
fn every_description_of_a_field_is_translated() {
    fn descriptions<'s>(schema: &'s serde_json::Value, found: &mut Vec<&'s str>) {
        match schema {
            serde_json::Value::Object(fields) => {
                found.extend(fields.get("description").and_then(|text| text.as_str()));
                fields.values().for_each(|field| descriptions(field, found));
            }
            serde_json::Value::Array(items) => {
                items.iter().for_each(|item| descriptions(item, found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    descriptions(switchboard_teamfile::TeamFile::schema(), &mut found);
    assert!(found.len() > 250);
    // The schemas of other files are not public.
    let others = [
        include_str!("../../../switchboard-teamfile/src/approval_rules.rs"),
        include_str!("../../../switchboard-teamfile/src/cases.rs"),
    ];
    let field =
        regex::Regex::new(r"(?m)^    /// (.*)\n    (?:#\[.*\]\n    )?\w+(?:: |,\n)").unwrap();
    let described = others.iter().flat_map(|source| field.captures_iter(source));
    let before = found.len();
    found.extend(described.map(|found| found.get(1).unwrap().as_str()));
    assert!(found.len() > before + 15);
    found.retain(|text| translate(text, Language::Zh) == *text);
    assert_eq!(found, Vec::<&str>::new());
}

/// Texts of the source that no user of the program reads in Chinese: for models, for programs, or
/// parts of other texts.
pub(crate) const NOT_SHOWN: &str = include_str!("not_shown.txt");

#[test]
fn every_text_of_the_source_is_translated() {
    let folder = |path: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut files = Vec::new();
    source_files(&folder("src"), &mut files);
    source_files(&folder("../switchboard-teamfile/src"), &mut files);
    files.push(folder("../switchboard-core/src/team/check.rs"));
    files.push(folder("../switchboard-core/src/conversation/error.rs"));
    let not_shown: Vec<&str> = NOT_SHOWN.lines().collect();
    let mut missing = Vec::new();
    for file in files {
        let source = std::fs::read_to_string(&file).unwrap();
        let texts = literals(&source);
        for (index, text) in texts.iter().enumerate() {
            // A text that is chosen by the language has its translation right after it.
            let is_chinese =
                |text: &String| text.chars().any(|c| ('\u{4e00}'..'\u{9fff}').contains(&c));
            let is_chosen = texts[index..].iter().take(3).any(is_chinese);
            if is_sentence(text)
                && !is_chosen
                && !is_known(text)
                && !not_shown.contains(&text.trim())
            {
                missing.push(format!("{}: {text}", file.file_name().unwrap().display()));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "without a translation:\n{}",
        missing.join("\n")
    );
}

fn source_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "translate" {
            source_files(&path, files);
        } else if name.ends_with(".rs")
            && !matches!(&*name, "tests.rs" | "args.rs" | "translate.rs")
        {
            files.push(path);
        }
    }
    files.sort();
}

/// The literals of a source file up to its tests, with `{}` for what is put in.
pub(crate) fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let code = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: Vec<&str> = code
        .filter(|line| !line.trim_start().starts_with("#["))
        .collect();
    let code = code.join("\n");
    let literal = regex::Regex::new(r#"(?s)'(?:\\.|[^\\'\n])'|"((?:\\.|[^"\\])*)""#).unwrap();
    let hole = regex::Regex::new(r"\{[^{}]*\}").unwrap();
    let line_end = regex::Regex::new(r"\\\n\s*").unwrap();
    let texts = literal
        .captures_iter(&code)
        .filter_map(|found| found.get(1));
    texts
        .map(|text| {
            let text = line_end.replace_all(text.as_str(), "");
            let text = text
                .replace("\\\"", "\"")
                .replace("\\n", " ")
                .replace("\\\\", "\\");
            let text = text.replace("{{", "\u{1}").replace("}}", "\u{2}");
            let text = hole.replace_all(&text, "{}");
            text.replace('\u{1}', "{").replace('\u{2}', "}")
        })
        .collect()
}

/// Two words and a space.
fn is_sentence(text: &str) -> bool {
    let is_word = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_alphabetic());
    let words = text.split([' ', ',', ':', ';', '.']).filter(is_word);
    text.trim().contains(' ') && words.count() > 1
}

/// The catalogue has the text, or one of the texts that it can become.
fn is_known(text: &str) -> bool {
    let template = Entry {
        literals: text
            .split("{}")
            .map(|part| &*String::leak(part.to_owned()))
            .collect(),
        translation: "",
    };
    let plain = text.replace("{}", "X1");
    translate(&plain, Language::Zh) != plain
        || PROGRAM.iter().any(|entry| {
            let text = entry
                .literals
                .join("X1")
                .replace("{{", "{")
                .replace("}}", "}");
            template.literals.len() > 1 && template.holes(&text).is_some()
        })
}
