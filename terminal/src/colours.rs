//! The colours of pictures.

use vt100::Color;

/// Red, green, blue.
pub(crate) type Rgb = [u8; 3];

pub(crate) const BACKGROUND: Rgb = [0x0d, 0x11, 0x17];
pub(crate) const TEXT: Rgb = [0xe6, 0xed, 0xf3];

/// The sixteen named colours, chosen to be legible on the dark background.
const NAMED: [Rgb; 16] = [
    [0x48, 0x4f, 0x58],
    [0xff, 0x7b, 0x72],
    [0x3f, 0xb9, 0x50],
    [0xd2, 0x99, 0x22],
    [0x58, 0xa6, 0xff],
    [0xbc, 0x8c, 0xff],
    [0x39, 0xc5, 0xcf],
    [0xb1, 0xba, 0xc4],
    [0x6e, 0x76, 0x81],
    [0xff, 0xa1, 0x98],
    [0x56, 0xd3, 0x64],
    [0xe3, 0xb3, 0x41],
    [0x79, 0xc0, 0xff],
    [0xd2, 0xa8, 0xff],
    [0x56, 0xd4, 0xdd],
    [0xff, 0xff, 0xff],
];

/// The RGB value of a colour, or `None` for the default colour.
pub(crate) fn rgb(colour: Color) -> Option<Rgb> {
    match colour {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some([red, green, blue]),
        Color::Idx(index) => Some(indexed(index)),
    }
}

/// Formats a colour for CSS.
pub(crate) fn hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A colour of xterm's 256: sixteen named ones, a 6x6x6 cube, and greys.
fn indexed(index: u8) -> Rgb {
    if let Some(named) = NAMED.get(usize::from(index)) {
        return *named;
    }
    if index >= 232 {
        return [8 + 10 * (index - 232); 3];
    }
    let step = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    let index = index - 16;
    [step(index / 36), step(index / 6 % 6), step(index % 6)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexed_colours_are_those_of_xterm() {
        assert_eq!(
            [16, 196, 231, 232, 255].map(indexed),
            [
                [0, 0, 0],
                [255, 0, 0],
                [255, 255, 255],
                [8, 8, 8],
                [238, 238, 238]
            ]
        );
    }
}
