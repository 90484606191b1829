//! Tests of phones and of numbers that look like them.

use super::*;

#[rustfmt::skip]
const PHONE_NUMBERS: [&str; 28] = [
    "+44 20 7946 0958", "+1 (415) 555-2671", "(415) 555-2671", "415.555.2671",
    "415\u{a0}555\u{a0}2671", "１-415-555-2671", "4155552671", "415-5552671", "415 5552671",
    "(415) 5552671", "1-415-5552671", "14155552671", "12125552671", "020 7946 0958",
    "(020) 7946 0958", "01632 960 001", "01 23 45 67 89", "03-1234-5678", "0755-12345678",
    "010-8888 8888", "0044 20 7946 0958", "07700900123", "13812345678", "138 1234 5678",
    "138-1234-5678", "１３８１２３４５６７８", "8613812345678", "\u{202a}+86 138 1234 5678\u{202c}",
];

#[test]
fn phone_numbers_are_found() {
    for number in PHONE_NUMBERS {
        let redacted = all().text(number).replace('\u{202a}', "");
        assert_eq!(redacted, "[PHONE]", "of {number:?}");
    }
    becomes("手机13812345678，谢谢", "手机[PHONE]，谢谢");
    becomes("415-555-2671,415-555-2672", "[PHONE],[PHONE]");
    becomes("tel-4155552671", "tel-[PHONE]");
    becomes("+1 415 555 2671 415 555 2672", "[PHONE] [PHONE]");
    becomes("Call me at 4155552671.", "Call me at [PHONE].");
    becomes("order 7, phone #4155552671", "order 7, phone #[PHONE]");
}

#[rustfmt::skip]
const OTHER_NUMBERS: [&str; 31] = [
    "card 4111-1111-1111-1112", "order 12345, 3 items, 2026-11-15", "order 1234567890",
    "order 4155552671", "order 415-5552671", "ORD-415-5552671", "112-4155552-6711234",
    "415.5552671", "Order no. 4155552671", "invoice_id=4155552671", "订单号4155552671",
    "/orders/4155552671", "ORD-4155552671", "ticket #4155552671",
    "ISBN 0306406152 or 978-0-306-40615-7", "$4155552671", "4155552671.50", "0.4155552671",
    "0.30000000000000004", "52.52000659999999", "1,234,567,890.00", "1763200000 and 1763200000000",
    "01.02.2026 10.30", "2026-11-15 10-30-45", "20261115-103045", "15-11-2026 20 30",
    "version 1.2.3.4 at 192.168.100.200", "550e8400-e29b-41d4-a716-446655440000",
    "41111111-1111-1111-4155-552671415555", "call_4155552671 and rs_020794609580", "fc4155552671ab",
];

#[test]
fn other_numbers_stay() {
    OTHER_NUMBERS.into_iter().for_each(stays);
}

#[test]
fn a_word_before_an_identifier_names_all_of_it() {
    stays("doi:10.1000/182.2026.1118");
    stays("10.1000/182.2026.1118");
    stays("invoice 2026-A/4155552671");
    becomes("030-1234567/0171-1234567", "[PHONE]/[PHONE]");
    becomes("home 4155552671/4155552672", "home [PHONE]/[PHONE]");
    becomes("415-555-2671(h)/415-555-2672(w)", "[PHONE](h)/[PHONE](w)");
}

#[test]
fn the_second_of_two_phones_is_no_path() {
    becomes("Tel:030-1234567/0171-1234567", "Tel:[PHONE]/[PHONE]");
    becomes("Tel.030-1234567/0171-1234567", "Tel.[PHONE]/[PHONE]");
    becomes("电话:13800138000/13900139000", "电话:[PHONE]/[PHONE]");
    becomes("电话13800138000/13900139000", "电话[PHONE]/[PHONE]");
    stays("doi:10.1000/4155552671");
    stays("invoice:A-2026/4155552671");
    stays("GET /пользователи/4155552671");
}

