#!/usr/bin/env python3
"""Writes phones.rs and unicode.rs, the tables of redaction.

    python3 -m venv /tmp/tables && /tmp/tables/bin/pip install phonenumbers==9.0.43 unicodedata2==18.0.0
    /tmp/tables/bin/python generate.py

`phonenumbers` is libphonenumber's Python port and has its metadata (Apache-2.0). Of it these tables keep, of all
countries together, the lengths of numbers and the groups in which they are written. `unicodedata2` has the Unicode
Character Database.
"""

import collections
import itertools
import re
import textwrap
from pathlib import Path

import phonenumbers
import unicodedata2
from phonenumbers import PhoneMetadata
from phonenumbers.data import _ALT_NUMBER_FORMATS

HERE = Path(__file__).resolve().parent
NOTE = "// Written by generate.py; not to be edited.\n"
QUANTIFIER = re.compile(r"\{(\d+)(?:,(\d+))?\}|\?")


def lengths(pattern):
    """The lengths that a pattern of digits without alternatives at its top matches."""
    total, at = {0}, 0
    while at < len(pattern):
        if pattern.startswith("(?:", at):
            end = closing(pattern, at)
            unit = set().union(*map(lengths, alternatives(pattern[at + 3 : end])))
            at = end + 1
        elif pattern[at] == "[":
            unit, at = {1}, pattern.index("]", at) + 1
        else:
            unit, at = {1}, at + (2 if pattern[at] == "\\" else 1)
        if quantifier := QUANTIFIER.match(pattern, at):
            least, most = quantifier.groups()
            if least is None:
                unit = unit | {0}
            else:
                unit = set(range(int(least), int(most or least) + 1))
            at = quantifier.end()
        total = {a + b for a in total for b in unit}
    return total


def closing(pattern, start):
    depth = 0
    for at in range(start, len(pattern)):
        depth += {"(": 1, ")": -1}.get(pattern[at], 0)
        if depth == 0:
            return at
    raise ValueError(pattern)


def alternatives(pattern):
    found, depth, start = [], 0, 0
    for at, character in enumerate(pattern + "|"):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if character == "|" and depth == 0:
            found.append(pattern[start:at])
            start = at + 1
    return found


def group_sizes(pattern):
    """All sizes of the groups of a format, as tuples."""
    groups, at = [], 0
    while (at := pattern.find("(", at)) >= 0:
        end = closing(pattern, at)
        groups.append(sorted(set().union(*map(lengths, alternatives(pattern[at + 1 : end])))))
        at = end + 1
    return [tuple(size for size in sizes if size) for sizes in itertools.product(*groups)]


def written_prefix(form, is_main, prefix):
    """The prefix with which a national number is written in a format."""
    if not is_main:
        return prefix
    rule = form.national_prefix_formatting_rule or ""
    return prefix if prefix and prefix in rule.replace("\\1", "") else ""


def is_distinctive(prefix, sizes):
    """Numbers without a prefix are only told from others by their groups."""
    if prefix:
        return 6 <= sum(sizes) <= 12
    return 9 <= sum(sizes) <= 11 and len(sizes) >= 3 and sizes != (3, 3, 3)


def ranges(numbers):
    found = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return [tuple(pair) for pair in found]


def rows(values):
    """The values of an array, several on a line."""
    return [line + "\n" for line in textwrap.wrap(", ".join(values) + ",", 112, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)]


def phones():
    codes, forms = collections.defaultdict(int), collections.defaultdict(set)
    for region in phonenumbers.SUPPORTED_REGIONS:
        metadata = PhoneMetadata.metadata_for_region(region)
        for length in metadata.general_desc.possible_length:
            codes[metadata.country_code] |= 1 << length
    for code in phonenumbers.COUNTRY_CODES_FOR_NON_GEO_REGIONS:
        for length in PhoneMetadata.metadata_for_nongeo_region(code).general_desc.possible_length:
            codes[code] |= 1 << length
    for code, regions in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items():
        if regions[0] == "001":
            continue
        metadata = PhoneMetadata.metadata_for_region(regions[0])
        main = [(form, True) for form in metadata.number_format]
        for form, is_main in main + [(form, False) for form in _ALT_NUMBER_FORMATS.get(code, ())]:
            order = re.findall(r"\\(\d)", form.format)
            if order != sorted(order):
                continue
            prefix = written_prefix(form, is_main, metadata.national_prefix or "")
            # The first pattern is made for three digits.
            leading = form.leading_digits_pattern[0] if form.leading_digits_pattern else ""
            leads = {lead for lead in range(100, 1000) if re.match(leading, str(lead))}
            for sizes in group_sizes(form.pattern):
                is_possible = sum(sizes) in metadata.general_desc.possible_length
                if leads and is_possible and is_distinctive(prefix, sizes):
                    forms[prefix, sizes] |= leads
    lines = [NOTE, "//! Country calling codes and national forms of phone numbers, of libphonenumber's metadata 9.0.43.\n\n"]
    lines.append("/// Country calling codes, and for each a bit for every length of its national numbers.\n")
    lines.append(f"#[rustfmt::skip]\npub(in super::super) const COUNTRY_CODES: [(u16, u32); {len(codes)}] = [\n")
    lines += rows(f"({code}, {mask:#x})" for code, mask in sorted(codes.items()))
    lines.append("];\n\n/// The prefix of a national form, the sizes of its groups without the prefix, and ranges of their first three digits.\n")
    lines.append("pub(in super::super) type NationalForm = (&'static str, &'static [u8], &'static [(u16, u16)]);\n\n")
    lines.append("/// The national forms of all countries, in order of prefix and groups.\n")
    lines.append(f"#[rustfmt::skip]\npub(in super::super) const NATIONAL_FORMS: [NationalForm; {len(forms)}] = [\n")
    for (prefix, sizes), leads in sorted(forms.items()):
        pairs = ", ".join(map(str, ranges(leads)))
        lines.append(f'    ("{prefix}", &[{", ".join(map(str, sizes))}], &[{pairs}]),\n')
    lines.append("];\n")
    (HERE / "phones.rs").write_text("".join(lines))


def unicode():
    characters = [chr(code) for code in range(0x110000)]
    marks = ranges(ord(c) for c in characters if unicodedata2.category(c)[0] == "M")
    zeros = [ord(c) for c in characters if unicodedata2.decimal(c, None) == 0]
    lines = [NOTE, f"//! Properties of Unicode {unicodedata2.unidata_version}.\n\n"]
    lines.append("/// The zeros of all scripts with decimal digits (`Nd`). The other nine digits follow each.\n")
    lines.append(f"#[rustfmt::skip]\npub(in super::super) const ZEROS: [char; {len(zeros)}] = [\n")
    lines += rows(f"'\\u{{{zero:x}}}'" for zero in zeros)
    lines.append("];\n\n/// The ranges of combining marks (`M`).\n")
    lines.append(f"#[rustfmt::skip]\npub(in super::super) const MARKS: [(char, char); {len(marks)}] = [\n")
    lines += rows(f"('\\u{{{first:x}}}', '\\u{{{last:x}}}')" for first, last in marks)
    lines.append("];\n")
    (HERE / "unicode.rs").write_text("".join(lines))


if __name__ == "__main__":
    phones()
    unicode()
