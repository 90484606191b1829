//! E-mail addresses, plain and obfuscated.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::normalize::is_mark;
use super::numbers::first_bytes;

/// The most characters before the at sign, and bytes after it (RFC 5321).
const MAX_LOCAL: usize = 64;
const MAX_DOMAIN: usize = 255;

/// Matches what stands for an at sign: the sign, in brackets or not, words in brackets, and words between
/// spaces, dashes or underscores.
static AT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let bracketed = format!(r"[\[({{<] ?(?:@|at|ät|a|{NAMES}) ?[\])}}>]");
    let plain = "@|&#0*64;|&#x0*40;|&commat;|%40|艾特|小老鼠|골뱅이|アットマーク";
    Regex::new(&format!(
        "(?i)(?<sign> ?(?:{bracketed}|{plain}) ?)|[ _-](?:(?<at>at)|(?<name>{NAMES}))[ _-]"
    ))
    .ok()
});

/// The names of the at sign in other languages than English. They mean little else.
const NAMES: &str = "arroba|arobas|arobase|chiocciola|małpa|zavináč|kukac|apenstaartje|snabel-a|snabela|собака|собачка";

/// Words for a dot. The French one is another word in English, and only understood in brackets.
const DOTS: &str = "dot|punkt|punto|ponto|kropka|tečka|bodka|nokta|точка";

/// Matches what stands for a dot in a domain.
static DOT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let bracketed = format!(r" ?[\[({{<] ?(?:\.|{DOTS}|point) ?[\])}}>] ?");
    let words = format!("[ _-](?:{DOTS})[ _-]|点");
    Regex::new(&format!(r"^(?i:(?<word>{bracketed}|{words})|\.|。| \. )")).ok()
});

/// Matches a text that may have an obfuscated address without an at sign. The patterns are literals, so
/// that most texts are ruled out fast.
pub(super) fn may_be_obfuscated(text: &str) -> bool {
    static HINT: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(&format!(
            r"(?i:[\[({{<] ?(?:at|ät|a|{NAMES}) ?[\])}}>]|&#0*64;|&#x0*40;|&commat;|%40|[ _-](?:{DOTS}|{NAMES})[ _-])|艾特|小老鼠|골뱅이|アットマーク"
        ))
        .ok()
    });
    HINT.as_ref().is_some_and(|hint| hint.is_match(text))
}

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    super::count_steps(text.len());
    let mut found: Vec<Range<usize>> = Vec::new();
    let Some(at) = &*AT else {
        return found;
    };
    let mut start = 0;
    while let Some(captures) = at.captures_at(text, start) {
        let sign = captures.get_match();
        // Signs may share a space.
        start = sign.end() - usize::from(sign.as_str().ends_with(' ') && sign.len() > 1);
        let is_word = captures.name("at").is_some();
        let is_name = captures.name("name").is_some();
        let free = found.last().map_or(0, |last| last.end);
        let local = local_part(text, free, sign.start());
        let domain = domain_len(
            &text[sign.end()..],
            !is_name && !sign.as_str().contains('@'),
        );
        let (Some(local), Some(domain)) = (local, domain) else {
            continue;
        };
        if is_word && (!domain.has_word || is_common_word(&text[local..sign.start()])) {
            continue;
        }
        // With spaces around it the sign may mean "at a price of".
        let has_spaces = sign.as_str().starts_with(' ') && sign.as_str().contains('@');
        if has_spaces && is_common_word(&text[local..sign.start()]) {
            continue;
        }
        let local = if domain.has_word {
            with_spelled_dots(text, free, local)
        } else {
            local
        };
        found.push(local..sign.end() + domain.len);
        start = sign.end() + domain.len;
    }
    found
}

