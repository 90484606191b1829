//! The words before a number that say what it is.

use std::sync::LazyLock;

use regex::Regex;

use super::numbers::{first_bytes, last_bytes};

/// The place of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Text,
    /// A number of JSON after its key. Most of them count something.
    JsonNumber,
}

/// The meaning of a word before a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Phone,
    /// Something that is neither a phone nor a person, as an order or an amount.
    Other,
}

/// A word before a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) meaning: Meaning,
    /// The number of bytes between the word and the number.
    pub(super) distance: usize,
    /// Nothing but punctuation and words as "number is" stands between.
    pub(super) is_adjacent: bool,
}

/// Words for phones and calls. Those of the first list may be the beginning of a longer word.
const PHONE_STEMS: &str = "telephon|telefon|téléphon|teléfon|telefón|telefoon|phone|handy|mobil|móvil|telemóvel|telemovel|celular|cellular|\
    cellphone|whatsapp|puhelin|puhelim|telepon|telpon|anruf|dzwoni|zadzwo|llám|llame|llama|appel|chiama|ligue|soita|volejte|\
    телефон|звон|дзвон|мобильн|мобільн|τηλ|κινητ|τηλέφ|rufnum|notruf|durchwahl|kontaktnum|faxnum|\
    hotline|natel|telnum|telnr|gsmnum|gsmnr|festnetz|privatnum|büronum|hemnum|arbetsnum|hjemmenum|thuisnum|nødnum|nödnum";
const PHONE_WORDS: &str = "tel|tél|tels|tlf|puh|gsm|cel|cell|cep|fax|hp|sms|call|calls|calling|dial|ring|ringe|ringen|text|\
    rufen|bel|bellen|natel|portable|fono|đt|sđt|điện thoại|số|wa|viber|тел|моб|contact number|reach me at|reach me on|\
    फोन|मोबाइल";
const PHONE_OTHER_SCRIPTS: &str = "电话|手机|電話|手機|携帯|拨打|致电|打给|请打|联系方式|联系人|座机|热线|連絡先|自宅番号|代表番号|内線|ケータイ|フリーダイヤル|전화|대표번호|팩스|비상연락|집번호|회사번호|직장번호|휴대폰|핸드폰|연락처|\
    โทร|เบอร์|هاتف|جوال|موبايل|תלפון|טלפון|נייד|फ़ोन|फ़ोन";

/// Words for other things that have numbers.
const OTHER_STEMS: &str = "bestell|rechnung|kundenn|vertrag|sendung|paket|steuern|betrag|artikel|aktenz|konto|commande|facture|\
    colis|montant|pedido|factura|fatura|importe|ordine|fattura|zamówien|faktur|przesyłk|заказ|счет|счёт|накладн|посылк|трек|\
    bestilling|beställning|tilau|sipariş|pesanan|đơn hàng|confirmation|tracking|timestamp|shipment|consignment|waybill|\
    comand|comenz|factură|encomend|objednáv|objednavk|zásilk|rendelés|számla|narudž|naroč|račun|užsakym|pasūtīj|tellimus|lasku|\
    замовлен|рахун|поръчк|фактур|παραγγελ|τιμολόγ|hóa đơn|mã đơn";
const OTHER_WORDS: &str = "order|orders|ordre|invoice|invoices|ticket|tickets|ref|reference|parcel|booking|transaction|receipt|\
    isbn-10|isbn-13|isbn|issn|ean|upc|gtin|barcode|sku|po|id|ids|uid|guid|uuid|hash|epoch|ts|amount|total|totals|price|sum|count|counts|qty|\
    quantity|case|account|customer|contract|policy|item|items|product|article|serial|model|part|payment|member|claim|batch|\
    matter|meter|code|key|license|licence|version|firmware|release|revision|build|orcid|doi|imei|awb|container|dhl|fedex|ups|usps|gls|vat|ein|budget|population|balance|\
    fee|saldo|points|bytes|size|offset|seq|sequence|rows|cols|tokens|range|ns|ms|index|length|zip|zoom|kilometers|\
    usd|eur|gbp|cny|jpy|idr|chf|rp|debt|score|scored|record|records|row|line|page|pages|chapter|user id|room|flight|iteration|\
    bestellung|bestelling|factuur|dossier|réf|envío|guía";
