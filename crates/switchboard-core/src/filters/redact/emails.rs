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
    let bracketed = format!(r"[\[({{<] ?(?:@|at|ät|a|{NAMES}|{DENSE_NAMES}) ?[\])}}>]");
    let plain = format!("@|&#0*64;|&#x0*40;|&commat;|%40|{DENSE_NAMES}");
    let pattern = format!(
        "(?i)(?<sign> ?(?:{bracketed}|{plain}) ?)|[ _-](?:(?<name>{NAMES})|(?<at>at|ät))[ _-]"
    );
    Regex::new(&pattern.replace("    ", "")).ok()
});

/// The names of the at sign in other languages than English. They mean little else.
const NAMES: &str = "arroba|arrova|arobas|arobase|chiocciola|małpa|zavináč|zavinac|kukac|apenstaartje|snabel-a|snabela|alfakrøll|krøllalfa|klammeraffe|\
    miukumauku|arond|afna|собака|собачка|равлик|кльомба|παπάκι|παπακι|שטרודל|a còng|at sign|at-sign|at-zeichen|et-zeichen|\
    malpa|krollalfa|kroellalfa|snabel a|alfa-krøll|kissanhäntä|ät-merkki|at-merkki|kuyruklu a|et işareti|ludo a|лудо а|маймунско а|маймунка|айқұлақ|շնիկ|כרוכית|coadă de maimuță|a bildua|a móc";

/// The names of the at sign in languages without spaces between words.
const DENSE_NAMES: &str = "艾特|小老鼠|골뱅이|アットマーク";

/// Words for a dot. The French one is another word in English, and only understood in brackets.
const DOTS: &str = "dot|punkt|punto|ponto|punt|pont|piste|punct|kropka|tečka|bodka|točka|tocka|nokta|titik|chấm|точка|тачка|крапка|τελεία|נקודה|نقطة|ドット|닷|punktum|punktur|punkts|taškas|taskas|tecka|nuqta|нүкте|нуқта|წერტილი|կետ|จุด|ຈຸດ|डॉट|ডট";

/// Words for other signs in the part before the at sign.
const SIGNS: &str = "underscore|dash|hyphen|plus|unterstrich|bindestrich|minus|guion|guión|guion bajo|guión bajo|tiret|tiret bas|trattino|trattino basso|\
    traço|underline|sublinhado|streepje|laag streepje|understreck|understrek|understregning|bindestreck|bindestrek|alaviiva|väliviiva|podkreślenie|podkreślnik|myślnik|podtržítko|pomlčka|podčiarkovník|\
    aláhúzás|kötőjel|donja crta|podvlaka|crtica|vezaj|alt çizgi|alt tire|tire|garis bawah|gạch dưới|gạch ngang|подчеркивание|нижнее подчеркивание|дефис|підкреслення|тире|κάτω παύλα|παύλα|קו תחתון|מקף|شرطة|شرطة سفلية";

/// Matches what stands for a dot in a domain.
static DOT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let bracketed = format!(r" ?[\[({{<] ?(?:\.|{DOTS}|point) ?[\])}}>] ?");
    let words = format!("[ _-](?:{DOTS})[ _-]|(?<point> point )|[点點]");
    Regex::new(&format!(r"^(?i:(?<word>{bracketed}|{words})|\.|。| \. )")).ok()
});

/// Matches a text that may have an obfuscated address without an at sign. The patterns are literals, so
/// that most texts are ruled out fast.
pub(super) fn may_be_obfuscated(text: &str) -> bool {
    static HINT: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let pattern = format!(
            r"(?i:[\[({{<] ?(?:at|ät|a|{NAMES}) ?[\])}}>]|&#0*64;|&#x0*40;|&commat;|%40|[ _-](?:{DOTS}|{NAMES})[ _-])|{DENSE_NAMES}"
        );
        Regex::new(&pattern.replace("    ", "")).ok()
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
        let domain = domain_len(&text[sign.end()..], is_word, is_name);
        let (Some(local), Some(domain)) = (local, domain) else {
            continue;
        };
        if is_word && (!domain.has_word || is_common_word(&text[local..sign.start()])) {
            continue;
        }
        if matches!(sign.as_str(), " @" | " @ ")
            && is_handle(
                &text[local..sign.start()],
                &text[sign.end()..][..domain.len],
            )
        {
            continue;
        }
        // With spaces around it the sign may mean "at a price of".
        let has_spaces = sign.as_str().starts_with(' ') && sign.as_str().contains('@');
        if has_spaces && is_common_word(&text[local..sign.start()]) {
            continue;
        }
        let end = sign.end() + domain.len;
        if sign.as_str() == "@" && is_login(&text[..local], &text[end..]) {
            continue;
        }
        let local = if domain.has_word || !sign.as_str().contains('@') {
            with_spelled_dots(text, free, local, is_name)
        } else {
            local
        };
        found.push(local..end);
        start = end;
    }
    found
}