/// Returns `true` for letters of scripts without spaces between words. An address must not swallow the
/// words around it, so its parts consist either of these letters only or of others only.
fn is_dense(c: char) -> bool {
    matches!(
        c,
        '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1100}'..='\u{11ff}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{3130}'..='\u{318f}'
            | '\u{3400}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7ff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

fn is_letter_or_digit(c: char) -> bool {
    !is_dense(c) && (c.is_alphanumeric() || is_mark(c))
}

/// Returns the offset at which the part before the at sign begins.
fn local_part(text: &str, free: usize, end: usize) -> Option<usize> {
    let text = &text[free..end];
    let is_dense_part = text.ends_with(|c: char| is_dense(c));
    let is_local = |c: char| {
        if is_dense_part {
            is_dense(c) || matches!(c, '.' | '_' | '-')
        } else {
            is_letter_or_digit(c) || ".!#$%&'*+/=?^_`{|}~-".contains(c)
        }
    };
    let characters = text.char_indices().rev().take(MAX_LOCAL);
    let mut local = characters.take_while(|(_, c)| is_local(*c));
    let mut start = local.next()?.0;
    super::count_steps(1);
    for (offset, _) in local {
        super::count_steps(1);
        start = offset;
    }
    let mut part = &text[start..];
    // The name of a parameter or a path is no part of the address. "smith&jones" is one name.
    let is_query = part.contains(['?', '=']);
    if let Some(query) = part.rfind(|c: char| c == '?' || (c == '&' && is_query)) {
        part = &part[query + 1..];
    }
    let name = match (part.rfind('/'), part.rfind('=')) {
        (Some(_), Some(_)) => None,
        (slash, equals) => slash.or(equals),
    };
    if let Some(name) = name {
        part = &part[name + 1..];
    }
    part = part.trim_start_matches(|c: char| !is_dense(c) && !is_letter_or_digit(c));
    let is_closed =
        part.ends_with(|c: char| is_dense(c) || is_letter_or_digit(c) || "_+-".contains(c));
    is_closed.then(|| free + text.len() - part.len())
}

/// Returns the offset at which a local part with words for dots begins, as in "ann dot lee at example dot com".
fn with_spelled_dots(text: &str, free: usize, mut local: usize) -> usize {
    const MOST_DOTS: usize = 3;
    for _ in 0..MOST_DOTS {
        let before = &text[free..local];
        let spelled = before
            .strip_suffix(' ')
            .and_then(|before| before.rsplit_once(' '));
        let is_dot = |word: &str| DOTS.split('|').any(|dot| dot == word.to_lowercase());
        let Some((rest, _)) = spelled.filter(|(_, word)| is_dot(word)) else {
            break;
        };
        super::count_steps(1);
        let name = rest.trim_end_matches(is_letter_or_digit);
        if name.len() == rest.len() || rest.len() - name.len() > MAX_LOCAL {
            break;
        }
        local = free + name.len();
    }
    local
}

/// The domain that a text begins with.
struct Domain {
    len: usize,
    /// A dot of it is a word or in brackets.
    has_word: bool,
}

/// Returns the domain that a text begins with. In an obfuscated address the last part of it must be a
/// known one, if the dot before it is a word.
fn domain_len(text: &str, is_obfuscated: bool) -> Option<Domain> {
    let text = first_bytes(text, MAX_DOMAIN);
    let mut domain = None;
    let mut has_word = false;
    let mut end = label_len(text)?;
    while let Some(dot) = DOT.as_ref().and_then(|dot| dot.captures(&text[end..])) {
        let is_word = dot.name("word").is_some();
        let start = end + dot.get_match().end();
        let Some(len) = label_len(&text[start..]) else {
            break;
        };
        super::count_steps(len);
        let label = &text[start..start + len];
        let Some(top_len) = top_len(label) else {
            end = start + len;
            continue;
        };
        let is_spelled = is_word && dot.get_match().as_str().trim().len() > 1;
        if is_spelled && is_obfuscated && !is_known_top(label) {
            break;
        }
        has_word |= is_word;
        domain = Some(Domain {
            len: start + top_len,
            has_word,
        });
        end = start + len;
        if top_len < len {
            break;
        }
    }
    domain
}

/// Returns the length of the label of a domain that a text begins with.
fn label_len(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    let is_part = |c: char| {
        if is_dense(first) {
            is_dense(c)
        } else {
            is_letter_or_digit(c) || c == '-'
        }
    };
    if first == '-' || !is_part(first) {
        return None;
    }
    // An ideographic word for dot ends a label.
    let len = text
        .find(|c: char| !is_part(c) || c == '点')
        .unwrap_or(text.len());
    let label = text[..len].trim_end_matches('-');
    // "example-dot-com"
    let label = label.find("-dot-").map_or(label, |dot| &label[..dot]);
    (!label.is_empty()).then_some(label.len())
}

/// Returns the length of a label that can be the last of a domain. In scripts without spaces the words
/// after it follow at once, so it has two characters there.
fn top_len(label: &str) -> Option<usize> {
    let mut characters = label.chars();
    let (first, second) = (characters.next()?, characters.next()?);
    if is_dense(first) {
        return Some(first.len_utf8() + second.len_utf8());
    }
    if is_file_extension(label) {
        return None;
    }
    let is_letter = |c: char| c.is_alphabetic() || is_mark(c);
    (label.starts_with("xn--") || label.chars().all(is_letter)).then_some(label.len())
}

/// Returns `true` for the endings of file names as "icon@2x.png".
fn is_file_extension(label: &str) -> bool {
    const EXTENSIONS: [&str; 14] = [
        "png", "jpg", "jpeg", "gif", "svg", "webp", "pdf", "css", "js", "ts", "json", "html",
        "xml", "txt",
    ];
    EXTENSIONS
        .iter()
        .any(|extension| label.eq_ignore_ascii_case(extension))
}

/// Returns `true` for top-level domains that are no English words, so that "look at the dot in" is no address.
fn is_known_top(label: &str) -> bool {
    const TOPS: &str = "com|org|net|edu|gov|mil|int|info|biz|name|app|dev|online|shop|store|cloud|email|travel|museum|test|example|\
        invalid|uk|de|fr|es|nl|ch|cn|jp|kr|ru|br|au|ca|nz|za|pl|cz|se|dk|fi|pt|gr|tr|ua|mx|ar|cl|sg|hk|tw|th|vn|ph|ie|io|co|eu|tv|ai|\
        hu|ro|bg|hr|rs|il|ae|sa|ke|ng|рф";
    let label = label.to_lowercase();
    TOPS.split('|').any(|top| top.trim() == label)
}

/// Returns `true` for words that stand before "at" in sentences about places and sites.
fn is_common_word(word: &str) -> bool {
    const WORDS: &str = "look|looking|shop|shopping|buy|order|available|me|us|you|it|see|find|found|visit|work|works|working|\
        meet|is|are|was|be|him|her|them|here|there|online|started|hosted|live|sold|starting|items|cost|costs|each|lives|stay|only";
    let word = word.to_lowercase();
    WORDS.split('|').any(|common| common.trim() == word)
}