const OTHER_OTHER_SCRIPTS: &str = "订单|訂單|单号|單號|运单|運單|快递|编号|編號|流水|账号|金额|數量|数量|价格|合计|共计|客户|发票|條形|\
    条形|条码|邮编|批次|注文|送り状|金額|주문|송장|택배|금액|طلب|فاتورة|سفارش|הזמנ|חשבונית|คำสั่งซื้อ|ใบแจ้งหนี้|ऑर्डर|請求書|청구서";

/// Words for other things that name a number only if it comes right after them: "reservation 4155552671" is no
/// phone, "reservation for Ann, 4155552671" may be.
const NEXT_STEMS: &str = "reserv|réserv|rezerv|rezerw|buchung|boeking|bokning|varaus|бронир|kvitt|quittung|квитанц|protocol|protokol|\
    zgłoszen|обращен|заявк|pratica|voucher|coupon|gutschein|checksum|\\w{3,}(?:nummer|nummern|nummeret)";
const NEXT_WORDS: &str = "nota fiscal|mã vận đơn|mã số|talep|resi|siret|siren|duns|abn|acn|nip|regon|kvk|cnpj|pzn|plz|cep|tin|gln|npi|sscc|oid|\
    asn|pmid|postcode|postal code|postleitzahl|code postal|código postal|crc|error|errors|request|requests|req|worker|workers|rev|nonce|\
    seed|block|blocks|sector|inode|etag|session|sessions|txn|tx|cache|memory|mem|heap|stack|rss|port|ports|pid|tid|thread|packet|packets|\
    frame|frames|commit|signature|counter|query|event|span|trace|register|shard|partition|kernel|chapters";
const NEXT_OTHER_SCRIPTS: &str = "หมายเลขคำสั่งซื้อ|หมายเลขคำสั่ง|ใบสั่งซื้อ|ใบสั่ง|[\\p{Han}\\p{Katakana}ー]{2,}番[号號]|\\p{Hangul}{2,}번호|\\p{Han}[^号號\\P{Han}]码";

/// Words for phones that make a longer word mean a phone wherever they stand in it, as in "Diensttelefonnummer".
const PHONE_INSIDE: &str = "tele[fp]on|telefoon|telefax|faxnum|phone|handy|mobil|rufnum|notruf|notfall|hotline|whatsapp|kontaktnum|festnetz|\
    durchwahl|servicenum|wählnum|[電电][話话]|手[机機]|携[帯带帶]|[連连]絡先|[联聯]絡|ケータイ|スマホ|ファック?ス|ファクシミリ|テレ[フホ]|フリーダイヤル|\
    モバイル|(?:緊急|直通|内線|代表|自宅)番|전화|휴대|핸드폰|모바일|팩스|연락|(?:대표|비상|긴급|자택|사무실|회사|직장)번";

/// Words that hold a word for a phone and mean something else: real estate and cars.
const NO_PHONE_INSIDE: [&str; 2] = ["immobil", "automobil"];

/// Words for cards that make a longer word mean a card wherever they stand in it.
const CARD_INSIDE: &str = "karte|kort|kaart|card|カード|카드|卡";

/// The codes of currencies (ISO 4217) that are no words.
const CURRENCIES: &str = "usd|eur|gbp|idr|inr|krw|vnd|brl|mxn|zar|sek|nok|dkk|pln|czk|huf|thb|myr|sgd|hkd|twd|aud|cad|nzd|chf|aed|uah|jpy|cny|\
    clp|pkr|egp|qar|kwd|ngn|kes|bgn|isk|kzt|lkr|bdt|rmb|btc|eth";

