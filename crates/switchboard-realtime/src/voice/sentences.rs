//! Sentences of a text that grows, and the words of them that are spoken.

/// The number of characters after which a sentence is divided.
const LONG: usize = 240;

/// The number of characters that a part of a long sentence has at least.
const SHORTEST_PART: usize = 60;

/// Words that a full stop ends without ending the sentence.
const ABBREVIATIONS: [&str; 22] = [
    "mr", "mrs", "ms", "dr", "prof", "st", "vs", "e.g", "i.e", "cf", "no", "nr", "approx", "inc",
    "ltd", "co", "fig", "vol", "jan", "feb", "sept", "dec",
];

/// Divides a text into sentences while it grows. The sentences make up the text: nothing is left out.
#[derive(Debug, Default)]
pub(crate) struct SentenceSplitter {
    text: String,
}

impl SentenceSplitter {
    /// Adds to the text.
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// The next sentence that is complete, with the white space after it.
    pub(crate) fn next(&mut self) -> Option<String> {
        let end = sentence_end(&self.text).or_else(|| long_part_end(&self.text))?;
        let rest = self.text.split_off(end);
        Some(std::mem::replace(&mut self.text, rest))
    }

    /// The text that is left, complete or not.
    pub(crate) fn flush(&mut self) -> Option<String> {
        let text = std::mem::take(&mut self.text);
        (!text.is_empty()).then_some(text)
    }
}

/// The end of the first sentence, if something follows that shows that it has ended.
fn sentence_end(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().peekable();
    let mut has_words = false;
    while let Some((at, character)) = characters.next() {
        has_words |= character.is_alphanumeric();
        let is_end = match character {
            '\n' => has_words,
            '.' | '!' | '?' | '…' | ':' => has_words,
            '。' | '！' | '？' | '；' => has_words,
            _ => false,
        };
        if !is_end {
            continue;
        }
        let mut end = at + character.len_utf8();
        // Quotes and brackets close with the sentence.
        while let Some((at, next)) = characters.peek().copied()
            && matches!(
                next,
                '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '」' | '』' | '.' | '!' | '?'
            )
        {
            end = at + next.len_utf8();
            characters.next();
        }
        if matches!(character, '。' | '！' | '？' | '；' | '\n') {
            // The white space after it, as far as it is there.
            let rest = &text[end..];
            return Some(end + rest.len() - rest.trim_start().len());
        }
        let rest = &text[end..];
        let following = rest.trim_start();
        let white_space = rest.len() - following.len();
        // Something must follow: "3." may become "3.5", and "e.g." go on.
        let next = following.chars().next()?;
        if white_space == 0 {
            continue;
        }
        let goes_on = match character {
            ':' => !rest[..white_space].contains('\n'),
            '.' => next.is_lowercase() || is_abbreviation(&text[..at]),
            _ => false,
        };
        if !goes_on {
            return Some(end + white_space);
        }
    }
    None
}

/// Returns `true` if a full stop after this text belongs to its last word: an abbreviation, an initial, or the
/// number of an entry of a list.
fn is_abbreviation(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let word = line.rsplit(char::is_whitespace).next().unwrap_or_default();
    let word = word.trim_start_matches(['(', '"', '\'', '[']);
    let is_initial =
        word.chars().count() == 1 && word.chars().all(char::is_uppercase) && word != "I";
    let is_entry = line.trim() == word && word.chars().all(|c| c.is_ascii_digit());
    is_initial || is_entry || ABBREVIATIONS.contains(&word.to_lowercase().as_str())
}

/// The end of a part of a text that is long without being a sentence: at a comma, or between words.
fn long_part_end(text: &str) -> Option<usize> {
    let (limit, _) = text.char_indices().nth(LONG)?;
    let (shortest, _) = text.char_indices().nth(SHORTEST_PART)?;
    let part = &text[..limit];
    let after = |at: usize, character: char| at + character.len_utf8();
    let last = |is_place: fn(char) -> bool| {
        let mut places = part
            .char_indices()
            .filter(|(at, c)| *at >= shortest && is_place(*c));
        places
            .next_back()
            .map(|(at, character)| after(at, character))
    };
    last(|c| matches!(c, ',' | ';' | '，' | '、'))
        .or_else(|| last(char::is_whitespace))
        .or(Some(limit))
}

