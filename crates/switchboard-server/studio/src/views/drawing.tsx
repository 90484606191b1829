/** The team as a drawing, laid out by the service: agents, handoffs with their conditions and guards, and the way that a conversation took. */

import type { VNode } from "preact";
import type { Graph, GraphAgent, GraphEdge } from "../api/types";
import type { Move } from "../logic/path";
import { agentClass } from "../parts/basics";
import { useTexts } from "../state/settings";

interface Props {
  graph: Graph;
  active: string | null;
  moves: Move[];
  selected: string | null;
  onAgent: (agent: string) => void;
  onEdge: (edge: GraphEdge) => void;
}

interface Trail {
  /** The places of this edge in the order of all handoffs, from 1. */
  order: number[];
  refused: number;
  reason: string | null;
  isLast: boolean;
}

export function Drawing({ graph, active, moves, selected, onAgent, onEdge }: Props): VNode {
  const t = useTexts();
  const trails = trailsOf(moves);
  const findingsOf = (agent: GraphAgent): number =>
    graph.findings.filter((finding) => finding.agent === agent.name && finding.severity !== "note").length;
  const withGuards = graph.edges.filter((edge) => edge.guardrails.length > 0 || edge.needs_approval !== "never");
  return (
    <svg
      class="drawing"
      viewBox={`0 0 ${graph.width} ${graph.height}`}
      role="group"
      aria-label={t.drawing}
      preserveAspectRatio="xMidYMid meet"
    >
      <defs>
        <marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">
          <path d="M0 0.5 7.5 4 0 7.5z" class="head" />
        </marker>
      </defs>
      {graph.edges.map((edge, index) => (
        <Edge key={`${edge.from}-${edge.to}-${index}`} edge={edge} trail={trails.get(`${edge.from}\n${edge.to}`)} onClick={() => onEdge(edge)} />
      ))}
      {graph.agents.map((agent) => (
        <Agent
          key={agent.name}
          agent={agent}
          isActive={agent.name === active}
          isSelected={agent.name === selected}
          findings={findingsOf(agent)}
          onClick={() => onAgent(agent.name)}
        />
      ))}
      {graph.agents.map((agent) => (
        <AgentText key={agent.name} agent={agent} isActive={agent.name === active} findings={findingsOf(agent)} />
      ))}
      {graph.edges.map((edge, index) => (
        <EdgeText key={index} edge={edge} />
      ))}
      {graph.edges.map((edge, index) => {
        const trail = trails.get(`${edge.from}\n${edge.to}`);
        return trail ? <Badge key={index} edge={edge} trail={trail} /> : null;
      })}
      {withGuards.map((edge, index) => (
        <Guard key={index} edge={edge} />
      ))}
    </svg>
  );
}

function trailsOf(moves: Move[]): Map<string, Trail> {
  const trails = new Map<string, Trail>();
  let order = 0;
  moves.forEach((move, index) => {
    const key = `${move.from}\n${move.to}`;
    const trail = trails.get(key) ?? { order: [], refused: 0, reason: null, isLast: false };
    if (move.taken) {
      order += 1;
      trail.order.push(order);
    } else {
      trail.refused += 1;
      trail.reason = move.reason;
    }
    trail.isLast = index === moves.length - 1;
    trails.set(key, trail);
  });
  return trails;
}

function Agent(props: { agent: GraphAgent; isActive: boolean; isSelected: boolean; findings: number; onClick: () => void }): VNode {
  const t = useTexts();
  const { agent, isActive, isSelected, findings } = props;
  const label = [[...agent.lines, ...agent.tools].join(" "), agent.is_person ? t.person : "", isActive ? t.hasIt : "", findings > 0 ? "!" : ""]
    .filter(Boolean)
    .join(", ");
  const corner = 9;
  return (
    <g
      class={`drawn-agent ${agentClass(agent.name)} ${isActive ? "active" : ""} ${isSelected ? "selected" : ""}`}
      role="button"
      tabindex={0}
      aria-label={label}
      aria-pressed={isSelected}
      data-agent={agent.name}
      onClick={props.onClick}
      onKeyDown={(event) => activate(event, props.onClick)}
    >
      {isActive && <rect class="glow" x={agent.x - 5} y={agent.y - 5} width={agent.width + 10} height={agent.height + 10} rx={corner + 4} />}
      {agent.is_person ? (
        <path class="box" d={hexagon(agent)} />
      ) : (
        <rect class="box" x={agent.x} y={agent.y} width={agent.width} height={agent.height} rx={corner} />
      )}
      {agent.is_start && <circle class="start-mark" cx={agent.x} cy={agent.y + agent.height / 2} r="4" />}
    </g>
  );
}