/// Matches words of [`Meaning::Phone`] in its first group, and others in its second, or in its third if they
/// must come right before the number.
static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = format!(
        r"(\b(?:{PHONE_STEMS})\w*|\b(?:{PHONE_WORDS})\b|{PHONE_OTHER_SCRIPTS})|(\b(?:{OTHER_STEMS})\w*|\b(?:{OTHER_WORDS})\b|{OTHER_OTHER_SCRIPTS}|[$€£¥₩₹])|(\b(?:{NEXT_STEMS})\w*|\b(?:{NEXT_WORDS}|{CURRENCIES})\b|{NEXT_OTHER_SCRIPTS})"
    );
    Regex::new(&pattern.replace("    ", "")).ok()
});

/// Matches words for phones in its first group and words for cards in its second, anywhere in a longer word.
static INSIDE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!("({PHONE_INSIDE})|({CARD_INSIDE})").replace("    ", "")).ok()
});

/// Matches what may stand between a word and the number that it names.
static GAP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = "number|numbers|num|no|nr|n|id|ids|code|key|is|was|of|at|on|to|me|my|our|us|ist|lautet|est|es|er|är|es el|è|é|le|la|el|to|al|au|para|på|til|mig|meg|mi|mir|unter|sie|mich";
    let other_scripts = "号码|號碼|号|號|番号|番號|번호|는|은|は|是|为|為|的";
    Regex::new(&format!(
        r#"^(?:[\s.:#=/"',()\-°º№&+{{\[：，]|\b(?:{words})\b|{other_scripts})*$"#
    ))
    .ok()
});

/// Matches what may stand between a word and the number that comes right after it: no words of a sentence, as in
/// "send requests to 4155552671".
static STRICT_GAP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = "number|num|no|nr|n|id|ids|code|is|ist|lautet|est|es|är|er|è|é";
    Regex::new(&format!(
        r#"^(?:[\s.:#=/"'(\-°º№{{\[：]|\b(?:{words})\b|号|号码|番号|번호|는|은|は|是|为|為|的)*$"#
    ))
    .ok()
});

/// Matches the beginning of an identifier that goes on with a number, as `10.1000/` and `2026-A/`.
static BEGUN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[\w.\-]*\d[\w.\-]*[/.:_\-]$").ok());

/// Matches words and signs after which a number counts something, as in "7 of 12" and "more than 12".
static COUNTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:\d\S* ?(?:of|out of|von|sur|van|av|af|из)|\b(?:more|less|fewer|greater|higher|lower|larger|smaller)\s+than|[≥≤≈×^])\s*$").ok()
});

/// Matches a unit after a number.
static UNIT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = "bytes|byte|kb|mb|gb|ms|ns|us|sec|secs|seconds|minutes|hours|days|rows|row|steps|points|users|items|pieces|people|\
        km|m|cm|mm|kg|times|tokens|records|entries|lines|requests|hits|views|yen|dollars?|euros?|pounds?|pesos?|rupees?|rupiah|rub(?:le|el)s?|rublos|francs?|franken|kron(?:a|e|or|er|y)|yuan|rmb|baht|liras?|reais|đồng|dirhams?|ri?yals?|\
        shekels?|złotych|forint|lei|stück|stücke|pcs|words|pages|inhabitants|kč|zł";
    let words = format!("{words}|rub|{CURRENCIES}");
    // "415-555-2671 try after five": these codes are words too.
    let capitals = "ILS|TRY|PHP|COP|RON";
    Regex::new(&format!(
        r"^ ?(?:(?:(?i:{})|{capitals})\b|[€$£¥₩₹₽₺₴฿₫₪%‰元円원円个個人次件]|руб|грн|ریال|ريال|درهم|บาท|रुपये)",
        words.replace("    ", "")
    ))
    .ok()
});

/// The bytes before a number in which words are searched.
const WINDOW: usize = 72;

