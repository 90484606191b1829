"""The targets, and whether they are met."""

from .figures import memory, middle, paired, ratio

PEERS = ["openai-agents-rs", "rig", "node", "python"]


def targets(results):
    """Each target: what it is about, the bound in words, the figure, the bound, and what the figure counts.

    A figure is to be at most its bound. Where a peer was not measured, the figure is None.
    """
    own = lambda case: middle(results, case)
    against = lambda case, peer: ratio(own(case), middle(results, case, peer))
    triage = own("triage")
    yield "triage in process", "at most 3.5 µs", triage, 3.5, " µs"
    yield "triage in process", "at most 1/8 of rig", against("triage", "rig"), 1 / 8, "×"
    closest = [found for peer in PEERS if (found := against("chain_200", peer)) is not None]
    yield "200 handoffs", "at most 1/4 of any peer", max(closest, default=None), 1 / 4, "×"
    serialised = own("serialise_1000")
    for case, words in (("history_1000", "triage over 1,000 items"),
                        ("history_1000_without_tools", "the same with remove_all_tools")):
        yield words, "at most 0.1× writing them as JSON once", ratio(own(case), serialised), 0.1, "×"
    nested = ratio(own("history_1000_nested"), serialised)
    yield "the same with nested history", "at most 2.5× writing them as JSON once", nested, 2.5, "×"
    parked = memory(results, "parked_shared")
    yield "a parked run, history shared", "at most 5 KB", parked and parked / 1000, 5, " KB"
    for work, words in (("open", "opening 100,000 items and showing 50"), ("message", "a message to 100,000 items")):
        found = paired(results, f"session_{work}_100000", f"session_{work}_1000")
        yield words, "at most 1.5× over 1,000 items", found, 1.5, "×"
    for at_once in (1, 64):
        for form, items, bounds in (("plain", 20, (1.5, 1.5)), ("plain", 1000, (1.6, 2)), ("streamed", 20, (1.5, 1.5))):
            for protocol, spoken, bound in (("responses", "Responses", bounds[0]), ("chat", "Chat Completions", bounds[1])):
                case = f"{protocol}_{form}_{items}_x{at_once}"
                deltas = ", 200 deltas" if form == "streamed" else ""
                words = f"{spoken}, {form}, {items:,} items{deltas}, {at_once} at a time"
                yield words, f"at most {bound}× the bare client", paired(results, case, f"bare_{case}"), bound, "×"


def verdict(figure, bound):
    """Whether a target is met, and if not by how much it is missed."""
    if figure is None:
        return "not measured"
    if figure <= bound:
        return "met"
    return f"**missed**, {figure / bound:.2f}× the bound"