/// The words of a text as they are spoken: without the marks of Markdown. `None` if there are none.
pub(crate) fn spoken_words(text: &str) -> Option<String> {
    let mut words = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim_start();
        let line = line.trim_start_matches(['#', '>', '|']).trim_start();
        let line = ["- ", "* ", "+ "]
            .iter()
            .find_map(|mark| line.strip_prefix(mark))
            .unwrap_or(line);
        if !words.is_empty() {
            words.push(' ');
        }
        push_line(&mut words, line);
    }
    let words: Vec<&str> = words.split_whitespace().collect();
    let words = words.join(" ");
    words.contains(char::is_alphanumeric).then_some(words)
}

/// Adds a line: links by their text, emphasis and code without marks.
fn push_line(words: &mut String, line: &str) {
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        if character == '['
            && let Some((text, after)) = rest[1..].split_once("](")
            && !text.contains(['[', ']'])
            && let Some((_, after)) = after.split_once(')')
        {
            push_line(words, text);
            rest = after;
            continue;
        }
        match character {
            '*' | '`' | '|' => {}
            '_' if rest.starts_with("__") => {}
            _ => words.push(character),
        }
        rest = &rest[character.len_utf8()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sentences of a text that comes in pieces of this many characters.
    fn sentences(text: &str, size: usize) -> Vec<String> {
        let mut splitter = SentenceSplitter::default();
        let mut sentences = Vec::new();
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(size) {
            splitter.push(&piece.iter().collect::<String>());
            sentences.extend(std::iter::from_fn(|| splitter.next()));
        }
        sentences.extend(splitter.flush());
        sentences
    }

    #[test]
    fn a_text_is_divided_into_sentences_however_it_comes() {
        for (text, expected) in [
            (
                "Hello! Which bill? It is fixed.",
                &["Hello! ", "Which bill? ", "It is fixed."][..],
            ),
            (
                "Mr. J. Smith paid 3.5 euros, e.g. by card. Done.",
                &["Mr. J. Smith paid 3.5 euros, e.g. by card. ", "Done."],
            ),
            (
                "Try this:\n1. Restart it.\n2. Wait.",
                &["Try this:\n", "1. Restart it.\n", "2. Wait."],
            ),
            (
                "He said \"Stop.\" Then he left.",
                &["He said \"Stop.\" ", "Then he left."],
            ),
            (
                "账单已更正。请稍等！谢谢",
                &["账单已更正。", "请稍等！", "谢谢"],
            ),
            ("One\n\nTwo", &["One\n\n", "Two"]),
            ("... what? Yes", &["... what? ", "Yes"]),
            ("see example.com now", &["see example.com now"]),
        ] {
            for size in [1, 2, 3, 7, 1000] {
                let found = sentences(text, size);
                assert_eq!(found.concat(), text);
                let trimmed = found.iter().map(|sentence| sentence.trim());
                let trimmed: Vec<&str> = trimmed.filter(|text| !text.is_empty()).collect();
                let expected: Vec<&str> = expected.iter().map(|text| text.trim()).collect();
                assert_eq!(trimmed, expected, "{text} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_text_without_sentences_is_divided_all_the_same() {
        let words = "word ".repeat(1_000);
        let found = sentences(&words, 10);
        assert_eq!(found.concat(), words);
        assert!(found.iter().all(|part| part.chars().count() <= LONG));
        let found = sentences(&"x".repeat(1_000), 10);
        assert!(found.iter().all(|part| part.chars().count() <= LONG));
        let found = sentences(&"word, ".repeat(100), 10);
        assert!(found[0].ends_with(','), "{found:?}");
    }

    #[test]
    fn markdown_is_not_spoken() {
        for (text, expected) in [
            (
                "**Done.** See [the guide](https://example.com/a).",
                Some("Done. See the guide."),
            ),
            ("## Plans\n- *Basic*: `10`\n", Some("Plans Basic: 10")),
            ("| a | b |", Some("a b")),
            ("---\n", None),
            (" \n", None),
            ("2 [x] 3", Some("2 [x] 3")),
        ] {
            assert_eq!(spoken_words(text).as_deref(), expected, "{text}");
        }
    }
}
