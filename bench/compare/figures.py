"""Figures out of samples: medians, spreads, ratios."""

import math
from statistics import median


def micros(results, case, program="switchboard"):
    """CPU time per run in microseconds, one figure a round; empty where there is none."""
    samples = results["samples"].get(case, {}).get(program, [])
    return [1e6 * sample["cpu_s"] / sample["runs"] for sample in samples if sample.get("cpu_s") is not None]


def middle(results, case, program="switchboard"):
    """The median of the CPU time per run in microseconds, or None."""
    return middle_of(micros(results, case, program))


def memory(results, case, program="switchboard"):
    """The median of bytes per parked run, or None."""
    samples = results["samples"].get(case, {}).get(program, [])
    return middle_of([sample["bytes"] for sample in samples if "bytes" in sample])


def middle_of(values):
    return median(values) if values else None


def spread(values):
    """How far the figures of the rounds lie apart: half of what is between the extremes, in per cent of the median."""
    if len(values) < 2:
        return None
    return 100 * (max(values) - min(values)) / 2 / median(values)


def ratio(more, less):
    return more / less if more is not None and less else None


def paired(results, case, base):
    """The median over the rounds of what one case costs of another: what slows a round down slows both down."""
    pairs = zip(micros(results, case), micros(results, base))
    return middle_of([cost / least for cost, least in pairs])


def growth(results, few, many, program="switchboard"):
    """The exponent with which a chain's cost grows with its length."""
    grown = ratio(middle(results, f"chain_{many}", program), middle(results, f"chain_{few}", program))
    return math.log(grown) / math.log(many / few) if grown else None
