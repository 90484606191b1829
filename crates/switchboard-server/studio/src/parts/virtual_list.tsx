/** A long list of which only the visible rows are in the page. Rows may have any height. */

import type { ComponentChildren, VNode } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";
import { RowHeights } from "../logic/heights";

export interface VirtualListHandle {
  scrollTo(row: number, where?: "start" | "nearest"): void;
  scrollToEnd(): void;
}

interface Props {
  count: number;
  /** The identifier of a row; a list whose first identifier changes has got rows at its beginning. */
  rowKey: (row: number) => string;
  render: (row: number) => ComponentChildren;
  estimate: number;
  class?: string;
  label: string;
  /** Keeps the end in view while rows are added, unless the reader has scrolled away. */
  followEnd?: boolean;
  role?: "list" | "listbox" | "log" | "grid" | "feed";
  handle?: { current: VirtualListHandle | null };
  onNearStart?: () => void;
  onNearEnd?: () => void;
  tabIndex?: number;
  onKeyDown?: (event: KeyboardEvent) => void;
  activeDescendant?: string | undefined;
  /** Content after the last row, inside the scrolled area. */
  footer?: ComponentChildren;
}

const OVERSCAN = 6;
/** The distance from an end, in pixels, at which more rows are asked for, and within which the end is followed. */
const NEAR = 80;

export function VirtualList(props: Props): VNode {
  const { count, rowKey, estimate } = props;
  const box = useRef<HTMLDivElement>(null);
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const state = useRef({
    heights: new RowHeights(count, estimate),
    first: count > 0 ? rowKey(0) : "",
    top: 0,
    view: 600,
    atEnd: true,
    /** A correction of the position that the next layout makes. */
    shift: 0,
  }).current;

  // Rows that were added at the beginning must not move what the reader looks at.
  const firstKey = count > 0 ? rowKey(0) : "";
  if (firstKey !== state.first && state.first !== "" && count > state.heights.length) {
    let added = 0;
    while (added < count && rowKey(added) !== state.first) added += 1;
    if (added < count) {
      state.heights.prepend(added);
      // At the very top of a list, what is new comes into view.
      if (props.followEnd || state.top > 4) state.shift += state.heights.offset(added);
    } else {
      state.heights = new RowHeights(count, estimate);
    }
  } else if (firstKey !== state.first) {
    state.heights = new RowHeights(count, estimate);
    state.atEnd = props.followEnd ?? false;
    state.top = 0;
  }
  state.first = firstKey;
  state.heights.resize(count);

  // The observer is made once; it reads the rows of the latest drawing.
  const keyOf = useRef<(row: number) => string | undefined>(() => undefined);
  keyOf.current = (row) => (row < count ? rowKey(row) : undefined);
  const observer = useRef<ResizeObserver | null>(null);
  observer.current ??= new ResizeObserver((entries) => {
    let changed = false;
    for (const entry of entries) {
      const element = entry.target as HTMLElement;
      if (element === box.current) {
        if (element.clientHeight !== state.view) changed = true;
        state.view = element.clientHeight;
        continue;
      }
      const row = Number(element.dataset.row);
      const height = entry.borderBoxSize[0]?.blockSize ?? element.offsetHeight;
      if (height === 0 || element.dataset.key !== keyOf.current(row)) continue;
      const top = state.heights.offset(row);
      const difference = state.heights.measure(row, height);
      if (difference === 0) continue;
      changed = true;
      if (top + height < state.top) state.shift += difference;
    }
    if (changed) redraw(0);
  });

  const observed = useRef(new WeakSet<Element>()).current;
  useEffect(() => {
    const element = box.current!;
    observer.current!.observe(element);
    return () => observer.current!.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = box.current!;
    if (props.followEnd && state.atEnd) {
      element.scrollTop = element.scrollHeight;
    } else if (state.shift !== 0) {
      element.scrollTop += state.shift;
    }
    state.shift = 0;
    state.top = element.scrollTop;
    for (const row of element.querySelectorAll<HTMLElement>(":scope > div > [data-row]")) {
      // Observing a row a second time would measure it again.
      if (observed.has(row)) continue;
      observed.add(row);
      observer.current!.observe(row);
    }
  });

  const handle: VirtualListHandle = {
    scrollTo(row, where = "start") {
      const element = box.current;
      if (!element) return;
      const top = state.heights.offset(row);
      const bottom = top + state.heights.height(row);
      if (where === "nearest") {
        if (top < element.scrollTop) element.scrollTop = top;
        else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
      } else {
        element.scrollTop = top;
      }
      state.atEnd = false;
      state.top = element.scrollTop;
      redraw(0);
    },
    scrollToEnd() {
      state.atEnd = true;
      redraw(0);
    },
  };
  if (props.handle) props.handle.current = handle;

  const onScroll = (): void => {
    const element = box.current;
    // An event that comes after the list has left the page.
    if (!element) return;
    state.top = element.scrollTop;
    const rest = element.scrollHeight - element.clientHeight - element.scrollTop;
    state.atEnd = rest < NEAR;
    if (element.scrollTop < NEAR * 4) props.onNearStart?.();
    if (rest < NEAR * 8) props.onNearEnd?.();
    redraw(0);
  };

  const [from, to] = state.heights.range(state.top, state.view, OVERSCAN);
  const isList = props.role === undefined || props.role === "list";
  const rows: VNode[] = [];
  for (let row = from; row < to; row += 1) {
    const key = rowKey(row);
    rows.push(
      <div
        key={key}
        data-row={row}
        data-key={key}
        class="virtual-row"
        style={{ transform: `translateY(${state.heights.offset(row)}px)` }}
        {...(isList ? { role: "listitem", "aria-setsize": count, "aria-posinset": row + 1 } : { role: "presentation" })}
      >
        {props.render(row)}
      </div>,
    );
  }
  return (
    <div
      ref={box}
      class={`virtual ${props.class ?? ""}`}
      onScroll={onScroll}
      tabIndex={props.tabIndex ?? 0}
      role={isList ? "list" : props.role}
      aria-label={props.label}
      aria-activedescendant={props.activeDescendant}
      onKeyDown={props.onKeyDown}
    >
      <div class="virtual-space" role="presentation" style={{ height: `${state.heights.total}px` }}>
        {rows}
      </div>
      {props.footer}
    </div>
  );
}
