/** A component that is drawn again only if a property changes. */

import { Component, type ComponentChild, type FunctionComponent } from "preact";

export function memo<P extends object>(render: (props: P) => ComponentChild): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const last = this.props as Record<string, unknown>;
      const fresh = next as Record<string, unknown>;
      const names = new Set([...Object.keys(last), ...Object.keys(fresh)]);
      return [...names].some((name) => !Object.is(last[name], fresh[name]));
    }
    override render(props: P): ComponentChild {
      return render(props);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
