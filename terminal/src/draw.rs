//! Draws screenshots and recordings as self-contained SVG without scripts.

mod layers;

use std::{collections::HashMap, fmt::Write, sync::Arc, time::Duration};

use crate::{
    Size, colours,
    recording::Frame,
    screenshot::{Row, Screenshot, TextRun},
};

use layers::{Element, Layer, Layers};

/// The width of a cell, in tenths of a pixel.
const CELL: u32 = 84;
/// The height of a row, such that box-drawing characters of adjacent rows connect.
const ROW: u32 = 17;
/// The baseline of the text in a row.
const BASELINE: u32 = 13;
/// The height of the title bar.
const BAR: u32 = 32;
const MARGIN: u32 = 12;

/// Draws one screenshot.
pub(crate) fn still(screenshot: Screenshot, title: &str) -> String {
    let at = Duration::ZERO;
    animated(&[Frame { at, screenshot }], title)
}

/// Draws an animation of frames that repeats.
pub(crate) fn animated(frames: &[Frame], title: &str) -> String {
    let layers = Layers::of(frames);
    let rows = layers.rows();
    let shared: HashMap<&Arc<Row>, usize> = rows
        .iter()
        .filter(|(_, times)| *times > 1)
        .enumerate()
        .map(|(name, (row, _))| (*row, name))
        .collect();

    let mut svg = String::new();
    draw_window(&mut svg, largest(frames), title, &layers);
    if !shared.is_empty() {
        svg.push_str("<defs>\n");
        for (row, _) in rows {
            if let Some(name) = shared.get(row) {
                line(
                    &mut svg,
                    format_args!("<g id=\"r{name}\">{}</g>", draw_row(row)),
                );
            }
        }
        svg.push_str("</defs>\n");
    }
    let (left, top) = (MARGIN, BAR + MARGIN / 2);
    line(
        &mut svg,
        format_args!("<g transform=\"translate({left} {top})\">"),
    );
    for (number, layer) in layers.layers.iter().enumerate() {
        draw_layer(&mut svg, layer, &shared, Motion::of(layer, number, &layers));
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// The visibility of a layer over time.
enum Motion {
    Always,
    /// Animated under this number, and hidden at the end.
    Passing(usize),
    /// Animated under this number, and visible at the end. Also visible without animations.
    Staying(usize),
}

impl Motion {
    fn of(layer: &Layer, number: usize, layers: &Layers) -> Self {
        if layer.visible == [(0, layers.total)] {
            Self::Always
        } else if layer
            .visible
            .last()
            .is_some_and(|span| span.1 == layers.total)
        {
            Self::Staying(number)
        } else {
            Self::Passing(number)
        }
    }
}

/// Writes the start of the file: styles, and a window with its title.
fn draw_window(svg: &mut String, size: Size, title: &str, layers: &Layers) {
    let width = (u32::from(size.columns) * CELL).div_ceil(10) + 2 * MARGIN;
    let height = BAR + MARGIN / 2 + u32::from(size.rows) * ROW + MARGIN;
    let (title, middle) = (escape(title), width / 2);
    let (inner_width, inner_height) = (width - 1, height - 1);
    let (background, text) = (
        colours::hex(colours::BACKGROUND),
        colours::hex(colours::TEXT),
    );
    line(
        svg,
        format_args!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" xml:space="preserve">
<title>{title}</title>
<style>
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;fill:{text};white-space:pre}}
.b{{font-weight:700}}.d{{opacity:.6}}.i{{font-style:italic}}.u{{text-decoration:underline}}.c{{fill:{text};opacity:.5}}"##
        ),
    );
    animations(svg, layers);
    line(
        svg,
        format_args!(
            r##"</style>
<rect x=".5" y=".5" width="{inner_width}" height="{inner_height}" rx="8" fill="{background}" stroke="#30363d"/>
<circle cx="18" cy="16" r="5" fill="#ff5f57"/><circle cx="36" cy="16" r="5" fill="#febc2e"/><circle cx="54" cy="16" r="5" fill="#28c840"/>
<text class="d" x="{middle}" y="21" text-anchor="middle">{title}</text>"##
        ),
    );
}

