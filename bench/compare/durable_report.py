"""The report of `bench/durable`: tables of steps, sizes of journals, and runs that wait."""

import os
import platform
import statistics
import subprocess
from datetime import date

NAMES = {
    "sqlite": "embedded, SQLite",
    "postgres": "embedded, PostgreSQL",
    "redis": "embedded, Redis",
    "restate": "Restate",
    "dbos": "DBOS",
    "python": "openai-agents 0.24 on DBOS (Python)",
}

# At most so many times the bare engine.
TARGET = 1.3

# Bytes per step that a longer history may add: numbers have more digits.
MORE_BYTES = 16


def machine():
    rustc = subprocess.run(["rustc", "--version"], stdout=subprocess.PIPE, text=True).stdout.split()
    return {"cores": os.cpu_count(), "system": f"{platform.system()}, {platform.machine()}",
            "rustc": rustc[1] if len(rustc) > 1 else "?", "python": platform.python_version(),
            "load": round(os.getloadavg()[0], 1), "date": str(date.today())}


def report(results):
    about = results["machine"]
    lines = ["# What durable runs cost, measured", "",
             f"One run of `bench/durable` on {about['cores']} cores ({about['system']}), rustc {about['rustc']}, Python {about['python']}: "
             f"{results['rounds']} rounds of {results['seconds']:g} s for each work, interleaved.",
             "Medians of the rounds. `bench/README.md` says what is done."]
    if about["load"] > 0.5:
        lines += ["", f"**The machine was busy** (a load of {about['load']} when it began): latencies and steps per second are of that moment, "
                  "and CPU times are too high; ratios are of works that took turns."]
    if "steps" in results:
        lines += ["", *steps(results["steps"])]
    if "sizes" in results:
        lines += ["", *sizes(results["sizes"])]
    if "waiting" in results:
        lines += ["", *waiting(results["waiting"])]
    return "\n".join(lines)


def per_step(row, work, what):
    """The cost of a step in each round, in microseconds, or the number of steps per second."""
    steps = row["counts"]["steps"]
    for measured in row["works"].get(work, []):
        if what == "per_second":
            yield measured["runs"] * steps / measured["seconds"]
        elif what == "cpu":
            yield 1e6 * (measured["cpu_s"] + measured["server_cpu_s"]) / measured["runs"] / steps
        elif what == "client_cpu":
            yield 1e6 * measured["cpu_s"] / measured["runs"] / steps
        else:
            yield measured[what] / steps


def middle(values):
    values = list(values)
    return statistics.median(values) if values else None


def added(row, what):
    """What durability adds to a step, and that as a multiple of the bare engine's step: medians over the rounds."""
    rounds = list(zip(per_step(row, "durable", what), per_step(row, "plain", what), per_step(row, "bare", what)))
    if not rounds:
        return None, None
    return middle(durable - plain for durable, plain, _ in rounds), middle((durable - plain) / bare for durable, plain, bare in rounds)


def ratio(row, what, work="durable", other="bare"):
    pairs = zip(per_step(row, work, what), per_step(row, other, what))
    return middle(one / two for one, two in pairs if two)


def micro(value):
    if value is None:
        return "–"
    return f"{value / 1000:,.2f} ms" if value >= 1000 else f"{value:,.0f} µs"


def number(value):
    return "–" if value is None else f"{value:,.0f}"


def times(value):
    if value is None:
        return "–"
    return f"{value:.2f}×" if value <= TARGET else f"**{value:.2f}×**"