/// Returns `true` around the name of a user on a host, as in "postgres://ann:key@db.example.com", "git@git.example.com:team/project",
/// and around the handle "@ann@social.example" and the id of a message.
fn is_login(before: &str, after: &str) -> bool {
    const LONGEST: usize = 64;
    super::count_steps(LONGEST);
    let near = super::numbers::last_bytes(before, LONGEST);
    let token = near.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_in_address = token
        .rsplit_once("://")
        .is_some_and(|(_, user)| !user.contains(['/', '?', '#']));
    let line = near
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .trim_end_matches(['<', ' ']);
    let last = line
        .rsplit(' ')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_message_id = matches!(
        &*last,
        "message-id:" | "in-reply-to:" | "references:" | "content-id:"
    );
    let path = after.strip_prefix(':').unwrap_or_default();
    let path = first_bytes(path, LONGEST)
        .split(char::is_whitespace)
        .next()
        .unwrap_or_default();
    let is_path = path.starts_with(['~', '/']) || path.contains('/');
    let is_command = matches!(&*last, "ssh" | "scp" | "sftp" | "rsync" | "mosh");
    is_in_address || is_message_id || is_path || is_command || before.ends_with('@')
}

/// Returns `true` if a word and the name after a sign with a space before it are no address but a sentence with somebody's handle: "follow @ann.shop".
fn is_handle(word: &str, name: &str) -> bool {
    const WORDS: &str = "a|à|al|an|auf|and|au|bei|by|con|cu|da|de|del|di|do|e|em|en|et|follow|for|från|from|fra|i|in|ja|na|no|och|og|of|on|op|par|pe|por|se|        siga|sigue|su|sur|till|til|to|und|van|via|vom|von|w|with|y|z|в|и|на|от|с|у";
    let top = name.rsplit('.').next().unwrap_or_default().trim();
    let word = word.to_lowercase();
    !is_known_top(top) || WORDS.split('|').any(|other| other.trim() == word)
}

/// Returns `true` for letters of scripts without spaces between words. An address must not swallow the
/// words around it, so its parts consist either of these letters only or of others only.
pub(super) fn is_dense(c: char) -> bool {
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
    part = without_attached_word(part);
    let is_closed =
        part.ends_with(|c: char| is_dense(c) || is_letter_or_digit(c) || "_+-".contains(c));
    is_closed.then(|| free + text.len() - part.len())
}

/// Returns a Latin name without a word of another script before it, to which a dash joins it, as in Hebrew: "ל-ann@example.com".
fn without_attached_word(part: &str) -> &str {
    let joined = part.split_once('-').filter(|(word, name)| {
        let is_other = |c: char| c.is_alphabetic() && c > '\u{36f}';
        name.is_ascii() && !name.is_empty() && !word.is_empty() && word.chars().all(is_other)
    });
    joined.map_or(part, |(_, name)| name)
}

/// Returns the offset at which a local part with words for dots begins, as in "ann dot lee at example dot com".
fn with_spelled_dots(text: &str, free: usize, mut local: usize, precedes_name: bool) -> usize {
    const MOST_DOTS: usize = 3;
    for _ in 0..MOST_DOTS {
        super::count_steps(1);
        let Some(rest) = before_spelled_sign(&text[free..local], precedes_name) else {
            break;
        };
        let name = rest.trim_end_matches(is_letter_or_digit);
        if name.len() == rest.len() || rest.len() - name.len() > MAX_LOCAL {
            break;
        }
        local = free + name.len();
    }
    local
}