/// Writes the animations of the layers that are not always visible.
fn animations(svg: &mut String, layers: &Layers) {
    let moving: Vec<_> = (0..)
        .zip(&layers.layers)
        .filter(|(number, layer)| !matches!(Motion::of(layer, *number, layers), Motion::Always))
        .collect();
    if moving.is_empty() {
        return;
    }
    let seconds = decimal(layers.total, 1000);
    line(
        svg,
        format_args!(
            ".h{{visibility:hidden}}.f{{animation:{seconds}s step-end infinite}}\n\
             @media(prefers-reduced-motion:reduce){{.f{{animation:none!important}}}}"
        ),
    );
    for (number, layer) in moving {
        let mut frames = String::new();
        if layer.visible.first().is_some_and(|span| span.0 > 0) {
            frames.push_str("0%{visibility:hidden}");
        }
        for (from, to) in &layer.visible {
            let from = decimal(from * 100_000 / layers.total, 1000);
            let _ = write!(frames, "{from}%{{visibility:visible}}");
            if *to < layers.total {
                let to = decimal(to * 100_000 / layers.total, 1000);
                let _ = write!(frames, "{to}%{{visibility:hidden}}");
            }
        }
        line(svg, format_args!("@keyframes f{number}{{{frames}}}"));
    }
}

fn draw_layer(svg: &mut String, layer: &Layer, shared: &HashMap<&Arc<Row>, usize>, motion: Motion) {
    match motion {
        Motion::Always => svg.push_str("<g>\n"),
        Motion::Passing(number) => line(
            svg,
            format_args!("<g class=\"f h\" style=\"animation-name:f{number}\">"),
        ),
        Motion::Staying(number) => line(
            svg,
            format_args!("<g class=\"f\" style=\"animation-name:f{number}\">"),
        ),
    }
    for element in &layer.elements {
        match element {
            Element::Cursor { y, column } => {
                let (x, y) = (pixels(*column), u32::from(*y) * ROW);
                let width = pixels(1);
                line(
                    svg,
                    format_args!(
                        "<rect class=\"c\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{ROW}\"/>"
                    ),
                );
            }
            Element::Row { y, row } => {
                let y = u32::from(*y) * ROW;
                match shared.get(row) {
                    Some(name) => line(svg, format_args!("<use href=\"#r{name}\" y=\"{y}\"/>")),
                    None => line(
                        svg,
                        format_args!("<g transform=\"translate(0 {y})\">{}</g>", draw_row(row)),
                    ),
                }
            }
        }
    }
    svg.push_str("</g>\n");
}

fn draw_row(row: &Row) -> String {
    let mut svg = String::new();
    // Backgrounds first: glyphs may extend beyond their cell.
    for run in &row.0 {
        if let Some(colour) = run.style.background {
            let (x, width) = (pixels(run.column), pixels(run.width));
            let colour = colours::hex(colour);
            let _ = write!(
                svg,
                "<rect x=\"{x}\" width=\"{width}\" height=\"{ROW}\" fill=\"{colour}\"/>"
            );
        }
    }
    row.0.iter().for_each(|run| draw_text(&mut svg, run));
    svg
}

fn draw_text(svg: &mut String, run: &TextRun) {
    let Some((column, width, text)) = run.visible_text() else {
        return;
    };
    let style = run.style;
    let classes: Vec<_> = [
        (style.bold, "b"),
        (style.dim, "d"),
        (style.italic, "i"),
        (style.underline, "u"),
    ]
    .into_iter()
    .filter_map(|(is_set, class)| is_set.then_some(class))
    .collect();

    svg.push_str("<text");
    if !classes.is_empty() {
        let _ = write!(svg, " class=\"{}\"", classes.join(" "));
    }
    let (x, length) = (pixels(column), pixels(width));
    // The length aligns the columns in any font.
    let _ = write!(
        svg,
        " x=\"{x}\" y=\"{BASELINE}\" textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\""
    );
    if let Some(colour) = style.foreground {
        // As a style, since the style sheet's rule for all text overrides attributes.
        let _ = write!(svg, " style=\"fill:{}\"", colours::hex(colour));
    }
    let _ = write!(svg, ">{}</text>", escape(text));
}

fn largest(frames: &[Frame]) -> Size {
    let sizes = || frames.iter().map(|frame| frame.screenshot.size);
    Size {
        columns: sizes().map(|size| size.columns).max().unwrap_or(1),
        rows: sizes().map(|size| size.rows).max().unwrap_or(1),
    }
}

/// Escapes text for XML. Control characters, which XML cannot represent, are replaced.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn pixels(cells: u16) -> String {
    decimal(u64::from(cells) * u64::from(CELL), 10)
}

/// Formats `value / scale` without trailing zeros. `scale` is a power of ten.
fn decimal(value: u64, scale: u64) -> String {
    let (whole, mut rest) = (value / scale, value % scale);
    let mut digits = String::new();
    let mut unit = scale / 10;
    while rest > 0 {
        let _ = write!(digits, "{}", rest / unit);
        rest %= unit;
        unit /= 10;
    }
    if digits.is_empty() {
        return whole.to_string();
    }
    format!("{whole}.{digits}")
}

fn line(svg: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = svg.write_fmt(text);
    svg.push('\n');
}