/** The words of an agent's box. They are not part of the button, whose label has them in one piece. */
function AgentText({ agent, isActive, findings }: { agent: GraphAgent; isActive: boolean; findings: number }): VNode {
  const middle = agent.x + agent.width / 2;
  const height = agent.lines.length * 17 + agent.tools.length * 13;
  const top = agent.y + (agent.height - height) / 2 + 13;
  return (
    <g class={`drawn-text ${isActive ? "active" : ""}`} aria-hidden="true">
      {agent.lines.map((line, index) => (
        <text key={line} class="drawn-name" x={middle} y={top + index * 17}>
          {line}
        </text>
      ))}
      {agent.tools.map((tool, index) => (
        <text key={tool} class="drawn-tool" x={middle} y={top + agent.lines.length * 17 - 2 + index * 13}>
          {tool}
        </text>
      ))}
      {findings > 0 && (
        <g class="finding-mark">
          <circle cx={agent.x + agent.width} cy={agent.y} r="8" />
          <text x={agent.x + agent.width} y={agent.y + 4}>!</text>
        </g>
      )}
    </g>
  );
}

function hexagon({ x, y, width, height }: GraphAgent): string {
  const cut = Math.min(14, height / 2);
  return `M${x + cut} ${y}H${x + width - cut}L${x + width} ${y + height / 2}L${x + width - cut} ${y + height}H${x + cut}L${x} ${y + height / 2}Z`;
}

function Edge({ edge, trail, onClick }: { edge: GraphEdge; trail: Trail | undefined; onClick: () => void }): VNode {
  const t = useTexts();
  const state = trail ? (trail.order.length > 0 ? "taken" : "refused") : "plain";
  const isTool = edge.kind === "agent_as_tool";
  const facts = [
    edge.condition ? t.ifCondition(edge.condition) : "",
    edge.guardrails.length > 0 ? `${t.guardrails}: ${edge.guardrails.join(", ")}` : "",
    edge.needs_approval !== "never" ? t.needsApproval(edge.needs_approval) : "",
    trail && trail.order.length > 0 ? t.takenAs(trail.order.join(", ")) : "",
    trail && trail.refused > 0 ? `${t.refusedTimes(trail.refused)} ${trail.reason ?? ""}` : "",
  ].filter(Boolean);
  const drawn = edge.label.map((line) => line.text).join(" ");
  const label = [`${edge.from} ${isTool ? t.asks : "→"} ${edge.to}`, drawn, ...facts].filter(Boolean).join("; ");
  return (
    <g
      class={`drawn-edge ${agentClass(edge.to)} ${state} ${edge.is_conditional ? "conditional" : ""} ${trail?.isLast ? "last" : ""}`}
      role="button"
      tabindex={0}
      aria-label={label}
      data-edge={`${edge.from}>${edge.to}`}
      onClick={onClick}
      onKeyDown={(event) => activate(event, onClick)}
    >
      <title>{label}</title>
      <path class="hit" d={edge.path} />
      <path class="line" d={edge.path} marker-end={isTool ? undefined : "url(#head)"} />
    </g>
  );
}

function EdgeText({ edge }: { edge: GraphEdge }): VNode {
  return (
    <g class="drawn-text" aria-hidden="true">
      {edge.label.map((line, index) => (
        <text key={index} class="drawn-label" x={line.x} y={line.y} text-anchor={line.ends_at_x ? "end" : "start"}>
          {line.text}
        </text>
      ))}
    </g>
  );
}

/** The order of the handoffs on an edge, in the middle of its line. */
function Badge({ edge, trail }: { edge: GraphEdge; trail: Trail }): VNode {
  const [x, y] = middleOf(edge.path);
  const taken = trail.order.length > 0;
  const text = taken ? shortOrder(trail.order) : "✕";
  const width = Math.max(18, 10 + text.length * 6.5);
  return (
    <g class={`order ${agentClass(edge.to)} ${taken ? "" : "refused"}`} aria-hidden="true">
      <rect x={x - width / 2} y={y - 9} width={width} height="18" rx="9" />
      <text x={x} y={y + 4}>{text}</text>
    </g>
  );
}

function shortOrder(order: number[]): string {
  return order.length <= 3 ? order.join(",") : `${order[0]}…${order[order.length - 1]}`;
}

/** A shield on edges with guardrails or approvals, near their beginning. */
function Guard({ edge }: { edge: GraphEdge }): VNode {
  const [x, y] = pointOn(edge.path, 0.2);
  return (
    <g class="guard" aria-hidden="true" transform={`translate(${x - 7} ${y - 7})`}>
      <path d="M7 0.5 12.5 2.5v4.5c0 3.5-2.5 5.5-5.5 6.5C4 12.5 1.5 10.5 1.5 7V2.5z" />
    </g>
  );
}

function activate(event: KeyboardEvent, action: () => void): void {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  action();
}

const points = new Map<string, [number, number]>();

/** The point at a share of the length of a path, as the browser measures it. */
function pointOn(path: string, share: number): [number, number] {
  const key = `${share} ${path}`;
  let point = points.get(key);
  if (!point) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", "path");
    element.setAttribute("d", path);
    const { x, y } = element.getPointAtLength(element.getTotalLength() * share);
    point = [x, y];
    if (points.size > 2000) points.clear();
    points.set(key, point);
  }
  return point;
}

function middleOf(path: string): [number, number] {
  return pointOn(path, 0.5);
}
