"""Tools that fail, take too long, or get arguments that do not fit."""

from script import agent, calls, says, scenario, tool

CALL_A = calls("a")
CALL_B = calls("b")
DONE = [says("Done.")]

SCENARIOS = [
    scenario(
        "tool_failure_default_text",
        "the model is told that the tool failed, and nothing of the error",
        agent("Desk", tools=[tool("a", fails="secret detail", failure="default")]),
        [[CALL_A], DONE],
    ),
    scenario(
        "tool_failure_own_text",
        "a tool words its failures itself",
        agent("Desk", tools=[tool("a", fails="no such order", failure={"says": "Failed: {error}."})]),
        [[CALL_A], DONE],
    ),
    scenario(
        "tool_failure_ends_the_run",
        "a tool without words for failures ends the run",
        agent("Desk", tools=[tool("a", raises="disk full")]),
        [[CALL_A], DONE],
    ),
    scenario(
        "tool_failure_ends_the_run_after_a_turn",
        "the turn before the failure is in the session, with the failed turn's call not",
        agent("Desk", tools=[tool("a", returns="one"), tool("b", raises="disk full")]),
        [[CALL_A], [CALL_B], DONE],
        session=True,
    ),
    scenario(
        "tool_finished_beside_one_that_fails",
        "a tool that tells its failure does not disturb its sibling",
        agent(
            "Desk",
            tools=[tool("a", returns="kept"), tool("b", fails="broken", failure="default")],
        ),
        [[CALL_A, CALL_B], DONE],
        session=True,
    ),
    scenario(
        "tools_that_all_fail",
        "every call is answered with its failure",
        agent(
            "Desk",
            tools=[
                tool("a", fails="one", failure={"says": "A: {error}"}),
                tool("b", fails="two", failure={"says": "B: {error}"}),
            ],
        ),
        [[CALL_A, CALL_B], DONE],
    ),
    scenario(
        "tool_failure_and_handoff",
        "a handoff beside a failing tool is taken",
        [
            agent("Desk", tools=[tool("a", fails="broken", failure="default")], handoffs=["Expert"]),
            agent("Expert"),
        ],
        [[CALL_A, calls("transfer_to_expert")], DONE],
    ),
    scenario(
        "tool_that_ends_the_run_and_handoff",
        "a handoff beside a tool that ends the run is not taken",
        [
            agent("Desk", tools=[tool("a", raises="disk full")], handoffs=["Expert"]),
            agent("Expert"),
        ],
        [[CALL_A, calls("transfer_to_expert")], DONE],
    ),
    scenario(
        "tool_error_formatter_words",
        "the run words the failure of a tool that has no words of its own",
        agent(
            "Desk",
            tools=[
                tool("a", fails="x", failure="default"),
                tool("b", fails="y", failure={"says": "own words"}),
            ],
        ),
        [[CALL_A, CALL_B], DONE],
        run_config={"tool_error_formatter": {"says": "{tool} failed in {call_id}."}},
    ),
    scenario(
        "tool_error_formatter_says_nothing",
        "asked, but the default text stays",
        agent("Desk", tools=[tool("a", fails="x", failure="default")]),
        [[CALL_A], DONE],
        run_config={"tool_error_formatter": None},
    ),
    scenario(
        "tool_error_formatter_fails",
        "the default text stays",
        agent("Desk", tools=[tool("a", fails="x", failure="default")]),
        [[CALL_A], DONE],
        run_config={"tool_error_formatter": {"fails": "no words"}},
    ),
    scenario(
        "tool_timeout_is_told",
        "a tool that takes too long is answered with its name and limit",
        agent("Desk", tools=[tool("a", takes_ms=2000, timeout_ms=20, returns="late")]),
        [[CALL_A], DONE],
    ),
    scenario(
        "tool_timeout_own_text",
        "a tool words its time-out itself",
        agent(
            "Desk",
            tools=[
                tool("a", takes_ms=2000, timeout_ms=20, on_timeout={"says": "Too slow."}),
            ],
        ),
        [[CALL_A], DONE],
    ),
    scenario(
        "tool_timeout_ends_the_run",
        "a time-out that is raised",
        agent("Desk", tools=[tool("a", takes_ms=2000, timeout_ms=20, on_timeout="raise")]),
        [[CALL_A], DONE],
    ),
    scenario(
        "tool_timeout_beside_a_tool_in_time",
        "each tool has its own limit",
        agent(
            "Desk",
            tools=[
                tool("a", takes_ms=2000, timeout_ms=20, returns="late"),
                tool("b", takes_ms=1, timeout_ms=5000, returns="in time"),
            ],
        ),
        [[CALL_A, CALL_B], DONE],
    ),
    scenario(
        "tools_of_one_response_keep_their_order",
        "outputs are in the order of the calls, not in that of completion",
        agent("Desk", tools=[tool("a", takes_ms=30, returns="slow"), tool("b", returns="fast")]),
        [[CALL_A, CALL_B], DONE],
    ),
    scenario(
        "tools_one_at_a_time",
        "a limit of one tool at a time",
        agent("Desk", tools=[tool("a", takes_ms=5, returns="1"), tool("b", returns="2")]),
        [[CALL_A, CALL_B, CALL_A], DONE],
        run_config={"tool_concurrency": 1},
    ),
    scenario(
        "tool_arguments_are_parsed",
        "the arguments have the tool's type",
        agent("Desk", tools=[tool("a", arguments="Order", returns="ordered")]),
        [[calls("a", {"id": 7, "lines": [{"sku": "x", "quantity": 2}], "note": None})], DONE],
        records=["tool_schemas"],
    ),
    scenario(
        "tool_arguments_missing_field",
        "the tool does not run, and the model may try again",
        agent("Desk", tools=[tool("a", arguments="Escalation", returns="ok")]),
        [[calls("a", {})], [calls("a", {"reason": "rent"})], DONE],
    ),
    scenario(
        "tool_arguments_not_json",
        "the tool does not run, and the model may try again",
        agent("Desk", tools=[tool("a", arguments="Escalation", returns="ok")]),
        [[calls("a", "{not json")], [calls("a", {"reason": "rent"})], DONE],
    ),
    scenario(
        "tool_arguments_own_text",
        "a tool's own words are used for arguments that do not fit too",
        agent(
            "Desk",
            tools=[tool("a", arguments="Escalation", returns="ok", failure={"says": "Bad call."})],
        ),
        [[calls("a", {})], DONE],
    ),
    scenario(
        "tool_arguments_end_the_run",
        "arguments that do not fit end the run of a tool that raises",
        agent("Desk", tools=[tool("a", arguments="Escalation", returns="ok", failure="raise")]),
        [[calls("a", {})], DONE],
    ),
    scenario(
        "tool_arguments_number_in_text",
        "a number in a text is read as a number",
        agent("Desk", tools=[tool("a", arguments="Query", returns="ok")]),
        [[calls("a", {"query": "q", "period": "p", "limit": "12"})], DONE],
    ),
    scenario(
        "tool_arguments_wrong_enum",
        "a value that is not among those allowed",
        agent("Desk", tools=[tool("a", arguments="Ticket", returns="ok")]),
        [
            [calls("a", {"department": "law", "priority": "low", "user_info": "", "issue_summary": ""})],
            DONE,
        ],
    ),
]
