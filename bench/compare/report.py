"""Writes what was measured: results.json, results.md and the plots."""

import json

from . import cases, plots, programs
from .figures import growth, memory, micros, middle, middle_of, ratio, spread
from .targets import targets, verdict


def save(results, into):
    into.mkdir(parents=True, exist_ok=True)
    (into / "results.json").write_text(json.dumps(results, indent=1) + "\n")


def write(into):
    """Writes the tables and plots from results.json, and prints the tables."""
    results = json.loads((into / "results.json").read_text())
    text = "\n".join(document(results)) + "\n"
    (into / "results.md").write_text(text)
    for name, svg in plots.plots(results):
        (into / f"{name}.svg").write_text(svg)
    print(text)
    return 0


def document(results):
    machine = results["machine"]
    yield "# What runs cost, measured"
    yield ""
    yield (f"One run of `bench/run` on {machine['cores']} cores ({machine['system']}, {machine['architecture']}), "
           f"{machine['rustc'].split(' (')[0]}, Node {machine['node']}, Python {machine['python']}: "
           f"{results['rounds']} rounds of {results['seconds']} s of CPU time each, interleaved.")
    yield "Figures are CPU time (user and system) per run, the median of the rounds ± half of what lies between the"
    yield "extremes; in brackets how many times Switchboard's. `–`: the peer cannot do it; `minutes`: left out, because"
    yield "it would take that long."
    yield ""
    # A measurement of its own keeps a core busy.
    if machine["load"] > machine["cores"] / 2:
        yield (f"**The machine was busy** (a load of {machine['load']} when it began): caches are shared, so figures are too "
               "high and ratios may be far off.")
        yield ""
    missing = [words for name, words in programs.NAMES.items()
               if not any(name in found for found in results["samples"].values())]
    if missing:
        yield f"Not measured in this run: {', '.join(missing)}."
        yield ""
    yield from target_table(results)
    for heading, group in cases.groups():
        yield from case_table(results, heading, group)
    yield from waits(results)
    yield from starts(results)
    yield from built(results)


def target_table(results):
    yield "## Targets"
    yield ""
    yield "| work | target | measured | |"
    yield "| --- | --- | --- | --- |"
    for work, bound_words, figure, bound, unit in targets(results):
        shown = "" if figure is None else f"{figure:.4f}{unit}" if bound < 0.1 else f"{figure:.2f}{unit}"
        yield f"| {work} | {bound_words} | {shown} | {verdict(figure, bound)} |"
    yield ""


def case_table(results, heading, group):
    measured = [case for case in group if case[0] in results["samples"]]
    if not measured:
        return
    names = [name for name in programs.NAMES if any(name in results["samples"][case[0]] for case in measured)]
    yield f"## {heading}"
    yield ""
    yield "| work | " + " | ".join(programs.NAMES[name] for name in names) + " |"
    yield "| --- |" + " --- |" * len(names)
    for case, label, peers in measured:
        cells = [cell(results, case, name, name in ["switchboard", *peers]) for name in names]
        yield f"| {label} | " + " | ".join(cells) + " |"
    if group is cases.IN_PROCESS:
        exponents = [growth(results, 100, 200, name) for name in names]
        yield "| growth exponent, 100 → 200 handoffs | " + " | ".join(
            "–" if found is None else f"{found:.2f}" for found in exponents) + " |"
    yield ""


def cell(results, case, program, able):
    if not able:
        return "–"
    if (program, case) in cases.TOO_LONG:
        return "minutes"
    held = memory(results, case, program)
    if held is not None:
        return f"{held / 1000:.1f} KB" + times(held, memory(results, case), program)
    values = micros(results, case, program)
    if not values:
        return "failed" if program in results["samples"][case] else ""
    around = spread(values)
    shown = duration(middle_of(values)) + ("" if around is None else f" ± {around:.0f} %")
    return shown + times(middle_of(values), middle(results, case), program)


def times(value, own, program):
    found = ratio(value, own)
    if program == "switchboard" or found is None:
        return ""
    return f" ({found:.0f}×)" if found >= 10 else f" ({found:.1f}×)"


def duration(value):
    """Microseconds, in the unit that reads best."""
    if value >= 1e5:
        return f"{value / 1000:,.0f} ms"
    if value >= 1e3:
        return f"{value / 1000:.2f} ms"
    return f"{value:.0f} µs" if value >= 100 else f"{value:.1f} µs"


def waits(results):
    rows = [case for case in cases.WIRE if case[0] in results["samples"]]
    if not rows:
        return
    yield "## How long a run over HTTP takes on the clock, p50 / p99"
    yield ""
    yield "With the provider on the same machine, so this is mostly what both need together."
    yield ""
    names = [name for name in programs.NAMES if any(name in results["samples"][row[0]] for row in rows)]
    yield "| work | " + " | ".join(programs.NAMES[name] for name in names) + " |"
    yield "| --- |" + " --- |" * len(names)
    for case, label, _ in rows:
        yield f"| {label} | " + " | ".join(wait(results["samples"][case].get(name, [])) for name in names) + " |"
    yield ""


def wait(samples):
    at = lambda name: middle_of([sample[name] for sample in samples if name in sample])
    if at("p50_us") is None:
        return "–"
    return f"{duration(at('p50_us'))} / {duration(at('p99_us'))}"


def starts(results):
    if not results.get("cold_start"):
        return
    yield "## From the start of a process to the end of its first run"
    yield ""
    yield "| | CPU | on the clock |"
    yield "| --- | --- | --- |"
    for name, samples in results["cold_start"].items():
        cpu, wall = (middle_of([sample[what] for sample in samples]) for what in ("cpu_s", "wall_s"))
        yield f"| {programs.NAMES[name]} | {duration(cpu * 1e6)} | {duration(wall * 1e6)} |"
    yield ""


def built(results):
    builds = results.get("builds")
    if not builds:
        return
    yield "## Building"
    yield ""
    yield "| | dependencies | release build: CPU | on the clock |"
    yield "| --- | --- | --- | --- |"
    for name, words in (("switchboard", "`switchboard`, default features"), ("switchboard-core", "`switchboard-core`")):
        one = builds[name]
        yield f"| {words} | {one['dependencies']} | {one['release_cpu_s']:.0f} s | {one['release_wall_s']:.0f} s |"
    yield ""
    size = builds["minimal_program_bytes"]
    program = builds["program_bytes"]
    yield (f"The smallest program that hands off (`src/bin/minimal.rs`) has {size / 1e6:.1f} MB, the program `switchboard` "
           f"{program / 1e6:.1f} MB, both stripped.")
