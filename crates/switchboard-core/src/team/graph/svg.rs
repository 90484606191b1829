//! A drawing of a team as an SVG image.

use std::fmt::Write as _;

use super::GraphEdgeKind;
use super::layout::{AgentBox, EdgeLine, GraphLayout, LABEL_SIZE, NAME_SIZE};

/// The colours of agents and their connections. All have enough contrast on white.
const COLOURS: [&str; 8] = [
    "#1f5fa8", "#a8432b", "#2e7d4f", "#7a3e9d", "#9a6700", "#0f7b8a", "#b0256d", "#4d5866",
];

/// Draws the image.
pub(super) fn draw(layout: &GraphLayout) -> String {
    let (width, height) = (layout.width.ceil(), layout.height.ceil());
    // Writing to a String cannot fail.
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" \
         font-family=\"Helvetica, Arial, 'Noto Sans', 'Noto Sans CJK SC', sans-serif\">"
    );
    out.push_str("<title>A team of agents</title>\n<defs>\n");
    for (index, colour) in COLOURS.iter().enumerate() {
        let _ = writeln!(
            out,
            "<marker id=\"arrow{index}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" \
             markerHeight=\"8\" orient=\"auto\"><path d=\"M0,0 L10,5 L0,10 z\" fill=\"{colour}\"/></marker>\n\
             <marker id=\"dot{index}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" \
             markerHeight=\"8\"><circle cx=\"5\" cy=\"5\" r=\"4\" fill=\"white\" stroke=\"{colour}\" \
             stroke-width=\"1.6\"/></marker>"
        );
    }
    let _ = writeln!(
        out,
        "</defs>\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>"
    );
    for edge in &layout.edges {
        draw_line(&mut out, edge);
    }
    for (index, agent) in layout.agents.iter().enumerate() {
        draw_agent(&mut out, agent, COLOURS[index % COLOURS.len()]);
    }
    // Above the lines, which they interrupt.
    for edge in &layout.edges {
        draw_label(&mut out, edge);
    }
    out.push_str("</svg>\n");
    out
}

fn draw_line(out: &mut String, edge: &EdgeLine) {
    let colour = edge.from % COLOURS.len();
    let dashes = if edge.is_conditional {
        " stroke-dasharray=\"6 4\""
    } else {
        ""
    };
    let marker = match edge.kind {
        GraphEdgeKind::Handoff => "arrow",
        GraphEdgeKind::AgentAsTool => "dot",
    };
    let _ = writeln!(
        out,
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{dashes} \
         marker-end=\"url(#{marker}{colour})\"/>",
        edge.path, COLOURS[colour]
    );
}

fn draw_label(out: &mut String, edge: &EdgeLine) {
    let colour = COLOURS[edge.from % COLOURS.len()];
    for line in &edge.label {
        let anchor = if line.ends_at_x { "end" } else { "start" };
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{LABEL_SIZE}\" text-anchor=\"{anchor}\" \
             fill=\"{colour}\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
            line.x,
            line.y,
            escaped(&line.text)
        );
    }
}

fn draw_agent(out: &mut String, agent: &AgentBox, colour: &str) {
    let AgentBox {
        x,
        y,
        width,
        height,
        ..
    } = agent;
    let stroke = if agent.is_start { 3.0 } else { 1.5 };
    if agent.is_person {
        let (right, bottom, middle) = (x + width, y + height, y + height / 2.0);
        let (inner_left, inner_right) = (x + 12.0, right - 12.0);
        let _ = writeln!(
            out,
            "<path d=\"M{inner_left:.1},{y:.1} H{inner_right:.1} L{right:.1},{middle:.1} \
             L{inner_right:.1},{bottom:.1} H{inner_left:.1} L{x:.1},{middle:.1} z\" fill=\"#fff8e6\" \
             stroke=\"{colour}\" stroke-width=\"{stroke}\"/>"
        );
    } else {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"9\" \
             fill=\"#f7f9fc\" stroke=\"{colour}\" stroke-width=\"{stroke}\"/>"
        );
    }
    let count = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let text_height = count(agent.name.len()) * 18.0 + count(agent.tools.len()) * 15.0;
    let mut line_y = y + (height - text_height) / 2.0 + 13.0;
    let middle = x + width / 2.0;
    for line in &agent.name {
        let _ = writeln!(
            out,
            "<text x=\"{middle:.1}\" y=\"{line_y:.1}\" font-size=\"{NAME_SIZE}\" font-weight=\"bold\" \
             text-anchor=\"middle\" fill=\"#1c2430\">{}</text>",
            escaped(line)
        );
        line_y += 18.0;
    }
    for tool in &agent.tools {
        let _ = writeln!(
            out,
            "<text x=\"{middle:.1}\" y=\"{line_y:.1}\" font-size=\"{LABEL_SIZE}\" text-anchor=\"middle\" \
             fill=\"#4d5866\">{}()</text>",
            escaped(tool)
        );
        line_y += 15.0;
    }
}

/// Escapes text for XML. Control characters, which XML does not allow, become spaces.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
