/** Server-sent events from a response that `fetch` has got. `EventSource` cannot send the token. */

export interface ServerEvent {
  id: string;
  type: string;
  data: string;
}

/** Parses the bytes of an event stream as they come. */
export class EventParser {
  private buffer = "";
  private id = "";
  private type = "";
  private data: string[] = [];

  /** Takes a piece of the stream. Returns the events that it completes. */
  push(text: string): ServerEvent[] {
    this.buffer += text;
    const events: ServerEvent[] = [];
    let start = 0;
    for (;;) {
      const end = this.lineEnd(start);
      if (!end) break;
      this.line(this.buffer.slice(start, end[0]), events);
      start = end[1];
    }
    this.buffer = this.buffer.slice(start);
    return events;
  }

  /** The end of the line, and the beginning of the next. A CR at the end of the buffer may be half of a CRLF. */
  private lineEnd(start: number): [number, number] | null {
    const feed = this.buffer.indexOf("\n", start);
    const carriage = this.buffer.indexOf("\r", start);
    if (carriage >= 0 && (feed < 0 || carriage < feed)) {
      if (carriage + 1 === this.buffer.length) return null;
      return [carriage, this.buffer[carriage + 1] === "\n" ? carriage + 2 : carriage + 1];
    }
    return feed < 0 ? null : [feed, feed + 1];
  }

  private line(line: string, events: ServerEvent[]): void {
    if (line === "") {
      if (this.data.length > 0) events.push({ id: this.id, type: this.type || "message", data: this.data.join("\n") });
      this.type = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") this.data.push(value);
    else if (field === "event") this.type = value;
    else if (field === "id") this.id = value;
  }
}

/** The events of a body. Ends when the body ends. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncIterable<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
