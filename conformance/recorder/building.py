"""Builds the agents and run settings of a scenario out of the reference's own classes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import (
    Agent,
    AgentOutputSchema,
    GuardrailFunctionOutput,
    InputGuardrail,
    ModelSettings,
    OutputGuardrail,
    RunConfig,
    SessionSettings,
    StopAtTools,
    ToolExecutionConfig,
    handoff,
)
from agents.agent import ToolsToFinalOutputResult

import filters
from observing import Log, LoggingAgentHooks
from payloads import TYPES
from serializing import output_value, plain
from tools import build_tool, condition


def build_agents(scenario: dict[str, Any], log: Log) -> dict[str, Agent[Any]]:
    """All agents of a scenario, by name."""
    agents = {case["name"]: build_agent(case, log) for case in scenario["agents"]}
    for case in scenario["agents"]:
        agents[case["name"]].handoffs = [
            build_handoff(spec, agents, log) for spec in case.get("handoffs") or []
        ]
    return agents


def build_agent(case: dict[str, Any], log: Log) -> Agent[Any]:
    settings: dict[str, Any] = {}
    if "reset_tool_choice" in case:
        settings["reset_tool_choice"] = case["reset_tool_choice"]
    return Agent(
        name=case["name"],
        instructions=case.get("instructions"),
        handoff_description=case.get("handoff_description"),
        hooks=LoggingAgentHooks(log, case["name"]) if case.get("hooks") else None,
        tools=[build_tool(tool, log) for tool in case.get("tools") or []],
        input_guardrails=[input_guardrail(spec, log) for spec in case.get("input_guardrails", [])],
        output_guardrails=[
            output_guardrail(spec, log) for spec in case.get("output_guardrails", [])
        ],
        output_type=output_type(case.get("output_type")),
        model_settings=ModelSettings(**case.get("model_settings", {})),
        tool_use_behavior=tool_use_behavior(case.get("tool_use_behavior"), log),
        **settings,
    )


def output_type(spec: Any) -> Any:
    if isinstance(spec, dict):
        return AgentOutputSchema(TYPES[spec["lenient"]], strict_json_schema=False)
    return None if spec is None else TYPES[spec]


def tool_use_behavior(spec: Any, log: Log) -> Any:
    if spec is None or isinstance(spec, str):
        return spec or "run_llm_again"
    if "stop_at_tool_names" in spec:
        return StopAtTools(stop_at_tool_names=spec["stop_at_tool_names"])

    def decide(ctx: Any, results: Any) -> ToolsToFinalOutputResult:
        outputs = [plain(result.output) for result in results]
        log.append({"tool_use_behavior": [result.tool.name for result in results]})
        is_final = spec["final_when"] in json.dumps(outputs)
        return ToolsToFinalOutputResult(
            is_final_output=is_final, final_output=spec["says"] if is_final else None
        )

    return decide


def build_handoff(spec: Any, agents: dict[str, Agent[Any]], log: Log) -> Any:
    if isinstance(spec, str):
        return agents[spec]
    settings: dict[str, Any] = {}
    if spec.get("input_type"):
        settings["input_type"] = TYPES[spec["input_type"]]
        settings["on_handoff"] = lambda ctx, payload: called_back(spec, log, payload)
    elif spec.get("on_handoff"):
        settings["on_handoff"] = lambda ctx: called_back(spec, log, None)
    return handoff(
        agents[spec["agent"]],
        tool_name_override=spec.get("tool_name_override"),
        tool_description_override=spec.get("tool_description_override"),
        input_filter=filters.handoff_filter(spec.get("input_filter"), log),
        nest_handoff_history=spec.get("nest_handoff_history"),
        is_enabled=condition(spec.get("is_enabled")),
        **settings,
    )


def called_back(spec: dict[str, Any], log: Log, payload: Any) -> None:
    entry = {"on_handoff": spec["agent"]}
    if payload is not None:
        entry["input"] = payload.model_dump(mode="json", exclude_none=True)
    log.append(entry)
    if spec.get("on_handoff_fails"):
        raise RuntimeError(spec["on_handoff_fails"])


def input_guardrail(spec: dict[str, Any], log: Log) -> InputGuardrail[Any]:
    async def check(ctx: Any, agent: Agent[Any], text: Any) -> GuardrailFunctionOutput:
        log.append({"input_guardrail": spec["name"], "agent": agent.name})
        await asyncio.sleep(spec.get("takes_ms", 0) / 1000)
        return verdict(spec, json.dumps(plain(text), ensure_ascii=False))

    return InputGuardrail(check, name=spec["name"], run_in_parallel=spec.get("beside", False))


def output_guardrail(spec: dict[str, Any], log: Log) -> OutputGuardrail[Any]:
    async def check(ctx: Any, agent: Agent[Any], output: Any) -> GuardrailFunctionOutput:
        log.append({"output_guardrail": spec["name"], "agent": agent.name})
        text = output if isinstance(output, str) else json.dumps(output_value(output))
        return verdict(spec, text)

    return OutputGuardrail(check, name=spec["name"])


def verdict(spec: dict[str, Any], text: str) -> GuardrailFunctionOutput:
    if "raises" in spec:
        raise RuntimeError(spec["raises"])
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=spec["trips_on"] in text)


def build_run_config(scenario: dict[str, Any], model: Any, log: Log) -> RunConfig:
    case = scenario.get("run_config") or {}
    settings: dict[str, Any] = {}
    for name in ("nest_handoff_history", "reasoning_item_id_policy", "tool_not_found_behavior"):
        if name in case:
            settings[name] = case[name]
    if "model_settings" in case:
        settings["model_settings"] = ModelSettings(**case["model_settings"])
    if "output_guardrail_blocked_message" in case:
        settings["output_guardrail_blocked_message"] = case["output_guardrail_blocked_message"]
    if "session_limit" in case:
        settings["session_settings"] = SessionSettings(limit=case["session_limit"])
    if "tool_concurrency" in case:
        settings["tool_execution"] = ToolExecutionConfig(
            max_function_tool_concurrency=case["tool_concurrency"]
        )
    if "tool_error_formatter" in case:
        settings["tool_error_formatter"] = error_formatter(case["tool_error_formatter"], log)
    return RunConfig(
        model=model,
        handoff_input_filter=filters.handoff_filter(case.get("handoff_input_filter"), log),
        handoff_history_mapper=filters.history_mapper(case.get("handoff_history_mapper")),
        input_guardrails=[input_guardrail(spec, log) for spec in case.get("input_guardrails", [])],
        output_guardrails=[
            output_guardrail(spec, log) for spec in case.get("output_guardrails", [])
        ],
        session_input_callback=filters.session_input(case.get("session_input_callback")),
        call_model_input_filter=filters.model_filter(case.get("call_model_input_filter"), log),
        **settings,
    )


def error_formatter(spec: Any, log: Log) -> Any:
    """The run's words for tools that failed."""

    def format_error(args: Any) -> str | None:
        log.append({"tool_error_formatter": args.tool_name, "call_id": args.call_id})
        if spec is None:
            return None
        if "fails" in spec:
            raise RuntimeError(spec["fails"])
        return spec["says"].replace("{tool}", args.tool_name).replace("{call_id}", args.call_id)

    return format_error


def error_handlers(scenario: dict[str, Any], log: Log) -> dict[str, Any] | None:
    """The handlers that give a final output where a run would fail."""
    if "error_handlers" not in scenario:
        return None

    def handler(kind: str, spec: Any) -> Any:
        def handle(data: Any) -> Any:
            log.append({"error_handler": kind, "items": len(data.run_data.new_items)})
            if spec is not None and "fails" in spec:
                raise RuntimeError(spec["fails"])
            expected = data.run_data.last_agent.output_type
            if spec is None or expected is None:
                return spec
            return {**spec, "final_output": expected.model_validate(spec["final_output"])}

        return handle

    return {kind: handler(kind, spec) for kind, spec in scenario["error_handlers"].items()}