#[test]
fn a_compound_with_a_word_for_phone_means_a_phone() {
    for words in [
        "휴대전화번호: ",
        "집전화번호 ",
        "비상연락번호: ",
        "사무실번호 ",
        "自宅電話番号 ",
        "固定電話番号：",
        "勤務先電話番号 ",
        "緊急連絡先電話番号 ",
        "ファックス番号 ",
        "Diensttelefonnummer: ",
        "Privathandynummer ",
        "Telefaxnummer ",
        "Notfallnummer: ",
    ] {
        for number in ["010-1234-5678", "03-1234-5678", "030 1234567", "5550132"] {
            becomes(&format!("{words}{number}"), &format!("{words}[PHONE]"));
        }
    }
    stays("Immobiliennummer: 0171234567");
    stays("Automobilnummer: 0171234567");
    stays("緊急注文番号 0312345678");
}

#[test]
fn the_codes_of_currencies_that_are_words_count_in_capitals_only() {
    for code in ["TRY", "PHP", "COP", "RON", "ILS"] {
        stays(&format!("415-555-2671 {code}"));
    }
    stays("4155552671 eur");
    becomes(
        "call me on 415-555-2671 try after five",
        "call me on [PHONE] try after five",
    );
    becomes("415-555-2671 Ron will answer", "[PHONE] Ron will answer");
    becomes(
        "appelez 0612345678 ils sont là",
        "appelez [PHONE] ils sont là",
    );
}

#[test]
fn a_number_that_counts_something_is_no_phone() {
    stays("7 of 4155552671");
    stays("1073741824 of 4294967296");
    stays("more than 4155552671");
    stays("is greater  than 4155552671");
    becomes(
        "ask Ann rather than 4155552671",
        "ask Ann rather than [PHONE]",
    );
    becomes("<b>4155552671</b>", "<b>[PHONE]</b>");
    becomes("a friend of 4155552671", "a friend of [PHONE]");
}

#[test]
fn some_words_name_a_number_only_right_before_it() {
    stays("reservation 4155552671");
    stays("Vorgangsnummer: 0171234567");
    stays("チケット番号 0312345678");
    stays("예약번호 01012345678");
    stays("提货码 13800138000");
    stays("error 4155552671 at line 33");
    stays("GET /users/4155552671");
    becomes(
        "a reservation for Ann, 4155552671",
        "a reservation for Ann, [PHONE]",
    );
    becomes("I got an error, 4155552671", "I got an error, [PHONE]");
    becomes("send requests to 4155552671", "send requests to [PHONE]");
    becomes("Rufnummer 01712345678", "Rufnummer [PHONE]");
    becomes("電話番号 0312345678", "電話番号 [PHONE]");
    becomes("手机号码13800138000", "手机号码[PHONE]");
    becomes(
        "passport, document number B1234567",
        "passport, document number [PASSPORT]",
    );
}

#[test]
fn numbers_of_registers_are_no_phones() {
    for text in [
        "SIRET 732 829 320 00074",
        "N° SIRET : 443 061 841 00047",
        "TVA BE 0411.905.847",
        "numéro d'entreprise 0403.170.701",
        "NHS number 943 476 5919",
        "CNPJ: 11 222 333 0001 81",
        "CEP 01310-100",
        "P. IVA 0123 456 0785",
        "Α.Φ.Μ. 094 014 201",
        "ИНН 7707083893",
        "снилс 087-654-303 00",
        "fødselsnr. 01018012345",
        "vergi no 123 456 7890",
        "mã số thuế 0312345678",
        "کد ملی 0012345678",
        "사업자번호 02-1234-5678",
        "学号：13812345678",
    ] {
        stays(text);
    }
    becomes("cep: 0532 123 45 67", "cep: [PHONE]");
}

#[test]
fn a_word_for_number_with_a_noun_names_another_thing() {
    for text in [
        "locker number 0171 234567",
        "Fahrgest.-Nr. 0171 2345678",
        "numéro de casier 06 12 34 56 78",
        "tesisat no 0532 123 45 67",
        "رقم اللوحة 0501234567",
        "비품 번호 010-1234-5678",
        "借书证号13812345678",
    ] {
        stays(text);
    }
    for (words, number) in [
        ("my number is", "020 7946 0958"),
        ("Ann's number", "020 7946 0958"),
        ("registered number", "020 7946 0958"),
        ("le numéro de ma femme est le", "06 12 34 56 78"),
        ("número gratuito", "0800 123 4567"),
        ("Me liga no", "(11) 2345-6071"),
        ("Büronummer", "030 1234567"),
        ("номер мамы", "8 912 345-67-89"),
        ("annemin numarası", "0532 123 45 67"),
        ("رقم أمي", "0501234567"),
        ("제 번호는", "010-1234-5678"),
        ("预留号码", "13812345678"),
        ("matkapuhelinnumero", "041 2345678"),
    ] {
        becomes(&format!("{words} {number}"), &format!("{words} [PHONE]"));
    }
}