/// Returns the last word before a number that says what it is.
pub(super) fn nearest(before: &str) -> Option<Label> {
    super::count_steps(WINDOW);
    let window = last_bytes(before, WINDOW);
    let clause = window.rfind(['\n', ';', '!', '?', '。']);
    let clause = clause.map_or(window, |end| &window[end..]);
    let text = clause.to_lowercase().replace('_', " ");
    let label = |captures: &regex::Captures<'_>, is_phone: bool| {
        let gap = &text[captures.get_match().end()..];
        let (meaning, named) = if is_phone {
            (Meaning::Phone, gap)
        } else {
            (Meaning::Other, without_begun_identifier(gap))
        };
        let allowed = if captures.get(3).is_some() && !is_phone {
            &STRICT_GAP
        } else {
            &GAP
        };
        Label {
            meaning,
            distance: gap.len(),
            is_adjacent: allowed
                .as_ref()
                .is_some_and(|allowed| allowed.is_match(named)),
        }
    };
    let words = WORDS.as_ref()?.captures_iter(&text);
    let labels = words.filter_map(|captures| {
        let word = captures.get_match();
        let inside = match captures.get(1) {
            Some(_) => Inside::Phone,
            None => Inside::of(word.as_str()),
        };
        let is_phone = match inside {
            Inside::Phone => true,
            Inside::Card => return None,
            Inside::Other => false,
        };
        let mut label = label(&captures, is_phone);
        let is_weak = !is_phone && (captures.get(3).is_some() || is_weak(word.as_str()));
        // "the clinic's line, 617-555-0111"
        label.is_adjacent &= !(is_weak && text[word.end()..].starts_with(','));
        (label.is_adjacent || !is_weak).then_some(label)
    });
    labels.last()
}

/// The meaning of the parts of a long word.
enum Inside {
    Phone,
    Card,
    Other,
}

impl Inside {
    fn of(word: &str) -> Self {
        let is_no_phone = NO_PHONE_INSIDE.iter().any(|other| word.contains(other));
        let words = INSIDE
            .iter()
            .flat_map(|inside| inside.captures_iter(word))
            .filter(|words| !(is_no_phone && words.get_match().as_str() == "mobil"));
        let mut found = Self::Other;
        for words in words {
            if words.get(1).is_some() {
                return Self::Phone;
            }
            found = Self::Card;
        }
        found
    }
}

/// Returns the text between a word and the identifier that a number is part of: the word names all of it, as
/// in "doi:10.1000/4155552671".
fn without_begun_identifier(gap: &str) -> &str {
    let begun = BEGUN.as_ref().and_then(|begun| begun.find(gap));
    begun.map_or(gap, |begun| &gap[..begun.start()])
}

/// Returns `true` if the text before a number says that it counts something.
pub(super) fn is_counted(before: &str) -> bool {
    let near = last_bytes(before, 24);
    super::count_steps(near.len());
    COUNTED
        .as_ref()
        .is_some_and(|counted| counted.is_match(near))
}

/// Returns `true` if a number continues a path, an identifier that began with letters and digits, or a DOI.
pub(super) fn continues_path(before: &str) -> bool {
    let Some(path) = before.strip_suffix('/') else {
        return false;
    };
    let token = last_bytes(path, 64).rsplit(char::is_whitespace).next();
    let token = token.unwrap_or_default();
    // "home/415…" and "415-…(h)/415-…" may be one of two phones.
    let is_plain = token
        .chars()
        .all(|c| c.is_alphanumeric() || "./:_-%".contains(c));
    // "Tel:030-1234567/0171-1234567": the word and the sign before the first number are no part of it.
    let mut parts = token.rsplit(|c: char| c == ':' || !c.is_ascii());
    let begun = parts.next().unwrap_or_default();
    let has_digit = begun.contains(|c: char| c.is_ascii_digit());
    let is_named =
        begun.starts_with(char::is_alphabetic) && has_digit && !begins_with_phone_word(begun);
    is_plain
        && (is_named
            || begun.starts_with("10.")
            || (token.starts_with('/') && token.contains(char::is_alphabetic)))
}

