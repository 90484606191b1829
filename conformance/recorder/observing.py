"""Hooks that write into a log, and a collector of spans."""

from __future__ import annotations

from typing import Any

from agents import Agent, AgentHooks, RunHooks
from agents.tracing import TracingProcessor

from serializing import output_value

Log = list[dict[str, Any]]

SPANS = ("agent", "handoff", "function", "guardrail")


class LoggingHooks(RunHooks):
    """Logs the calls of run hooks."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def entry(self, hook: str, **fields: Any) -> None:
        self.log.append({"run_hook": hook, **fields})

    async def on_agent_start(self, context, agent):
        self.entry("agent_start", agent=agent.name)

    async def on_agent_end(self, context, agent, output):
        self.entry("agent_end", agent=agent.name, output=output_value(output))

    async def on_llm_start(self, context, agent, system_prompt, input_items):
        self.entry("llm_start", agent=agent.name)

    async def on_llm_end(self, context, agent, response):
        self.entry("llm_end", agent=agent.name)

    async def on_tool_start(self, context, agent, tool):
        self.entry("tool_start", agent=agent.name, tool=tool.name)

    async def on_tool_end(self, context, agent, tool, result):
        self.entry("tool_end", agent=agent.name, tool=tool.name)

    async def on_handoff(self, context, from_agent, to_agent):
        self.entry("handoff", **{"from": from_agent.name, "to": to_agent.name})


class LoggingAgentHooks(AgentHooks):
    """Logs the calls of the hooks of one agent."""

    def __init__(self, log: Log, of: str) -> None:
        self.log = log
        self.of = of

    def entry(self, hook: str, **fields: Any) -> None:
        self.log.append({"agent_hook": hook, "of": self.of, **fields})

    async def on_start(self, context, agent):
        self.entry("start")

    async def on_end(self, context, agent, output):
        self.entry("end")

    async def on_handoff(self, context, agent: Agent, source: Agent):
        self.entry("handoff", to=agent.name, source=source.name)


class SpanCollector(TracingProcessor):
    """Collects the spans that are recorded, in the order in which they start."""

    def __init__(self) -> None:
        self.started: list[Any] = []

    def take(self) -> list[dict[str, Any]]:
        """The collected spans as trees. Spans of other kinds are left out."""
        spans, self.started = self.started, []
        by_id = {span.span_id: span for span in spans}
        trees: dict[str | None, list[dict[str, Any]]] = {}
        kept = [span for span in spans if span.span_data.type in SPANS]
        for span in kept:
            trees[span.span_id] = []
        roots: list[dict[str, Any]] = []
        for span in kept:
            tree = {**span_fields(span), "children": trees[span.span_id]}
            parent = by_id.get(span.parent_id)
            while parent is not None and parent.span_id not in trees:
                parent = by_id.get(parent.parent_id)
            (roots if parent is None else trees[parent.span_id]).append(tree)
        return roots

    def on_span_start(self, span):
        self.started.append(span)

    def on_span_end(self, span):
        pass

    def on_trace_start(self, trace):
        pass

    def on_trace_end(self, trace):
        pass

    def shutdown(self):
        pass

    def force_flush(self):
        pass


def span_fields(span: Any) -> dict[str, Any]:
    """The fields of a span that cases have."""
    data = span.span_data
    fields: dict[str, Any] = {"type": data.type}
    if data.type == "agent":
        fields |= {
            "name": data.name,
            "handoffs": data.handoffs or [],
            "tools": data.tools or [],
            "output_type": data.output_type,
        }
    elif data.type == "handoff":
        fields["from_agent"] = data.from_agent
        if data.to_agent is not None:
            fields["to_agent"] = data.to_agent
    elif data.type == "function":
        fields["name"] = data.name
    else:
        fields |= {"name": data.name, "triggered": data.triggered}
    if span.error is not None:
        fields["error"] = span.error["message"]
        requested = (span.error.get("data") or {}).get("requested_agents")
        if requested is not None:
            fields["requested_agents"] = requested
    return fields
