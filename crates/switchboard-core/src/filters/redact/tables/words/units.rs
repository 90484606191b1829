//! Words after a number that say that it counts something.

/// Codes of currencies (ISO 4217) and units that are no words of a sentence: a number of any form before them is an amount.
pub(in crate::filters::redact) const CODES: &str = "usd|eur|gbp|idr|inr|krw|vnd|brl|mxn|zar|sek|nok|dkk|pln|czk|huf|thb|myr|sgd|hkd|twd|aud|cad|nzd|chf|aed|uah|jpy|cny|\
    clp|pkr|egp|qar|kwd|ngn|kes|bgn|isk|kzt|lkr|bdt|rmb|btc|eth|xof|xaf|fcfa|dzd|tnd|omr|bhd|ghs|ugx|tzs|etb|mga|mwk|zmw|mzn|aoa|bwp|szl|lsl|lyd|sdg|gnf|rwf|bif|cdf|kmf|djf|gmd|lrd|cve|mru|htg|jmd|ttd|bbd|bzd|gtq|hnl|pab|dop|uyu|pyg|syp|iqd|irr|lbp|yer|\
    afn|tjs|tmt|amd|byn|mdl|lak|khr|mvr|btn|bnd|fjd|pgk|vuv|wst|xpf|usdt|usdc|rsd|mkd|azn|uzs|kgs|mnt|npr|\
    kč|zł|kr|ден|дин|лв|тг|сум|сўм|тенге|₸|euros?|eur[oó]|dollars?|rupees?|rupiah|rub(?:le|el)s?|rublos|francs?|franken|kron(?:a|e|or|er|y)|korun[ya]?|yuan|\
    baht|liras?|reais|đồng|dirhams?|ri?yals?|shekels?|złotych|forint|pesos?|yen|kwh|mwh|ghz|mhz|khz|kb|mb|gb|tb|kib|mib|gib|kbps|mbps";

/// Currencies whose codes are words as well: "415-555-2671 try after five".
pub(in crate::filters::redact) const CAPITALS: &str =
    "ILS|TRY|PHP|COP|RON|TL|RUB|MKD|CFA|F CFA|LEI|RM|MAD|SAR|GEL|BAM|JOD|Hz";

/// Words that count only a number that is bare or has groups of thousands: "1 234 567 lei", but "0712 345 678 lei nu merge".
pub(in crate::filters::redact) const COUNTED_THINGS: &str = "won|ft|din|bytes?|bits?|ms|ns|μs|µs|sec|secs|seconds?|nanoseconds?|milliseconds?|microseconds?|minutes?|hours?|days?|weeks|months|years|rows?|columns|cols|\
    steps?|points?|users?|items?|pieces?|people|persons?|km|m|cm|mm|kg|mg|ml|times|tokens?|records?|entries|lines?|requests?|hits|views|lei|rub|pounds?|\
    stück|stücke|pcs|words?|pages?|inhabitants|hz|iterations?|cycles|files?|messages?|characters|chars|visitors|visits|downloads|uploads|votes|stars|light[ -]years|atoms|molecules|\
    base[ -]pairs|samples|transactions|cells|miles|met(?:er|re)s|kilomet(?:er|re)s|feet|tonnes|tons|barrels|shares|copies|units|inodes|keys|ops|operations|calls per|events|\
    instructions|packets|blocks|nodes|edges|objects|parameters|neurons|subscribers|followers|likes|clicks|impressions|pixels|documents|images|results|errors|warnings|\
    tests|commits|seats|passengers|employees|residents|citizens|households|customers|orders|tickets|books|songs|galaxies|planets|years ago|in total|remaining|left over|mod|xor|\
    einwohner|menschen|leute|personen|tage|stunden|minuten|sekunden|jahre|schritte|punkte|zeilen|dateien|nutzer|kilometer|tonnen|aktien|stimmen|exemplare|besucher|\
    habitants|personnes|jours|heures|secondes|ans|années|lignes|fichiers|octets|voix|exemplaires|visiteurs|mètres|tonnes|actions|\
    habitantes|personas|días|horas|segundos|años|líneas|archivos|pasos|votos|ejemplares|visitantes|metros|toneladas|acciones|unidades|veces|pessoas|dias|anos|linhas|passos|\
    abitanti|persone|giorni|ore|secondi|anni|righe|passi|voti|copie|visitatori|metri|tonnellate|azioni|volte|\
    inwoners|mensen|dagen|uur|seconden|jaar|regels|stappen|stemmen|keer|invånare|människor|dagar|timmar|sekunder|steg|röster|gånger|innbyggere|dager|timer|indbyggere|\
    asukasta|päivää|tuntia|sekuntia|mieszkańców|osób|dni|godzin|sekund|lat|kroków|głosów|razy|sztuk|obyvatel|lidí|dnů|hodin|kroků|hlasů|kusů|lakos|ember|nap|óra|másodperc|lépés|darab|\
    locuitori|persoane|zile|ore|pași|жителей|человек|дней|часов|секунд|лет|строк|шагов|голосов|раз|штук|шт|байт|метров|тонн|жителів|осіб|днів|годин|кроків|разів|жители|души|\
    κάτοικοι|άτομα|ημέρες|ώρες|βήματα|kişi|nüfus|gün|saat|saniye|adım|adet|kez|orang|penduduk|hari|jam|langkah|kali|người|dân|ngày|giờ|bước|lần|نسمة|شخص|يوم|ساعة|نفر|روز|תושבים|אנשים|ימים|צעדים|लोग|लोगों|दिन|कदम|คน|วัน|ก้าว";