/// Returns `true` if a word for phone comes before the number, as in "Tel.030-1234567".
fn begins_with_phone_word(token: &str) -> bool {
    let token = token.to_lowercase();
    let first = WORDS.as_ref().and_then(|words| words.captures(&token));
    first.is_some_and(|words| words.get(1).is_some() && words.get_match().start() == 0)
}

/// Returns `true` for words that name a number only if it comes right after them: "customer 4155552671" is no
/// phone, "the customer left 4155552671" may be.
fn is_weak(word: &str) -> bool {
    const WEAK: [&str; 21] = [
        "customer", "member", "account", "case", "item", "items", "product", "part", "line", "key",
        "code", "policy", "contract", "model", "room", "page", "pages", "payment", "id", "$", "€",
    ];
    WEAK.contains(&word)
}

/// Returns `true` if the words right before a number say that it is neither a phone nor a person's.
pub(super) fn is_of_another_thing(before: &str) -> bool {
    nearest(before).is_some_and(|label| label.is_adjacent && label.meaning == Meaning::Other)
}

/// Returns `true` if the text between a word and a number has a word for another number.
pub(super) fn has_another_label(gap: &str) -> bool {
    let text = gap.to_lowercase();
    let is_meant =
        |word: &str| matches!(word, "#" | "id" | "key" | "code" | "serial" | "ref" | "số");
    let words = WORDS.iter().flat_map(|words| words.captures_iter(&text));
    // "passport, document number 1234567"
    let mut words = words.filter(|words| words.get(3).is_none());
    words.any(|words| !is_meant(words.get_match().as_str()))
}

/// Returns `true` if a number counts something: a unit follows it.
pub(super) fn has_unit(after: &str) -> bool {
    UNIT.as_ref()
        .is_some_and(|unit| unit.is_match(first_bytes(after, 16)))
}

/// Returns the words of a JSON key: those of `contactPhone` are "contact Phone".
pub(super) fn words_of_key(key: &str) -> String {
    super::count_steps(key.len());
    let mut words = String::with_capacity(key.len() + 4);
    let mut was_small = false;
    for c in key.chars() {
        if was_small && c.is_uppercase() {
            words.push(' ');
        }
        was_small = c.is_lowercase();
        words.push(c);
    }
    words
}

/// Returns `true` for the words of a key that say only that its value is a number: the key around it may
/// say of what, as in `{"phone": {"number": …}}`.
pub(super) fn says_number(words: &str) -> bool {
    const WORDS: &str = "number|no|nr|num|value|raw|digits|formatted|full|national|international|nummer|número|numero|numéro|номер|\
        号码|號碼|号|番号|번호|رقم";
    let words = words.to_lowercase();
    WORDS.split('|').any(|word| word.trim() == words.trim())
}

/// Returns `true` after the key of a value, as in `"count": ` and `count=`.
pub(super) fn follows_key(before: &str) -> bool {
    let before = before.trim_end_matches(' ');
    match before.strip_suffix(':') {
        Some(key) => key.ends_with(['"', '\'']),
        None => before.ends_with('='),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!(
            [&WORDS, &INSIDE, &GAP, &STRICT_GAP, &BEGUN, &COUNTED, &UNIT]
                .iter()
                .all(|pattern| pattern.is_some())
        );
    }

    #[test]
    fn the_nearest_word_counts() {
        let meaning =
            |before: &str| nearest(before).map(|label| (label.meaning, label.is_adjacent));
        assert_eq!(meaning("order "), Some((Meaning::Other, true)));
        assert_eq!(meaning("order 7, phone no. "), Some((Meaning::Phone, true)));
        assert_eq!(
            meaning("call about order number "),
            Some((Meaning::Other, true))
        );
        assert_eq!(
            meaning("my order, placed on Monday, "),
            Some((Meaning::Other, false))
        );
        assert_eq!(meaning("hotel "), None);
        assert_eq!(meaning("customer_phone: "), Some((Meaning::Phone, true)));
    }
}