def steps(rows):
    lines = ["## Steps", "",
             "CPU time is that of the client and of the servers. *Added*: without what the same conversation takes as a plain run whose "
             f"conversation is stored. In brackets how many times the bare engine; above {TARGET} in bold.", ""]
    lines += ["| engine | at once | runs per second | steps per second | bare engine | plain run | CPU per step | bare | added | latency per step | bare | added |",
              "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        cells = [NAMES[row["engine"]], str(row["at_once"])]
        cells.append(number(middle(per_step(row, "durable", "per_second")) / row["counts"]["steps"]))
        cells += [number(middle(per_step(row, work, "per_second"))) for work in ("durable", "bare", "plain")]
        for what in ("cpu", "p50_us"):
            more, multiple = added(row, what)
            cells += [micro(middle(per_step(row, "durable", what))), micro(middle(per_step(row, "bare", what))),
                      "–" if more is None else f"{micro(more)} ({times(multiple)})"]
        lines.append("| " + " | ".join(cells) + " |")
    embedded = [row for row in rows if "commits" in row["works"]]
    if embedded:
        lines += ["", "The embedded engine beside the same commits made without a run, and the CPU time of the client's process alone:", "",
                  "| engine | at once | CPU, to the same commits | latency, to the same commits | client's CPU per step | bare | plain |",
                  "| --- | --- | --- | --- | --- | --- | --- |"]
        for row in embedded:
            client = [micro(middle(per_step(row, work, "client_cpu"))) for work in ("durable", "bare", "plain")]
            lines.append(f"| {NAMES[row['engine']]} | {row['at_once']} | {ratio(row, 'cpu', other='commits'):.2f}× "
                         f"| {ratio(row, 'p50_us', other='commits'):.2f}× | " + " | ".join(client) + " |")
    if any(row["engine"] == "python" for row in rows):
        lines += ["", "The reference takes 7 steps for the same conversation: the model answers and the tools. It does not store the conversation."]
    counted = next((row["counts"] for row in rows if "journal_commits" in row["counts"]), None)
    if counted:
        lines += ["", "A run on the embedded engine has {steps} steps and {events} events. It makes {journal_commits} commits to its journal, of which "
                  "{step_commits} have outcomes of steps, and {conversation_commits} to the conversation; {leases} calls take the lease of the "
                  "conversation and give it back, and {heads} and {reads} read heads and entries.".format(**counted)]
    return lines


def bytes_per_step(counts):
    return counts["journal_bytes"] / counts["steps"]


def sizes(rows):
    lines = ["## The size of journals", "", "Bytes of everything that a journal has, per step.", "",
             "| turns or messages | a run for each message of one conversation | the last of these runs | one run of so many turns |",
             "| --- | --- | --- | --- |"]
    for row in rows:
        cells = [f"{bytes_per_step(row[of]):,.0f}" for of in ("messages", "last_message", "one_run")]
        lines.append(f"| {row['turns']:,} | " + " | ".join(cells) + " |")
    return lines


def growing(rows):
    """What takes more room in a longer history."""
    problems = []
    for shorter, longer in zip(rows, rows[1:]):
        for of in ("last_message", "one_run"):
            before, after = bytes_per_step(shorter[of]), bytes_per_step(longer[of])
            if after > before + MORE_BYTES:
                problems.append(f"{of}: a step takes {before:.0f} bytes with {shorter['turns']} turns, and {after:.0f} with {longer['turns']}")
    return problems


def waiting(rows):
    lines = ["## Runs that wait", "", "A process that starts, recovers, and looks for runs for two seconds.", "",
             "| store | runs that wait | memory, and with none | `recover()`, and with none | opening the store, and with none | taken up "
             "| an approval, to the end of the run | in the store per run |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        megabytes = " / ".join(f"{row[f'{when}_resident'] / 1e6:.1f} MB" for when in ("full", "empty"))
        recover, opened = (" / ".join(f"{row[f'{when}_{what}']:.1f} ms" for when in ("full", "empty")) for what in ("recover_ms", "open_ms"))
        lines.append(f"| {row['store']} | {row['runs']:,} | {megabytes} | {recover} | {opened} | {row['taken']} | {row['decided_ms']:.1f} ms "
                     f"| {row['bytes_per_run']:,} bytes |")
    return lines
