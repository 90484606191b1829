//! Screenshots as SVG.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use terminal::{Size, Terminal};

fn screenshot(columns: u16, rows: u16, script: &str) -> String {
    let size = Size { columns, rows };
    let mut terminal = Terminal::start("sh", ["-c", script], size, [("LC_ALL", "C")]).unwrap();
    terminal.wait_exit().unwrap();
    terminal.svg("a & b")
}

/// The contents of the window.
fn content(svg: &str) -> &str {
    let (_, content) = svg
        .split_once("<g transform=\"translate(12 38)\">\n")
        .unwrap();
    content.strip_suffix("</g>\n</svg>\n").unwrap()
}

#[test]
fn a_screenshot_is_a_whole_file() {
    let svg = screenshot(10, 2, "printf 'x < \\033[1;31my\\033[0m'");
    insta::assert_snapshot!(svg, @r##"
    <svg xmlns="http://www.w3.org/2000/svg" width="108" height="84" viewBox="0 0 108 84" role="img" xml:space="preserve">
    <title>a &amp; b</title>
    <style>
    text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;fill:#e6edf3;white-space:pre}
    .b{font-weight:700}.d{opacity:.6}.i{font-style:italic}.u{text-decoration:underline}.c{fill:#e6edf3;opacity:.5}
    </style>
    <rect x=".5" y=".5" width="107" height="83" rx="8" fill="#0d1117" stroke="#30363d"/>
    <circle cx="18" cy="16" r="5" fill="#ff5f57"/><circle cx="36" cy="16" r="5" fill="#febc2e"/><circle cx="54" cy="16" r="5" fill="#28c840"/>
    <text class="d" x="54" y="21" text-anchor="middle">a &amp; b</text>
    <g transform="translate(12 38)">
    <g>
    <g transform="translate(0 0)"><text x="0" y="13" textLength="25.2" lengthAdjust="spacingAndGlyphs">x &lt;</text><text class="b" x="33.6" y="13" textLength="8.4" lengthAdjust="spacingAndGlyphs" style="fill:#ff7b72">y</text></g>
    </g>
    </g>
    </svg>
    "##);
}

#[test]
fn colours_and_styles_are_drawn() {
    let svg = screenshot(
        60,
        2,
        "printf '\\033[2mdim\\033[0m \\033[3mitalic\\033[0m \\033[4mun der\\033[0m \\033[7minverse\\033[0m '; \
         printf '\\033[38;5;208mindexed\\033[0m \\033[38;2;1;2;3mexact\\033[0m \\033[1;30;46m on cyan \\033[0m'",
    );
    insta::assert_snapshot!(content(&svg), @r##"
    <g>
    <g transform="translate(0 0)"><rect x="151.2" width="58.8" height="17" fill="#e6edf3"/><rect x="336" width="75.6" height="17" fill="#39c5cf"/><text class="d" x="0" y="13" textLength="25.2" lengthAdjust="spacingAndGlyphs">dim</text><text class="i" x="33.6" y="13" textLength="50.4" lengthAdjust="spacingAndGlyphs">italic</text><text class="u" x="92.4" y="13" textLength="50.4" lengthAdjust="spacingAndGlyphs">un der</text><text x="151.2" y="13" textLength="58.8" lengthAdjust="spacingAndGlyphs" style="fill:#0d1117">inverse</text><text x="218.4" y="13" textLength="58.8" lengthAdjust="spacingAndGlyphs" style="fill:#ff8700">indexed</text><text x="285.6" y="13" textLength="42" lengthAdjust="spacingAndGlyphs" style="fill:#010203">exact</text><text class="b" x="344.4" y="13" textLength="58.8" lengthAdjust="spacingAndGlyphs" style="fill:#484f58">on cyan</text></g>
    </g>
    "##);
}

#[test]
fn wide_and_rare_characters_are_positioned_one_by_one() {
    let svg = screenshot(20, 1, "printf 'a漢字🦀b ✓ c e\\314\\201d'");
    insta::assert_snapshot!(content(&svg), @r#"
    <g>
    <g transform="translate(0 0)"><text x="0" y="13" textLength="8.4" lengthAdjust="spacingAndGlyphs">a</text><text x="8.4" y="13" textLength="16.8" lengthAdjust="spacingAndGlyphs">漢</text><text x="25.2" y="13" textLength="16.8" lengthAdjust="spacingAndGlyphs">字</text><text x="42" y="13" textLength="16.8" lengthAdjust="spacingAndGlyphs">🦀</text><text x="58.8" y="13" textLength="8.4" lengthAdjust="spacingAndGlyphs">b</text><text x="75.6" y="13" textLength="8.4" lengthAdjust="spacingAndGlyphs">✓</text><text x="92.4" y="13" textLength="8.4" lengthAdjust="spacingAndGlyphs">c</text><text x="109.2" y="13" textLength="8.4" lengthAdjust="spacingAndGlyphs">é</text><text x="117.6" y="13" textLength="8.4" lengthAdjust="spacingAndGlyphs">d</text></g>
    </g>
    "#);
}

#[test]
fn a_row_that_is_shown_twice_is_drawn_once() {
    let svg = screenshot(10, 4, "printf 'one\\n\\none\\ntwo'");
    assert_eq!(svg.matches(">one<").count(), 1);
    insta::assert_snapshot!(content(&svg), @r##"
    <g>
    <use href="#r0" y="0"/>
    <use href="#r0" y="34"/>
    <g transform="translate(0 51)"><text x="0" y="13" textLength="25.2" lengthAdjust="spacingAndGlyphs">two</text></g>
    </g>
    "##);
}

#[test]
fn a_program_that_waits_shows_its_cursor() {
    let size = Size {
        columns: 10,
        rows: 1,
    };
    let mut terminal = Terminal::start("sh", ["-c", "printf '> '; exec cat"], size, []).unwrap();
    terminal.wait_for("> ").unwrap();
    insta::assert_snapshot!(content(&terminal.svg("")), @r#"
    <g>
    <g transform="translate(0 0)"><text x="0" y="13" textLength="8.4" lengthAdjust="spacingAndGlyphs">&gt;</text></g>
    <rect class="c" x="16.8" y="0" width="8.4" height="17"/>
    </g>
    "#);
}
