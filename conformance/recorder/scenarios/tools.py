"""Tools: their outputs, guardrails on them, and the behaviour after they ran."""

from script import agent, calls, says, scenario, tool

CALL_A = calls("a")
CALL_B = calls("b")
DONE = [says("Done.")]

SCENARIOS = [
    scenario(
        "tool_returns_image",
        "an image as a tool's output",
        agent(
            "Desk",
            tools=[
                tool("a", parts=[{"type": "image", "image_url": "https://x.test/a.png", "detail": "low"}])
            ],
        ),
        [[CALL_A], DONE],
    ),
    scenario(
        "tool_returns_image_by_id",
        "an image that the provider has",
        agent("Desk", tools=[tool("a", parts=[{"type": "image", "file_id": "file_1"}])]),
        [[CALL_A], DONE],
    ),
    scenario(
        "tool_returns_file",
        "a file with its content",
        agent(
            "Desk",
            tools=[tool("a", parts=[{"type": "file", "file_data": "QUJD", "filename": "a.txt"}])],
        ),
        [[CALL_A], DONE],
    ),
    scenario(
        "tool_returns_file_by_address_and_id",
        "files that are elsewhere",
        agent(
            "Desk",
            tools=[
                tool(
                    "a",
                    parts=[
                        {"type": "file", "file_url": "https://x.test/a.pdf"},
                        {"type": "file", "file_id": "file_2"},
                    ],
                )
            ],
        ),
        [[CALL_A], DONE],
    ),
    scenario(
        "tool_returns_text_and_image",
        "several parts in one output, which a handoff carries on",
        [
            agent(
                "Desk",
                tools=[
                    tool(
                        "a",
                        parts=[
                            {"type": "text", "text": "A picture:"},
                            {"type": "image", "image_url": "https://x.test/a.png"},
                        ],
                    )
                ],
                handoffs=["Expert"],
            ),
            agent("Expert"),
        ],
        [[CALL_A], [calls("transfer_to_expert")], DONE],
        session=True,
    ),
    scenario(
        "tool_input_guardrail_replaces",
        "the tool does not run; the guardrail's words are its output",
        agent(
            "Desk",
            tools=[
                tool(
                    "a",
                    returns="never",
                    input_guardrails=[
                        {"name": "words", "on": "SECRET", "does": "reject", "message": "Not that."}
                    ],
                )
            ],
        ),
        [[calls("a", {"text": "SECRET"})], [calls("a", {"text": "fine"})], DONE],
    ),
    scenario(
        "tool_output_guardrail_replaces",
        "the tool ran; the guardrail's words replace its output",
        agent(
            "Desk",
            tools=[
                tool(
                    "a",
                    returns="the SECRET",
                    output_guardrails=[
                        {"name": "words", "on": "SECRET", "does": "reject", "message": "Withheld."}
                    ],
                )
            ],
        ),
        [[CALL_A], DONE],
        session=True,
    ),
    scenario(
        "tool_input_guardrail_trips",
        "the run ends before the tool runs",
        agent(
            "Desk",
            tools=[
                tool(
                    "a",
                    returns="never",
                    input_guardrails=[{"name": "words", "on": "SECRET", "does": "raise"}],
                )
            ],
        ),
        [[calls("a", {"text": "SECRET"})], DONE],
    ),
    scenario(
        "tool_output_guardrail_trips",
        "the run ends after the tool ran",
        agent(
            "Desk",
            tools=[
                tool(
                    "a",
                    returns="the SECRET",
                    output_guardrails=[{"name": "words", "on": "SECRET", "does": "raise"}],
                )
            ],
        ),
        [[CALL_A], DONE],
    ),
    scenario(
        "tool_guardrails_in_order",
        "the first guardrail that rejects ends the check",
        agent(
            "Desk",
            tools=[
                tool(
                    "a",
                    returns="out",
                    input_guardrails=[
                        {"name": "first", "on": "no", "does": "reject", "message": "1"},
                        {"name": "second", "on": "x", "does": "reject", "message": "2"},
                        {"name": "third", "on": "x", "does": "reject", "message": "3"},
                    ],
                )
            ],
        ),
        [[calls("a", {"text": "x"})], DONE],
    ),
    scenario(
        "tool_output_guardrail_sees_a_failure",
        "the words for a failure are an output too",
        agent(
            "Desk",
            tools=[
                tool(
                    "a",
                    fails="broken",
                    failure={"says": "It is broken"},
                    output_guardrails=[
                        {"name": "words", "on": "broken", "does": "reject", "message": "Hm."}
                    ],
                )
            ],
        ),
        [[CALL_A], DONE],
    ),
    scenario(
        "stop_on_first_tool_of_two",
        "the first call's output is the final one; all tools run",
        agent(
            "Desk",
            tools=[tool("a", takes_ms=20, returns="first"), tool("b", returns="second")],
            tool_use_behavior="stop_on_first_tool",
        ),
        [[CALL_A, CALL_B]],
    ),
    scenario(
        "stop_on_first_tool_that_failed",
        "the words for a failure are the final output",
        agent(
            "Desk",
            tools=[tool("a", fails="x", failure={"says": "Sorry."})],
            tool_use_behavior="stop_on_first_tool",
        ),
        [[CALL_A]],
    ),
    scenario(
        "stop_at_a_named_tool",
        "the run ends at that tool only",
        agent(
            "Desk",
            tools=[tool("a", returns="more"), tool("b", returns="enough")],
            tool_use_behavior={"stop_at_tool_names": ["b"]},
        ),
        [[CALL_A], [CALL_A, CALL_B]],
        session=True,
    ),
    scenario(
        "tool_use_decided_by_a_function",
        "the function sees the results of each turn and ends the run with words of its own",
        agent(
            "Desk",
            tools=[tool("a", returns="not yet"), tool("b", returns="enough")],
            tool_use_behavior={"final_when": "enough", "says": "That is all."},
        ),
        [[CALL_A], [CALL_A, CALL_B]],
    ),
    scenario(
        "tool_final_output_is_guarded",
        "an output guardrail sees the output of the tool that ends the run",
        agent(
            "Desk",
            tools=[tool("a", returns="the SECRET")],
            tool_use_behavior="stop_on_first_tool",
            output_guardrails=[{"name": "words", "trips_on": "SECRET"}],
        ),
        [[CALL_A]],
        session=True,
    ),
    scenario(
        "tool_final_output_withheld_in_own_words",
        "the session gets the run's words in place of the output that was blocked",
        agent(
            "Desk",
            tools=[tool("a", returns="the SECRET")],
            tool_use_behavior="stop_on_first_tool",
            output_guardrails=[{"name": "words", "trips_on": "SECRET"}],
        ),
        [[CALL_A]],
        session=True,
        run_config={"output_guardrail_blocked_message": "Withheld."},
    ),
    scenario(
        "tool_is_disabled_by_a_tool",
        "a condition is asked before each model call",
        agent(
            "Desk",
            tools=[
                tool("a", returns="closed", sets={"open": False}),
                tool("b", returns="x", is_enabled={"context": "open", "equals": True}),
            ],
        ),
        [[CALL_A], DONE],
        context={"open": True},
        records=["context"],
    ),
    scenario(
        "unknown_tool_is_told",
        "the model is told that there is no such tool, and goes on",
        agent("Desk", tools=[tool("a", returns="x")]),
        [[calls("missing"), CALL_A], DONE],
        run_config={"tool_not_found_behavior": "return_error_to_model"},
    ),
    scenario(
        "unknown_tool_beside_a_handoff_is_told",
        "the handoff is taken",
        [agent("Desk", handoffs=["Expert"]), agent("Expert")],
        [[calls("missing"), calls("transfer_to_expert")], DONE],
        run_config={"tool_not_found_behavior": "return_error_to_model"},
    ),
]
