"""The cases: their names, who can do them, and for whom they would take minutes."""

CHAINS = [10, 50, 100, 200, 1000]
SESSION_ITEMS = [1_000, 10_000, 100_000]

# A case, what tables call it, and the peers that can do it; Switchboard does all.
ALL = ["openai-agents-rs", "rig", "node", "python"]
REFERENCE = ["node", "python"]

IN_PROCESS = [
    ("triage", "triage: one handoff", ALL),
    ("triage_traced", "triage, tracing to memory", REFERENCE),
    *((f"chain_{n}", f"{n:,} handoffs in a chain", ALL) for n in CHAINS),
    ("history_1000", "triage over 1,000 items", ALL),
    ("history_1000_without_tools", "… with remove_all_tools", REFERENCE),
    ("history_1000_redacted", "… with redaction", []),
    ("history_1000_redacted_first", "… with redaction of items just read", []),
    ("history_1000_nested", "… with nested history", ["python"]),
    ("history_1000_recorded", "… with a model that keeps every request", ALL),
    ("parse_1000", "reading the 1,000 items from JSON", REFERENCE),
    ("serialise_1000", "limit: writing the 1,000 items as JSON once", []),
    ("memcpy_1000", "limit: copying that JSON once", []),
]

AT_ONCE = [
    ("one_at_a_time", "1 run at a time, yielding", ALL),
    ("at_once_100", "100 runs at once", ALL),
    ("at_once_1000", "1,000 runs at once", ALL),
    ("at_once_10000", "10,000 runs at once", ALL),
]

MEMORY = [
    ("parked_shared", "a run parked in its model call, history of 20 items shared", ALL),
    ("parked_own", "… history its own", ALL),
]

# Opening the file and showing the last 50 entries, and a message whose model is shown the last 50 items.
SESSIONS = [
    *((f"session_open_{n}", f"opening a conversation of {n:,} items and showing the last 50", []) for n in SESSION_ITEMS),
    *((f"session_message_{n}", f"a message to a conversation of {n:,} items, stored", []) for n in SESSION_ITEMS),
]


def wire():
    """One handoff over HTTP: each form, and the same with ready-made bytes."""
    for protocol, spoken in (("responses", "Responses"), ("chat", "Chat Completions")):
        for form in ("plain", "streamed"):
            for items in (20, 1000):
                for at_once in (1, 64):
                    name = f"{protocol}_{form}_{items}_x{at_once}"
                    label = f"{spoken}, {form}, {items:,} items, {at_once} at a time"
                    peers = [peer for peer in ALL if (peer, protocol) != ("openai-agents-rs", "responses")]
                    # Right before Switchboard's own, which is the first of its case: they are compared.
                    if form == "plain":
                        yield f"reading_{name}", f"bare, parsing the answers: {label}", []
                    yield f"bare_{name}", f"bare: {label}", []
                    yield name, label, peers


WIRE = list(wire())

# What would take minutes, or more memory than a machine has.
TOO_LONG = {
    ("python", "chain_1000"),
    ("python", "at_once_10000"),
    ("node", "chain_1000"),
    ("node", "at_once_10000"),
    ("python", "responses_plain_1000_x64"),
    ("python", "responses_streamed_1000_x64"),
    ("python", "chat_plain_1000_x64"),
    ("python", "chat_streamed_1000_x64"),
    ("node", "responses_plain_1000_x64"),
    ("node", "responses_streamed_1000_x64"),
    ("node", "chat_plain_1000_x64"),
    ("node", "chat_streamed_1000_x64"),
}


def groups():
    """All cases, under the headings of the tables."""
    return [
        ("In process, on a scripted model", IN_PROCESS),
        ("Many runs at once", AT_ONCE),
        ("Memory", MEMORY),
        ("Stored conversations, in a SQLite file", SESSIONS),
        ("Over HTTP on loopback", WIRE),
    ]