#[test]
fn the_phone_of_a_customer_is_a_phone() {
    becomes(
        "teléfono del cliente 612 345 678",
        "teléfono del cliente [PHONE]",
    );
    becomes("telefon klienta: 501 234 567", "telefon klienta: [PHONE]");
    becomes("call customer 415-555-2671", "call customer [PHONE]");
    becomes("Kundenservice 0800 1234567", "Kundenservice [PHONE]");
    stays("customer 4155552671");
    stays("Kundennr 0800 1234567");
    stays("call about order number 4155552671");
}

#[test]
fn the_header_of_a_column_names_its_numbers() {
    stays("| order | qty |\n| --- | --- |\n| 4155552671 | 3 |\n| 4155552672 | 1 |");
    stays("tracking,weight\n0612345678,1.25\n0612345679,2.50");
    stays("id;kunde\n0171234567;Müller");
    becomes(
        "name,phone\nAnn,5550132\nBob,5550133",
        "name,phone\nAnn,[PHONE]\nBob,[PHONE]",
    );
    becomes(
        "About my order, please\n4155552671, thanks",
        "About my order, please\n[PHONE], thanks",
    );
}

#[test]
fn a_unit_in_small_letters_after_groups_of_a_phone_is_a_word() {
    becomes("call 415 555 0132 us office", "call [PHONE] us office");
    becomes(
        "reach me at 020 7946 0018 times 9-5",
        "reach me at [PHONE] times 9-5",
    );
    becomes("0712 345 678 lei nu merge", "[PHONE] lei nu merge");
    becomes("CALL 415-555-0132 ALL DAY", "CALL [PHONE] ALL DAY");
    becomes("手机13812345678人不在", "手机[PHONE]人不在");
    becomes("call 4155550132!", "call [PHONE]!");
    stays("4155552671 visitors");
    stays("8 045 311 447 Menschen");
    stays("4155552671 / 2 = x");
    stays("0612345678.pdf");
}

#[test]
fn times_and_lists_are_no_phones() {
    stays("open 09.00-17.30");
    stays("Mo-Fr 08-12 13-17");
    stays("0900-1700 1000-1400");
    stays("01 02 03 04 05 06 07");
    stays("0-100-0-100");
    stays("000-000-0000");
    stays("[4155550132] retry");
    becomes("[call me](tel:4155550132)", "[call me](tel:[PHONE])");
}

#[test]
fn words_without_their_accents_are_understood() {
    becomes("movil 612349067", "movil [PHONE]");
    becomes("Rueckruf an 5550132", "Rueckruf an [PHONE]");
    stays("objednavka 777123456");
    stays("Zaehlerstand 0221555012");
}

#[test]
fn letters_of_an_acronym_may_stand_apart() {
    stays("D-U-N-S 15-048-3782");
    stays("D.U.N.S. 15-048-3782");
    stays("S.I.R.E.T. 443 061 841 00047");
}

#[test]
fn capitals_and_a_slash_begin_an_identifier() {
    stays("FV/11/2026/0098");
    stays("SR/0612345678");
    stays("call me about SR/0612345678");
    becomes("TEL/030-1234567", "TEL/[PHONE]");
    becomes("home/4155552671", "home/[PHONE]");
}

#[test]
fn an_area_code_in_brackets_is_that_of_a_phone() {
    becomes("my card: (917) 555-0168", "my card: [PHONE]");
    becomes("order (020) 7946 0958", "order [PHONE]");
    stays("order (2024) 123456");
}

#[test]
fn a_text_goes_to_a_phone() {
    becomes(
        "SMS the reference to 071 123 4592",
        "SMS the reference to [PHONE]",
    );
    stays("the reference to 4155552671");
}

#[test]
fn an_hour_may_stand_between_a_word_and_its_number() {
    becomes("call after 16:30 on 5550132", "call after 16:30 on [PHONE]");
    stays("call about room 101 for 5550132");
}

