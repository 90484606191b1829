//! Words as people write them who leave out the accents: "movil", "objednavka", "rueckruf".

/// The fewest letters of a word, and of a beginning or an end of one. Shorter ones are other words too often.
const LEAST_WORD: usize = 5;
const LEAST_PART: usize = 6;

/// Returns an entry of a table without its accents, and with two letters for one as in German and Danish. Returns nothing for short
/// entries, for those without accents, and for letters that are none of the Latin ones here.
pub(super) fn forms(entry: &str) -> Vec<String> {
    let is_part = entry.contains('*');
    let least = if is_part { LEAST_PART } else { LEAST_WORD };
    if entry.is_ascii() || entry.trim_matches('*').chars().count() < least {
        return Vec::new();
    }
    let simple = entry.chars().map(simple_letter).collect::<Option<String>>();
    let mut forms: Vec<String> = simple.into_iter().collect();
    if entry.contains(['ä', 'ö', 'ü', 'å', 'ø', 'æ']) {
        let long = entry.chars().map(long_letter);
        forms.extend(long.collect::<Option<String>>());
    }
    forms
}

/// Returns a letter without its accent, or `None` if it is no Latin one that people write so.
fn simple_letter(c: char) -> Option<char> {
    Some(match c {
        '\0'..='\x7f' => c,
        'á' | 'à' | 'â' | 'ä' | 'ã' | 'å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'ď' | 'đ' => 'd',
        'é' | 'è' | 'ê' | 'ë' | 'ē' | 'ė' | 'ę' | 'ě' | 'ə' => 'e',
        'ğ' | 'ģ' => 'g',
        'í' | 'ì' | 'î' | 'ï' | 'ī' | 'į' | 'ı' => 'i',
        'ķ' => 'k',
        'ł' | 'ľ' | 'ļ' => 'l',
        'ñ' | 'ń' | 'ň' | 'ņ' => 'n',
        'ó' | 'ò' | 'ô' | 'ö' | 'õ' | 'ø' | 'ő' => 'o',
        'ŕ' | 'ř' => 'r',
        'ś' | 'š' | 'ş' | 'ș' => 's',
        'ť' | 'ţ' | 'ț' => 't',
        'ú' | 'ù' | 'û' | 'ü' | 'ū' | 'ů' | 'ű' | 'ų' => 'u',
        'ý' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        _ => return None,
    })
}

/// Returns the letters for one with two dots or a stroke, as in "Rueckruf", or the letter without its accent.
fn long_letter(c: char) -> Option<String> {
    Some(match c {
        'ä' | 'æ' => "ae".to_owned(),
        'ö' | 'ø' => "oe".to_owned(),
        'ü' => "ue".to_owned(),
        'å' => "aa".to_owned(),
        'ß' => "ss".to_owned(),
        _ => simple_letter(c)?.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_have_forms_without_accents() {
        assert_eq!(forms("móvil"), ["movil"]);
        assert_eq!(forms("rückruf*"), ["ruckruf*", "rueckruf*"]);
        assert_eq!(forms("élève*"), [""; 0]);
        assert_eq!(forms("vé"), [""; 0]);
        assert_eq!(forms("hotline"), [""; 0]);
        assert_eq!(forms("đơn hàng"), [""; 0]);
    }
}