/// Returns the text before a word for a dot or another sign that ends a text, as "ann dot " and "ann[.]". The French word for a dot is
/// only one before a name of the at sign.
fn before_spelled_sign(text: &str, precedes_name: bool) -> Option<&str> {
    const LONGEST: usize = 32;
    let is_dot = |word: &str| DOTS.split('|').any(|dot| dot == word);
    let is_sign = |word: &str| is_dot(word) || SIGNS.split('|').any(|sign| sign.trim() == word);
    let word_before = |text: &str, opening: &[char]| {
        let near = super::numbers::last_bytes(text, LONGEST);
        let start = text.len() - near.len() + near.rfind(opening)?;
        Some(start)
    };
    let spaced = text.strip_suffix(' ').unwrap_or(text);
    if let Some(bracketed) = spaced.strip_suffix([']', ')', '}', '>']) {
        let start = word_before(bracketed, &['[', '(', '{', '<'])?;
        let word = bracketed[start + 1..].trim().to_lowercase();
        let rest = &text[..start];
        return (is_dot(&word) || matches!(&*word, "." | "point"))
            .then(|| rest.strip_suffix(' ').unwrap_or(rest));
    }
    let words = text.strip_suffix(' ')?;
    let last = word_before(words, &[' '])?;
    // "guion bajo"
    let two = word_before(&words[..last], &[' '])
        .filter(|start| is_sign(&words[start + 1..].to_lowercase()));
    let start = two.unwrap_or(last);
    let sign = words[start + 1..].to_lowercase();
    (is_sign(&sign) || (precedes_name && sign == "point")).then(|| &text[..start])
}

/// The domain that a text begins with.
struct Domain {
    len: usize,
    /// A dot of it is a word or in brackets.
    has_word: bool,
}

/// Returns the domain that a text begins with. After the word "at" the last part of it must be a known one, if the dot before
/// it is a word. The French word for a dot is only one after a name of the sign.
fn domain_len(text: &str, follows_at: bool, follows_name: bool) -> Option<Domain> {
    let text = first_bytes(text, MAX_DOMAIN);
    let mut domain = None;
    let mut has_word = false;
    let mut end = label_len(text)?;
    while let Some(dot) = DOT.as_ref().and_then(|dot| dot.captures(&text[end..])) {
        let is_word = dot.name("word").is_some();
        if dot.name("point").is_some() && !follows_name {
            break;
        }
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
        let is_noun = || {
            matches!(
                &*text[..end].to_lowercase(),
                "the" | "a" | "this" | "that" | "my" | "each" | "every" | "one"
            )
        };
        if is_spelled && follows_at && (!is_known_top(label) || is_noun()) {
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
pub(super) fn is_known_top(label: &str) -> bool {
    const TOPS: &str = "com|org|net|edu|gov|mil|int|info|biz|name|app|dev|online|shop|store|cloud|email|travel|museum|test|example|\
        invalid|uk|de|fr|es|nl|ch|cn|jp|kr|ru|br|au|ca|nz|za|pl|cz|se|dk|fi|pt|gr|tr|ua|mx|ar|cl|sg|hk|tw|th|vn|ph|ie|io|co|eu|tv|ai|\
        hu|ro|bg|hr|rs|il|ae|sa|ke|ng|рф|sk|lt|lv|ee|si|lu|mt|cy|by|kz|ge|am|az|uz|md|al|mk|ba|is|be|in|id|my|no|pk|lk|bd|np|ir|iq|jo|lb|eg|ma|\
        tn|dz|gh|tz|ug|zm|pe|ve|uy|py|bo|ec|cr|gt|pa|pr|xyz|site|tech|blog|eus|cat|gal|pro|укр|бел|срб";
    let label = label.to_lowercase();
    TOPS.split('|').any(|top| top.trim() == label)
}

/// Returns `true` for words that stand before "at" in sentences about places and sites.
fn is_common_word(word: &str) -> bool {
    const WORDS: &str = "look|looking|shop|shopping|buy|order|available|me|us|you|it|see|find|found|visit|work|works|working|\
        meet|is|are|was|be|him|her|them|here|there|online|started|hosted|live|sold|more|out|details|website|site|page|guide|docs|blog|offers|deals|tickets|everything|now|up|free|story|menu|form|join|\
        go|apply|listed|published|posted|based|located|staring|lunch|dinner|party|meeting|event|follow|boxes|pcs|units|today|tonight|home|price|starting|items|cost|costs|each|lives|stay|only";
    let word = word.to_lowercase();
    WORDS.split('|').any(|common| common.trim() == word)
}
