//! Tests of cards, social security numbers, resident ids and passports.

use super::*;

#[test]
fn card_numbers_are_found() {
    becomes("card 4111 1111 1111 1111.", "card [CARD].");
    becomes("5500005555555559", "[CARD]");
    becomes("amex 3782 822463 10005", "amex [CARD]");
    becomes(
        "4111 1111 1111 1111 12/27, cvv 123",
        "[CARD] 12/27, cvv 123",
    );
    becomes("order 12 4111 1111 1111 1111", "order 12 [CARD]");
    becomes("2026-11-15 4111111111111111", "2026-11-15 [CARD]");
    becomes("card4111111111111111", "card[CARD]");
    becomes("4111\u{a0}1111\u{a0}1111\u{a0}1111", "[CARD]");
    becomes("4111.1111.1111.1111", "[CARD]");
    becomes("4111\u{2011}1111\u{2011}1111\u{2011}1111", "[CARD]");
    becomes(
        "卡号４１１１　１１１１　１１１１　１１１１。",
        "卡号[CARD]。",
    );
    becomes("4111\u{200b}1111\u{200b}1111\u{200b}1111", "[CARD]");
}

#[test]
fn social_security_numbers_are_found() {
    becomes("ssn 078-05-1120!", "ssn [SSN]!");
    becomes("078.05.1120", "[SSN]");
    becomes("078\u{a0}05\u{a0}1120", "[SSN]");
    becomes("０７８－０５－１１２０", "[SSN]");
    becomes("SSN: 078051120", "SSN: [SSN]");
    becomes("ＳＳＮ：１２３４５６７８９", "ＳＳＮ：[SSN]");
    becomes("SSN#078-05-1120", "SSN#[SSN]");
    becomes("SSN-078-05-1120", "SSN-[SSN]");
    becomes(
        "my Social Security number is 078051120, ok?",
        "my Social Security number is [SSN], ok?",
    );
    stays("number 078051120");
    stays("lessness 078051120");
    stays("part 123-45-6789-01");
}

#[test]
fn resident_ids_are_found_in_any_groups() {
    for id in [
        "110105 19491231 002X",
        "110105-1949-1231-002X",
        "110 105 1949 1231 002x",
        "1101 0519 4912 3100 2X",
    ] {
        becomes(id, "[RESIDENT_ID]");
    }
    stays("110105 19491231 0021");
    stays("110105, 19491231, 002X");
}

#[test]
fn words_for_passport_are_known_in_many_languages() {
    for words in [
        "Paß-Nr.",
        "hộ chiếu số",
        "číslo pasu",
        "პასპორტის ნომერი",
        "vegabréf",
    ] {
        let text = format!("{words} B1234567");
        becomes(&text, &format!("{words} [PASSPORT]"));
    }
}

#[test]
fn groups_are_separated_by_dots_and_slashes_too() {
    becomes("DE89.3704.0044.0532.0130.00", "[IBAN]");
    becomes("DE89/3704/0044/0532/0130/00", "[IBAN]");
    becomes("110105.19491231.002X", "[RESIDENT_ID]");
    becomes("110105 19491231 002 X", "[RESIDENT_ID]");
    becomes("身份证 110105 491231 002", "身份证 [RESIDENT_ID]");
    stays("110105 491231 002");
}

#[test]
fn the_letters_of_a_passport_may_stand_apart_or_be_of_another_script() {
    becomes("Passport No AB 123456", "Passport No [PASSPORT]");
    becomes("PASSPORT NO 123456789", "PASSPORT NO [PASSPORT]");
    becomes("passport UK 533380006", "passport UK [PASSPORT]");
    becomes("паспорт АВ123456", "паспорт [PASSPORT]");
    becomes("паспорт МТ 123456", "паспорт [PASSPORT]");
    becomes(
        "पासपोर्ट नंबर जो मैंने पिछले साल बनवाया N7654328",
        "पासपोर्ट नंबर जो मैंने पिछले साल बनवाया [PASSPORT]",
    );
}

#[test]
fn a_date_may_stand_between_a_word_for_passport_and_the_number() {
    becomes(
        "passport of my son, born 2016-03-02: 533380006",
        "passport of my son, born 2016-03-02: [PASSPORT]",
    );
    becomes(
        "new passport, issued 2024, K1234582E",
        "new passport, issued 2024, [PASSPORT]",
    );
    becomes("Pasaport numaram U12345821", "Pasaport numaram [PASSPORT]");
    becomes("Passinumero FP1234582", "Passinumero [PASSPORT]");
    stays("passport renewed on 2026-11-15, order 12345678");
    stays("take the passport to desk 4 at 10:30");
}

#[test]
fn passes_of_countries_are_passports_and_others_are_not() {
    becomes("Schweizer Pass: X1234582", "Schweizer Pass: [PASSPORT]");
    becomes(
        "österreichischer Pass P1234567",
        "österreichischer Pass [PASSPORT]",
    );
    becomes("numero_passeport=09AB12345", "numero_passeport=[PASSPORT]");
    stays("boarding pass number 1234567");
    stays("Pass, Kundennummer 12345678");
    becomes(
        "passport number on the booking is wrong: K7654321",
        "passport number on the booking is wrong: [PASSPORT]",
    );
    becomes(
        "passports K7654321 and K7654322",
        "passports [PASSPORT] and [PASSPORT]",
    );
}

#[test]
fn a_resident_id_after_its_word_may_have_a_wrong_date() {
    becomes("证件号码 310115200102300880", "证件号码 [RESIDENT_ID]");
    stays("310115200102300880");
}
