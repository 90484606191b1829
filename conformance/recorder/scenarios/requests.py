"""What models are given: settings, filters on requests, conversations that the provider keeps, usage."""

from script import agent, calls, says, scenario, tool

TOOL = tool("a", returns="found")
DESK = agent("Desk", tools=[TOOL])
TEAM = [agent("Desk", handoffs=["Expert"]), agent("Expert", tools=[TOOL])]


def step(*output: object, **fields: object) -> dict[str, object]:
    return {"output": list(output), **fields}


SCENARIOS = [
    scenario(
        "tool_choice_is_reset",
        "after a tool was called, the model is free to answer",
        {**DESK, "model_settings": {"tool_choice": "required"}},
        [[calls("a")], [says("Done.")]],
        records=["settings"],
    ),
    scenario(
        "tool_choice_is_kept",
        "an agent that keeps its tool choice",
        {**DESK, "model_settings": {"tool_choice": "a"}, "reset_tool_choice": False},
        [[calls("a")], [says("Done.")]],
        records=["settings"],
    ),
    scenario(
        "tool_choice_of_the_run_is_reset",
        "the run's tool choice",
        DESK,
        [[calls("a")], [says("Done.")]],
        run_config={"model_settings": {"tool_choice": "required"}},
        records=["settings"],
    ),
    scenario(
        "tool_choice_across_a_handoff",
        "each agent has its own",
        [
            {**TEAM[0], "model_settings": {"tool_choice": "required"}},
            {**TEAM[1], "model_settings": {"tool_choice": "a"}},
        ],
        [[calls("transfer_to_expert")], [calls("a")], [says("Done.")]],
        records=["settings"],
    ),
    scenario(
        "tool_choice_in_a_later_turn",
        "a new run begins with the agent's choice",
        {**DESK, "model_settings": {"tool_choice": "required"}},
        [[calls("a")], [says("Done.")], [calls("a")], [says("Again.")]],
        turns=["Hello", "Again"],
        session=True,
        records=["settings"],
    ),
    scenario(
        "settings_of_run_and_agent",
        "the run's settings override the agent's, one by one",
        {
            **DESK,
            "model_settings": {"temperature": 0.5, "max_tokens": 100, "parallel_tool_calls": False},
        },
        [[says("Done.")]],
        run_config={"model_settings": {"temperature": 0.25, "top_p": 0.5}},
        records=["settings"],
    ),
    scenario(
        "model_filter_keeps_the_end",
        "the model is given less; the result has everything",
        DESK,
        [[calls("a")], [says("Done.")]],
        run_config={"call_model_input_filter": {"keep_last": 2}},
    ),
    scenario(
        "model_filter_adds_and_instructs",
        "the model is given more, and other instructions",
        TEAM,
        [[calls("transfer_to_expert")], [says("Done.")]],
        run_config={"call_model_input_filter": {"append": "Be brief.", "instructions": "Filtered."}},
    ),
    scenario(
        "model_filter_and_session",
        "what the filter added is not stored",
        DESK,
        [[says("Hi.")], [says("Again.")]],
        turns=["Hello", "And now?"],
        session=True,
        run_config={"call_model_input_filter": {"append": "Be brief."}},
    ),
    scenario(
        "model_filter_fails",
        "an error of the filter ends the run",
        DESK,
        [[says("never")]],
        run_config={"call_model_input_filter": {"fails": "no input"}},
    ),
    scenario(
        "server_conversation",
        "only what is new is sent to a conversation that the provider keeps",
        DESK,
        [
            step(calls("a"), response_id="resp_1"),
            step(says("Done."), response_id="resp_2"),
        ],
        conversation_id="conv_1",
        records=["server"],
    ),
    scenario(
        "server_conversation_with_handoff",
        "also across a handoff",
        TEAM,
        [
            step(calls("transfer_to_expert"), response_id="resp_1"),
            step(calls("a"), response_id="resp_2"),
            step(says("Done."), response_id="resp_3"),
        ],
        conversation_id="conv_1",
        records=["server"],
    ),
    scenario(
        "previous_response",
        "the run goes on from a response",
        DESK,
        [
            step(calls("a"), response_id="resp_1"),
            step(says("Done."), response_id="resp_2"),
        ],
        previous_response_id="resp_0",
        records=["server"],
    ),
    scenario(
        "previous_response_with_handoff",
        "also across a handoff",
        TEAM,
        [
            step(calls("transfer_to_expert"), response_id="resp_1"),
            step(says("Done."), response_id="resp_2"),
        ],
        previous_response_id="resp_0",
        records=["server"],
    ),
    scenario(
        "previous_response_automatic",
        "each call goes on from the response before",
        DESK,
        [
            step(calls("a"), response_id="resp_1"),
            step(says("Done."), response_id="resp_2"),
        ],
        auto_previous_response_id=True,
        records=["server"],
    ),
    scenario(
        "usage_of_each_request",
        "tokens of the run, and of each request",
        TEAM,
        [
            step(calls("transfer_to_expert"), usage={"input": 10, "output": 2}),
            step(calls("a"), usage={"input": 20, "cached": 5, "output": 3, "reasoning": 1}),
            step(says("Done."), usage={"input": 30, "cached": 20, "output": 4}),
        ],
        records=["usage"],
    ),
    scenario(
        "usage_of_one_turn",
        "each run of a session counts its own",
        DESK,
        [
            step(says("Hi."), usage={"input": 10, "output": 2}),
            step(says("Again."), usage={"input": 20, "output": 3}),
        ],
        turns=["Hello", "And now?"],
        session=True,
        records=["usage"],
    ),
    scenario(
        "ignored_handoffs_are_answered",
        "the second handoff of a response is not taken, and its call is answered",
        [
            agent("Desk", handoffs=["Expert", "Other"]),
            agent("Expert", tools=[TOOL]),
            agent("Other"),
        ],
        [
            [calls("transfer_to_expert"), calls("transfer_to_other")],
            [calls("a")],
            [says("Done.")],
        ],
        session=True,
    ),
    scenario(
        "ignored_handoff_beside_a_tool",
        "the tool runs, the first handoff is taken",
        [
            agent("Desk", tools=[TOOL], handoffs=["Expert", "Other"]),
            agent("Expert"),
            agent("Other"),
        ],
        [
            [calls("transfer_to_other"), calls("a"), calls("transfer_to_expert")],
            [says("Done.")],
        ],
    ),
    scenario(
        "handoff_disabled_by_a_tool",
        "a condition is asked before each model call",
        [
            agent(
                "Desk",
                tools=[tool("a", returns="closed", sets={"open": False})],
                handoffs=[{"agent": "Expert", "is_enabled": {"context": "open", "equals": True}}],
            ),
            agent("Expert"),
        ],
        [[calls("a")], [says("Done.")]],
        context={"open": True},
        records=["context"],
    ),
]