#[test]
fn what_belongs_to_a_phone_has_other_numbers() {
    stays("Telefonrechnung 2024 0715 0034");
    stays("Handyvertrag 01715550123");
    stays("the mobile app 8.14.2 (812345)");
    becomes("4000-0566-5566-5556 09/27 123", "[CARD] 09/27 123");
    stays("Dosar nr. 0722 555 013/2024");
    stays("sipariş numaram 0541 555 01 23");
    becomes("numaram 5415550123", "numaram [PHONE]");
}

#[test]
fn an_iban_with_wrong_digits_holds_no_phone_and_no_card() {
    stays("They gave me DE12 5001 0517 0648 4898 91 but it fails");
    stays("IBAN NL99 ABNA 0417 1643 01 klopt niet");
    stays("FR11 2004 1010 0505 0001 3M02 607 est refusé");
    stays("DE12 4111 1111 1111 1111 11");
    becomes(
        "DE12 5001 0517 0648 4898 91, Tel. 0171 2345678",
        "DE12 5001 0517 0648 4898 91, Tel. [PHONE]",
    );
    becomes("room DE12 4111 1111 1111 1111", "room DE12 [CARD]");
    becomes("DE89 3704 0044 0532 0130 00 0171 2345678", "[IBAN] [PHONE]");
}

#[test]
fn numbers_in_addresses_and_names_of_files_are_no_phones() {
    stays("see example.com/p/07400512051/reviews");
    stays("cdn.example.net/v/2065558812/hls/720p.m3u8");
    stays("call me after you read example.com/p/07400512051");
    stays("www.example.fr?id=0612345678");
    stays("GET /v1/phones/4155552671");
    stays("2065558812-backup.tar.gz");
    stays("D:/scans/0301234567/1");
    becomes("wa.me/491711234567", "wa.me/[PHONE]");
    becomes(
        "example.com/call?tel=0612345678",
        "example.com/call?tel=[PHONE]",
    );
    becomes(
        "see example.com or 0612345678.",
        "see example.com or [PHONE].",
    );
    becomes("mail ann@example.com/0612345678", "mail [EMAIL]/[PHONE]");
}

#[test]
fn units_after_a_number_count_it() {
    for unit in [
        "B in 00:14:22",
        "octets",
        "bit/s",
        "kB/s",
        "Hz",
        "Pa",
        "kWh",
        "m²",
        "km³",
        "µs",
        "mAh",
        "rows",
        "pcs",
        "Stk",
        "шт",
        "пользователей",
        "satır",
        "baris",
        "字节",
        "バイト",
        "건",
        "بايت",
        "בייט",
        "बाइट",
        "ไบต์",
    ] {
        stays(&format!("4155552671 {unit}"));
    }
    becomes("4155552671 B. Smith", "[PHONE] B. Smith");
    becomes("4155552671 at five", "[PHONE] at five");
    becomes("4155552671 A friend", "[PHONE] A friend");
    becomes("13812345678回电", "[PHONE]回电");
}

#[test]
fn words_for_phone_take_prefixes() {
    for words in [
        "رقم التليفون",
        "رقم التلفون",
        "وتليفون البيت",
        "بالموبايل",
        "للجوال",
        "رقم المحمول",
        "شماره تلفن",
        "تلفن همراه",
        "شماره واتساپ",
        "میرا موبائل نمبر",
        "מספר הטלפון",
        "בפלאפון",
        "לנייד",
        "मोबाईल नं",
        "दूरभाष",
        "টেলিফোন নম্বর",
        "φαξ",
        "вацап",
        "หมายเลขติดต่อ",
    ] {
        becomes(&format!("{words} 01001258545"), &format!("{words} [PHONE]"));
    }
}

#[test]
fn more_things_have_numbers() {
    for words in [
        "numéro de prêt",
        "Mietvertrag",
        "żądanie nr",
        "kod do drzwi",
        "номер двигателя",
        "αίτηση",
        "รหัสนักศึกษา",
        "เลขวีซ่า",
        "numero ng resibo",
        "numri i faturës",
        "phone bill",
        "codice errore",
        "处方号",
    ] {
        stays(&format!("{words} 0612345678"));
    }
    becomes(
        "numero ng nanay ko 0905 127 8388",
        "numero ng nanay ko [PHONE]",
    );
    becomes("หมายเลขของฉัน 081-230-3399", "หมายเลขของฉัน [PHONE]");
    stays("mehr als 4155552671");
    stays("больше чем 4155552671");
}
