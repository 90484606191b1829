"""Recovery from errors, limits of turns, outputs that do not fit, and guardrails."""

from script import agent, calls, refuses, says, scenario, tool

DESK = agent("Desk", tools=[tool("a", returns="found")])
TYPED = agent("Desk", output_type="Escalation", tools=[tool("a", returns="found")])
TEAM = [agent("Desk", handoffs=["Expert"]), agent("Expert", tools=[tool("a", returns="found")])]
SORRY = {"final_output": "Sorry."}
HIDDEN = {"final_output": "Sorry.", "include_in_history": False}


GUARDRAIL_SPAN = [
    {"fields": ["spans"], "why": "Here the span of a guardrail that failed has an error."}
]


BESIDE = [{"fields": ["log"], "why": "The guardrail runs beside the model, in no order."}]


def guarded(**guardrail: object) -> dict[str, object]:
    return {"name": "words", **guardrail}


SCENARIOS = [
    scenario(
        "recovery_from_max_turns",
        "the handler's output is the final one, and a message of the history",
        DESK,
        [[calls("a")], [calls("a")]],
        max_turns=2,
        session=True,
        error_handlers={"max_turns": SORRY},
    ),
    scenario(
        "recovery_out_of_history",
        "the handler's output stays out of the history",
        DESK,
        [[calls("a")]],
        max_turns=1,
        session=True,
        error_handlers={"max_turns": HIDDEN},
    ),
    scenario(
        "recovery_says_nothing",
        "a handler that gives no output leaves the error",
        DESK,
        [[calls("a")]],
        max_turns=1,
        error_handlers={"max_turns": None},
    ),
    scenario(
        "recovery_fails",
        "an error of the handler ends the run",
        DESK,
        [[calls("a")]],
        max_turns=1,
        error_handlers={"max_turns": {"fails": "no way out"}},
    ),
    scenario(
        "recovery_after_a_handoff",
        "the agent that the run had reached ends it",
        TEAM,
        [[calls("transfer_to_expert")], [calls("a")]],
        max_turns=2,
        error_handlers={"max_turns": SORRY},
    ),
    scenario(
        "recovery_of_another_problem",
        "a handler is asked about its own problem only",
        DESK,
        [[calls("a")]],
        max_turns=1,
        error_handlers={"model_refusal": SORRY},
    ),
    scenario(
        "recovery_with_typed_output",
        "the output has the agent's type",
        TYPED,
        [[calls("a")]],
        max_turns=1,
        error_handlers={"max_turns": {"final_output": {"reason": "no time"}}},
    ),
    scenario(
        "recovery_from_a_refusal",
        "the refusal stays in the history, the handler's output follows it",
        TYPED,
        [{"output": [refuses("I will not.")], "usage": {"input": 5, "output": 2}}],
        session=True,
        records=["usage"],
        error_handlers={"model_refusal": {"final_output": {"reason": "refused"}}},
    ),
    scenario(
        "recovery_from_a_refusal_out_of_history",
        "only the refusal is in the history",
        TYPED,
        [[refuses("I will not.")]],
        session=True,
        error_handlers={
            "model_refusal": {"final_output": {"reason": "refused"}, "include_in_history": False}
        },
    ),
    scenario(
        "recovery_from_invalid_output",
        "an answer that does not fit the output type",
        TYPED,
        [[says("no JSON")]],
        session=True,
        error_handlers={"invalid_final_output": {"final_output": {"reason": "unclear"}}},
    ),
    scenario(
        "recovery_is_guarded",
        "an output guardrail sees the handler's output",
        {**DESK, "output_guardrails": [guarded(trips_on="Sorry")]},
        [[calls("a")]],
        max_turns=1,
        error_handlers={"max_turns": SORRY},
    ),
    scenario(
        "refusal_in_plain_text",
        "a refusal where the output is text",
        DESK,
        [[refuses("I will not.")]],
    ),
    scenario(
        "refusal_of_typed_output",
        "a refusal where the output has a type is an error",
        TYPED,
        [[refuses("I will not.")]],
    ),
    scenario(
        "typed_output",
        "the model is given the schema, and its answer is read as the type",
        TYPED,
        [[says('{"reason": "rent"}')]],
        records=["output_schema"],
    ),
    scenario(
        "typed_output_invalid",
        "an answer that is no JSON",
        TYPED,
        [[says("rent")]],
        session=True,
    ),
    scenario(
        "typed_output_missing_field",
        "an answer that lacks a field",
        TYPED,
        [[says("{}")]],
    ),
    scenario(
        "typed_output_nested",
        "lists of objects and a field with a default",
        agent("Desk", output_type="Order"),
        [[says('{"id": 1, "lines": [{"sku": "x", "quantity": 2}], "note": "fast"}')]],
        records=["output_schema"],
    ),
    scenario(
        "lenient_output",
        "a type with a map, whose schema cannot be strict",
        agent("Desk", output_type={"lenient": "Counts"}),
        [[says('{"counts": {"apples": 3, "pears": 0}}')]],
        records=["output_schema"],
    ),
    scenario(
        "lenient_output_invalid",
        "its answers are validated too",
        agent("Desk", output_type={"lenient": "Counts"}),
        [[says('{"counts": {"apples": "many"}}')]],
    ),
    scenario(
        "typed_output_after_tools",
        "a message beside a call is not the final output",
        TYPED,
        [[says("Let me see."), calls("a")], [says('{"reason": "found"}')]],
    ),
    scenario(
        "typed_output_from_a_tool",
        "the output of a tool that ends the run is not read as the type",
        {**TYPED, "tool_use_behavior": "stop_on_first_tool"},
        [[calls("a")]],
    ),
    scenario(
        "max_turns_one",
        "a single turn that answers",
        DESK,
        [[says("Hi.")]],
        max_turns=1,
    ),
    scenario(
        "input_guardrails_of_run_and_agent",
        "those of the agent and of the run, at the first agent only",
        [
            {**TEAM[0], "input_guardrails": [guarded(trips_on="SECRET")]},
            {**TEAM[1], "input_guardrails": [{"name": "never", "trips_on": "Hello"}]},
        ],
        [[calls("transfer_to_expert")], [says("Done.")]],
        run_config={"input_guardrails": [{"name": "of_run", "trips_on": "SECRET"}]},
    ),
    scenario(
        "input_guardrail_of_run_trips",
        "a guardrail of the run",
        DESK,
        [[says("never")]],
        input="the SECRET",
        run_config={"input_guardrails": [{"name": "of_run", "trips_on": "SECRET"}]},
    ),
    scenario(
        "input_guardrail_fails",
        "an error of a guardrail ends the run",
        {**DESK, "input_guardrails": [guarded(raises="no rules")]},
        [[says("never")]],
        may_differ=GUARDRAIL_SPAN,
    ),
    scenario(
        "input_guardrails_all_before_the_model",
        "the second of two trips",
        {
            **DESK,
            "input_guardrails": [
                {"name": "first", "trips_on": "nothing"},
                {"name": "second", "trips_on": "SECRET"},
            ],
        },
        [[says("never")]],
        input="the SECRET",
    ),
    scenario(
        "input_guardrail_beside_the_model_trips",
        "a guardrail that runs beside the model ends the run before its answer is used",
        {**DESK, "input_guardrails": [guarded(trips_on="SECRET", beside=True)]},
        [[says("never")]],
        input="the SECRET",
        session=True,
        may_differ=BESIDE,
    ),
    scenario(
        "input_guardrail_beside_the_model_fails",
        "an error of such a guardrail",
        {**DESK, "input_guardrails": [guarded(raises="no rules", beside=True)]},
        [[says("never")]],
        may_differ=BESIDE + GUARDRAIL_SPAN,
    ),
    scenario(
        "input_guardrail_beside_the_model_passes",
        "the answer is used once the guardrail has passed",
        {**DESK, "input_guardrails": [guarded(trips_on="SECRET", beside=True, takes_ms=20)]},
        [[says("Hi.")]],
        session=True,
        may_differ=BESIDE,
    ),
    scenario(
        "output_guardrails_of_run_and_agent",
        "those of the last agent and of the run",
        [
            {**TEAM[0], "output_guardrails": [{"name": "never", "trips_on": "Done"}]},
            {**TEAM[1], "output_guardrails": [guarded(trips_on="SECRET")]},
        ],
        [[calls("transfer_to_expert")], [says("Done.")]],
        run_config={"output_guardrails": [{"name": "of_run", "trips_on": "SECRET"}]},
    ),
    scenario(
        "output_guardrail_of_run_trips",
        "a guardrail of the run",
        DESK,
        [[says("the SECRET")]],
        run_config={"output_guardrails": [{"name": "of_run", "trips_on": "SECRET"}]},
    ),
    scenario(
        "output_guardrail_fails",
        "an error of a guardrail ends the run",
        {**DESK, "output_guardrails": [guarded(raises="no rules")]},
        [[says("Done.")]],
        may_differ=GUARDRAIL_SPAN,
    ),
    scenario(
        "output_guardrail_sees_typed_output",
        "the guardrail sees the value",
        {**TYPED, "output_guardrails": [guarded(trips_on="rent")]},
        [[says('{"reason": "rent"}')]],
    ),
]
