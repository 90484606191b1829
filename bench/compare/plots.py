"""Plots as SVG, readable in light and dark: colours of their own for each, text in the reader's."""

import math

from . import programs
from .figures import middle

# Units of time, in microseconds.
UNITS = [("s", 1e6), ("ms", 1e3), ("µs", 1), ("ns", 1e-3)]

COLOURS = {"switchboard": "#2f81f7", "openai-agents-rs": "#3fb950", "rig": "#d29922", "node": "#db61a2", "python": "#a371f7"}

WIDTH = 760
LEFT = 10
# The width of a character in the widest of the usual fonts: where text ends cannot be measured here.
CHARACTER = 7.3

STYLE = """<style>
 text { font: 12px system-ui, sans-serif; fill: #1f2328 }
 .title { font-size: 14px; font-weight: 600 }
 .line { stroke: #1f232833; stroke-width: 1 }
 @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .line { stroke: #e6edf344 } }
</style>"""


def plots(results):
    """Names and contents of the plots for which there are figures."""
    chain = [(n, f"chain_{n}") for n in (10, 50, 100, 200, 1000)]
    yield "chains", lines(results, "CPU time of a run by the number of its handoffs (both scales logarithmic)", chain)
    bars_of = [
        ("in_process", "One handoff in process: CPU time of a run, logarithmic",
         [("triage", "triage"), ("over 1,000 items", "history_1000"), ("… remove_all_tools", "history_1000_without_tools"),
          ("… nested history", "history_1000_nested")]),
        ("over_http", "One handoff over HTTP: CPU time of the client for a run, logarithmic",
         [("Responses", "responses_plain_20_x1"), ("Responses, streamed", "responses_streamed_20_x1"),
          ("Responses, 1,000 items", "responses_plain_1000_x1"), ("Chat", "chat_plain_20_x1"),
          ("Chat, streamed", "chat_streamed_20_x1"), ("Chat, 1,000 items", "chat_plain_1000_x1")]),
    ]
    for name, title, rows in bars_of:
        yield name, bars(results, title, rows)


def shown(micros):
    """A duration with three significant digits, never with an exponent."""
    rounded = float(f"{micros:.3g}")
    value, unit = next((rounded / size, unit) for unit, size in UNITS if rounded >= size or unit == "ns")
    return f"{value:g} {unit}"


def svg(height, title, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">'
    return "\n".join([head, STYLE, text(LEFT, 20, title, "title"), *parts, "</svg>"]) + "\n"


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def legend(names, y):
    """The legend from line `y` on, and the line below it. An entry that would not fit begins a new line."""
    parts, x = [], LEFT
    for name in names:
        width = 15 + CHARACTER * len(programs.NAMES[name])
        if x > LEFT and x + width > WIDTH - LEFT:
            x, y = LEFT, y + 18
        parts.append(f'<rect x="{x:.1f}" y="{y - 9}" width="10" height="10" rx="2" fill="{COLOURS[name]}"/>')
        parts.append(text(x + 15, y, programs.NAMES[name]))
        x += width + 15
    return parts, y + 18


def scale(values, start, end):
    """Where a value is on a logarithmic axis, and the powers of ten on it."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    at = lambda value: start + (math.log10(value) - low) / max(high - low, 1) * (end - start)
    return at, [10.0 ** power for power in range(low, high + 1)]


def lines(results, title, cases):
    points = {name: [(n, found) for n, case in cases if (found := middle(results, case, name))] for name in programs.NAMES}
    points = {name: found for name, found in points.items() if found}
    if not points:
        return svg(60, title, [text(LEFT, 45, "not measured")])
    across, _ = scale([n for n, _ in cases], 80, 720)
    parts, top = legend(points, 45)
    bottom = top + 270
    up, powers = scale([value for found in points.values() for _, value in found], bottom, top)
    for power in powers:
        parts.append(f'<line x1="80" x2="720" y1="{up(power):.1f}" y2="{up(power):.1f}" class="line"/>')
        parts.append(text(72, up(power) + 4, shown(power), anchor="end"))
    parts += [text(across(n), bottom + 20, f"{n:,}", anchor="middle") for n, _ in cases]
    for name, found in points.items():
        path = " ".join(f"{across(n):.1f},{up(value):.1f}" for n, value in found)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        parts += [f'<circle cx="{across(n):.1f}" cy="{up(value):.1f}" r="3" fill="{COLOURS[name]}"/>' for n, value in found]
    return svg(bottom + 35, title, parts)


def bars(results, title, rows):
    found = [(label, [(name, value) for name in programs.NAMES if (value := middle(results, case, name))]) for label, case in rows]
    values = [value for _, bar in found for _, value in bar]
    if not values:
        return svg(60, title, [text(LEFT, 45, "not measured")])
    # A bar for the smallest figure too.
    along, powers = scale([min(values) / 2, *values], 190, 660)
    names = [name for name in programs.NAMES if any(name == measured for _, bar in found for measured, _ in bar)]
    parts, top = legend(names, 45)
    y, body = top + 7, []
    for label, bar in found:
        body.append(text(182, y + 7 * len(bar) + 4, label, anchor="end"))
        for name, value in bar:
            body.append(f'<rect x="190" y="{y}" width="{along(value) - 190:.1f}" height="11" rx="2" fill="{COLOURS[name]}"/>')
            body.append(text(along(value) + 5, y + 10, shown(value)))
            y += 14
        y += 12
    for power in powers:
        parts.append(f'<line x1="{along(power):.1f}" x2="{along(power):.1f}" y1="{top}" y2="{y}" class="line"/>')
        parts.append(text(along(power), y + 15, shown(power), anchor="middle"))
    return svg(y + 30, title, parts + body)
