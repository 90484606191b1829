//! Addresses of pages, paths and names of files in text: the numbers in them name no phones.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::labels;
use super::tables::words::units::EXTENSIONS;
use super::{dictionary, emails};

/// Matches a path or a name that ends in the extension of a file.
static FILE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = format!(r"^[^.]?.*\.(?i:{EXTENSIONS})$");
    Regex::new(&pattern.replace("    ", "")).ok()
});

/// Matches a host with its port and what comes after it up to the path.
static HOST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:[\w-]+[=:])?((?:[\w-]+\.)+([\p{L}\p{M}]{2,24}|xn--[\w-]+))(?::\d{1,5})?[/?#]")
        .ok()
});

/// Finds the addresses and paths that hold digits, in order.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    super::count_steps(text.len());
    let mut found = Vec::new();
    let mut start = 0;
    for token in text.split_inclusive(ends_token) {
        let whole = token.trim_end_matches(ends_token);
        let trimmed = whole.trim_end_matches(['.', ':', '!', '?', '*', '_']);
        let digits = trimmed.bytes().filter(u8::is_ascii_digit).count();
        if digits >= LEAST_DIGITS && is_address(trimmed) {
            found.push(start..start + trimmed.len());
        }
        start += token.len();
    }
    found
}

/// The fewest digits of a phone, which may stand in an address.
const LEAST_DIGITS: usize = 5;

fn ends_token(c: char) -> bool {
    c.is_whitespace()
        || dictionary::is_dense(c)
        || "\"'`<>()[]{}|,;、，。；：「」『』（）".contains(c)
}

fn is_address(token: &str) -> bool {
    if token.contains("://") {
        return true;
    }
    let is_file = || FILE.as_ref().is_some_and(|file| file.is_match(token));
    !token.contains('@') && (is_page(token) || is_path(token) || is_file())
}

/// Returns `true` for an address without a scheme, as "example.com/p/0612345678" and "example.com?id=0612345678".
fn is_page(token: &str) -> bool {
    let Some(host) = HOST.as_ref().and_then(|host| host.captures(token)) else {
        return false;
    };
    let (Some(name), Some(top)) = (host.get(1), host.get(2)) else {
        return false;
    };
    let rest = &token[host.get_match().end()..];
    // "Ann.Privat/030-1234567"
    let may_be_phone = || !rest.contains(char::is_alphabetic);
    let is_known = emails::is_known_top(top.as_str()) || name.as_str().starts_with("www.");
    !labels::begins_with_phone_word(name.as_str()) && (is_known || !may_be_phone())
}

/// Returns `true` for a path, as "/orders/0612345678", "~/a/0612345678" and "users/0612345678/photo".
fn is_path(token: &str) -> bool {
    if !token.contains(['/', '\\']) {
        return false;
    }
    let has_letters = || token.contains(char::is_alphabetic);
    let is_drive = |token: &str| {
        matches!(
            token.as_bytes(),
            [b'A'..=b'Z' | b'a'..=b'z', b':', b'\\' | b'/', ..]
        )
    };
    if token.starts_with(['/', '~', '\\'])
        || token.starts_with("./")
        || token.starts_with("../")
        || is_drive(token)
    {
        return has_letters();
    }
    // Two phones have a slash between them, and words for phones and persons before them.
    let (mut words, mut numbers) = (0, 0);
    for part in token.split(['/', '\\']) {
        let is_number = part.starts_with(|c: char| c.is_ascii_digit());
        let is_word = part.starts_with(char::is_alphabetic);
        if !is_number && !is_word {
            return false;
        }
        if is_word
            && (labels::begins_with_phone_word(part) || dictionary::is_owner(&part.to_lowercase()))
        {
            return false;
        }
        words += usize::from(is_word);
        numbers += usize::from(is_number);
    }
    words >= 2 && numbers == 1 && token.is_ascii() && !token.contains([':', '('])
}

/// Returns `true` if the text of an address before a number says that it is that of a phone: "?phone=" and "wa.me/".
pub(super) fn may_name_phone(before: &str) -> bool {
    const SITES: [&str; 4] = ["wa.me/", "t.me/", "signal.me/#p/", "viber.me/"];
    SITES.iter().any(|site| before.ends_with(site)) || before.ends_with(['=', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(text: &str) -> bool {
        matches!(&*find(text), [address] if *address == (0..text.len()))
    }

    #[test]
    fn addresses_paths_and_files_are_found() {
        assert!(FILE.is_some() && HOST.is_some());
        for text in [
            "https://example.com/p/0612345678",
            "example.com/p/0612345678/reviews",
            "cdn.example.net/v/2065558812/hls/720p.m3u8",
            "shop.example.de:8080/0612345678",
            "example.com?id=0612345678",
            "example.com#0612345678",
            "url=example.com/p/0612345678",
            "/orders/0612345678",
            "~/backup/0612345678",
            "C:\\scans\\0612345678",
            "D:/scans/0612345678/1",
            "users/0612345678/photo",
            "api/users/0612345678",
            "2065558812-backup.tar.gz",
            "IMG_20240112_123456.jpg",
        ] {
            assert!(is_found(text), "{text:?}");
        }
    }

    #[test]
    fn phones_with_slashes_are_no_addresses() {
        for text in [
            "030-1234567/0171-1234567",
            "Tel.030-1234567/0171-1234567",
            "Tel.privat/030-1234567",
            "home/4155552671",
            "home/work/4155552671",
            "4155552671/home/4155552672",
            "415-555-2671.ann",
        ] {
            assert!(find(text).is_empty(), "{text:?}");
        }
    }
}
