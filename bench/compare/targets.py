"""What is to be reached, and whether it is."""

from .figures import growth, memory, middle, paired, ratio

PEERS = ["openai-agents-rs", "rig", "node", "python"]


def targets(results):
    """Each target: what it is about, the bound in words, the figure, the bound, and what the figure counts.

    A figure is to be at most its bound. Where a peer was not measured, the figure is None.
    """
    own = lambda case: middle(results, case)
    against = lambda case, peer: ratio(own(case), middle(results, case, peer))
    triage = [("rig", 1 / 5, "1/5 of rig"), ("python", 1 / 400, "1/400 of Python"),
              ("openai-agents-rs", 3, "3× the crate openai-agents")]
    for peer, bound, words in triage:
        yield "triage in process", f"at most {words}", against("triage", peer), bound, "×"
    yield "chains of 10 → 1,000 handoffs", "growth exponent at most 1.05", growth(results, 10, 1000), 1.05, ""
    closest = [found for peer in PEERS if (found := against("chain_200", peer)) is not None]
    yield "200 handoffs", "at most 1/4 of any peer", max(closest, default=None), 1 / 4, "×"
    serialised = own("serialise_1000")
    for case, words in (("history_1000", "triage over 1,000 items"),
                        ("history_1000_without_tools", "the same with remove_all_tools")):
        yield words, "at most 0.2× writing them as JSON once", ratio(own(case), serialised), 0.2, "×"
    nested = ratio(own("history_1000_nested"), serialised)
    yield "the same with nested history", "at most 2.5× writing them as JSON once", nested, 2.5, "×"
    parked = memory(results, "parked_shared")
    yield "a parked run, history shared", "at most 5 KB", parked and parked / 1000, 5, " KB"
    for at_once in (1, 64):
        for form, items, bound in (("plain", 20, 1.2), ("plain", 1000, 1.5), ("streamed", 20, 2)):
            for protocol, spoken in (("responses", "Responses"), ("chat", "Chat Completions")):
                case = f"{protocol}_{form}_{items}_x{at_once}"
                deltas = ", 200 deltas" if form == "streamed" else ""
                words = f"{spoken}, {form}, {items:,} items{deltas}, {at_once} at a time"
                yield words, f"at most {bound}× the bare client", paired(results, case, f"bare_{case}"), bound, "×"
    many = paired(results, "at_once_10000", "one_at_a_time")
    yield "10,000 runs at once", "at most 1.6× one at a time", many, 1.6, "×"
    traced = paired(results, "triage_traced", "triage")
    yield "tracing to memory", "at most 1.5× triage without", traced, 1.5, "×"


def verdict(figure, bound):
    """Whether a target is met, and if not by how much it is missed."""
    if figure is None:
        return "not measured"
    if figure <= bound:
        return "met"
    return f"**missed**, {figure / bound:.2f}× the bound"
