/** A value that views watch. */

import { useLayoutEffect, useReducer, useRef } from "preact/hooks";

export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (Object.is(value, this.current)) return;
    this.current = value;
    this.notify();
  }

  update(change: Partial<T>): void {
    this.set({ ...this.current, ...change });
  }

  /** Tells the views, also if the value was changed in place. */
  notify(): void {
    for (const listener of [...this.listeners]) listener();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** The value of a store, or a part of it; the view is drawn again when that part changes. */
export function useStore<T>(store: Store<T>): T;
export function useStore<T, S>(store: Store<T>, select: (value: T) => S): S;
export function useStore<T, S>(store: Store<T>, select: (value: T) => S = (value) => value as unknown as S): S {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const selected = select(store.value);
  const last = useRef(selected);
  last.current = selected;
  const selector = useRef(select);
  selector.current = select;
  useLayoutEffect(() => {
    const check = (): void => {
      if (!Object.is(selector.current(store.value), last.current)) redraw(0);
    };
    check();
    return store.subscribe(check);
  }, [store]);
  return selected;
}
