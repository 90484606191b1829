/** Markdown as elements. Text of models never becomes markup that runs: the tree has known nodes only. */

import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { type Block, type Inline, parseMarkdown } from "../logic/markdown";

export function Markdown({ text }: { text: string }): VNode {
  const blocks = useMemo(() => parseMarkdown(text), [text]);
  return <div class="markdown">{blocks.map(block)}</div>;
}

function block(node: Block): VNode {
  switch (node.kind) {
    case "paragraph":
      return <p>{node.content.map(inline)}</p>;
    case "heading":
      // Not a heading of the page: those of a message would break the order of its own.
      return <p class={`heading heading-${Math.min(node.level, 4)}`}>{node.content.map(inline)}</p>;
    case "code":
      return (
        <pre tabIndex={0} aria-label={node.language || "code"}>
          <code>{node.text}</code>
        </pre>
      );
    case "quote":
      return <blockquote>{node.content.map(block)}</blockquote>;
    case "list": {
      const items = node.items.map((item) => <li>{item.map((child) => tight(child, item.length))}</li>);
      return node.ordered ? <ol start={node.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return (
        <div class="table" tabIndex={0} role="region" aria-label="table">
          <table>
            <thead>
              <tr>
                {node.head.map((cell) => (
                  <th scope="col">{cell.map(inline)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {node.rows.map((row) => (
                <tr>
                  {row.map((cell) => (
                    <td>{cell.map(inline)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr />;
  }
}

/** The paragraph of a short item of a list has no space around it. */
function tight(child: Block, siblings: number): VNode | VNode[] {
  return child.kind === "paragraph" && siblings <= 2 ? <>{child.content.map(inline)}</> : block(child);
}

function inline(node: Inline): VNode | string {
  switch (node.kind) {
    case "text":
      return node.text;
    case "code":
      return <code>{node.text}</code>;
    case "strong":
      return <strong>{node.content.map(inline)}</strong>;
    case "emphasis":
      return <em>{node.content.map(inline)}</em>;
    case "deleted":
      return <del>{node.content.map(inline)}</del>;
    case "link":
      return (
        <a href={node.href} target="_blank" rel="noopener noreferrer nofollow">
          {node.content.map(inline)}
        </a>
      );
    case "break":
      return <br />;
  }
}
