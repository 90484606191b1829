//! Tests of e-mail addresses.

use super::*;

#[test]
fn email_addresses_are_found_in_any_script() {
    becomes("mail ann.lee+x@mail.example.co.uk now", "mail [EMAIL] now");
    becomes("josé.müller@exämple.de", "[EMAIL]");
    becomes("пишите на иван@почта.рф.", "пишите на [EMAIL].");
    becomes("अजय@डाटा.भारत", "[EMAIL]");
    becomes("ann@xn--e1afmkfd.xn--p1ai", "[EMAIL]");
    becomes("用户@例子.广告", "[EMAIL]");
    becomes("请发到ann@example.com谢谢", "请发到[EMAIL]谢谢");
    becomes("我的邮箱是123456@qq.com。", "我的邮箱是[EMAIL]。");
    becomes("ann＠example．com", "[EMAIL]");
    becomes("ａｎｎ＠ｅｘａｍｐｌｅ．ｃｏｍ", "[EMAIL]");
    stays("lodash@4.17.21, @ann, ann@localhost");
}

#[test]
fn a_name_may_have_an_ampersand() {
    becomes("smith&jones@example.com", "[EMAIL]");
    becomes("/leave?a=1&ann@example.com", "/leave?a=1&[EMAIL]");
    becomes("a=1&ann@example.com", "a=1&[EMAIL]");
}

#[test]
fn the_at_sign_has_names_in_many_languages() {
    becomes("luis arroba example.es", "[EMAIL]");
    becomes("pierre [arobase] example [point] fr", "[EMAIL]");
    becomes("mario chiocciola example punto it", "[EMAIL]");
    becomes("ann&#x40;example.com", "[EMAIL]");
    stays("an arroba of wheat, ann at example.com");
    stays("I will at some point email you, at some point online");
    becomes("ANN DOT LEE AT EXAMPLE DOT COM", "[EMAIL]");
}

#[test]
fn the_address_of_a_page_is_no_part_of_an_email_address() {
    becomes(
        "https://shop.example/leave?list=7&user=ann@example.com&x=1",
        "https://shop.example/leave?list=7&user=[EMAIL]&x=1",
    );
    becomes("/leave?ann@example.com", "/leave?[EMAIL]");
}

#[test]
fn dots_and_signs_before_the_at_sign_may_be_words() {
    becomes("ann [dot] lee [at] example [dot] com", "[EMAIL]");
    becomes("ann(dot)lee(at)example(dot)com", "[EMAIL]");
    becomes("ann underscore lee at example dot com", "[EMAIL]");
    becomes("pierre arobase example point fr", "[EMAIL]");
    becomes("jan at example dot be", "[EMAIL]");
    becomes("nikos παπάκι example τελεία gr", "[EMAIL]");
    stays("staring at the dot is boring");
    stays("read more at example dot com");
}

#[test]
fn the_name_of_a_user_on_a_host_is_no_address() {
    stays("postgres://ann:key@db.example.com/app");
    stays("git clone git@git.example.com:team/project.git");
    stays("deploy@web1.example.com:~$ ls");
    stays("ssh deploy@web1.example.com");
    stays("follow @ann@social.example");
    stays("Message-ID: <2026.abc@mail.example.com>");
    becomes("to: ann@example.com: see below", "to: [EMAIL]: see below");
    becomes(
        "https://x.example/?to=ann@example.com",
        "https://x.example/?to=[EMAIL]",
    );
}

#[test]
fn a_word_of_another_script_before_an_address_stays() {
    becomes("שלחו ל-ann@example.com", "שלחו ל-[EMAIL]");
    becomes("иван-петров@почта.рф", "[EMAIL]");
}

#[test]
fn a_handle_is_no_address() {
    stays("sígueme en @taller.luz y te mando el catálogo");
    stays("follow @ann.shop");
    stays("von @tienda.es");
    becomes("email: ann @example.com", "email: [EMAIL]");
}

#[test]
fn signs_have_names_of_two_words() {
    becomes("pedro guion bajo ruiz arroba example punto com", "[EMAIL]");
    becomes("jean point dupont arobase example point fr", "[EMAIL]");
    becomes("wang[艾特]example.com", "[EMAIL]");
}
