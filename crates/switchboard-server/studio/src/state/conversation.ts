/** An open conversation: its record, its turns, the run under way, and the recordings of its runs. */

import { api, ApiError, errorText, type RunStream } from "../api/client";
import type {
  Conversation, Entry, JsonObject, MessageInput, Recording, Row, RunEvent, Turn, Waiting,
} from "../api/types";
import { LiveRun } from "../logic/live";
import { partsOfEntries, type Part } from "../logic/transcript";
import { loadWaiting, onChange, server } from "./server";
import { refreshList } from "./conversations";
import { openConversation } from "./router";
import { Store } from "./store";

const PAGE = 300;

export interface RecordedRun {
  recording: Recording;
  rows: Row[];
  seq: number;
  loaded: boolean;
}

/** Watches one conversation. `changed` is told of everything. */
export class OpenConversation {
  readonly changed = new Store(0);
  head: Conversation | null = null;
  entries: Entry[] = [];
  more = false;
  turns: Turn[] = [];
  live: LiveRun | null = null;
  recordings = new Map<string, RecordedRun>();
  error = "";
  missing = false;
  loading = true;

  private abort = new AbortController();
  private stopWatching: () => void;
  private loadingOlder = false;
  private partsCache: { entries: Entry[]; live: LiveRun | null; serial: number; parts: Part[] } | null = null;
  private storedParts: { entries: Entry[]; graph: unknown; parts: Part[] } | null = null;
  private rowTimer = 0;
  private drawTimer = 0;

  /** Opens a conversation. One that `isNew` is not asked for before its first message. */
  constructor(readonly id: string, isNew = false) {
    this.missing = isNew;
    this.stopWatching = onChange((change) => {
      if (change.kind === "again" && !this.missing) void this.load();
      else if (change.kind === "conversation" && change.id === id) {
        if (change.change === "deleted") {
          this.missing = true;
          this.notify();
        } else if (!this.live) void this.load();
      } else if (change.kind === "run" && change.conversation === id && change.status === "running") this.attach(change.id);
    });
    if (isNew) this.loading = false;
    else if (server.value.status === "ready") void this.load();
  }

  close(): void {
    this.stopWatching();
    this.abort.abort();
    clearTimeout(this.rowTimer);
    clearTimeout(this.drawTimer);
  }

  private notify(): void {
    this.changed.set(this.changed.value + 1);
  }

  /** Draws at most once a frame while events rush in. */
  private notifySoon(): void {
    if (this.drawTimer) return;
    this.drawTimer = window.setTimeout(() => {
      this.drawTimer = 0;
      this.notify();
    }, 16);
  }

  get waiting(): Waiting[] {
    return this.live ? this.live.waiting : (this.head?.waiting ?? []);
  }

  get isRunning(): boolean {
    return this.live?.status === "running";
  }

  get agent(): string | null {
    return this.live?.agent ?? this.head?.agent ?? null;
  }

  get team(): string | null {
    return this.head?.team ?? server.value.team;
  }

  /** Everything there is to show, in order. */
  get parts(): Part[] {
    const graph = server.value.graphs[this.team ?? ""];
    const serial = this.changed.value;
    const cache = this.partsCache;
    if (cache && cache.entries === this.entries && cache.live === this.live && cache.serial === serial) return cache.parts;
    if (this.storedParts?.entries !== this.entries || this.storedParts.graph !== graph) {
      const targets = new Map((graph?.edges ?? []).map((edge) => [`${edge.from}\n${edge.tool}`, edge.to]));
      const anyTarget = new Map((graph?.edges ?? []).map((edge) => [edge.tool, edge.to]));
      const lookup = (agent: string | null, tool: string): string | null =>
        targets.get(`${agent}\n${tool}`) ?? anyTarget.get(tool) ?? (tool.startsWith("transfer_to_") ? tool.slice(12) : null);
      this.storedParts = { entries: this.entries, graph, parts: partsOfEntries(this.entries, lookup) };
    }
    const parts = this.live ? [...this.storedParts.parts, ...this.live.parts] : this.storedParts.parts;
    this.partsCache = { entries: this.entries, live: this.live, serial, parts };
    return parts;
  }

  async load(): Promise<void> {
    try {
      const head = await api.conversation(this.id, PAGE);
      this.take(head);
      this.missing = false;
      this.error = "";
      if (head.running && !this.live) this.attach(head.running);
      await Promise.all([this.loadTurns(), this.loadRecordings()]);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.missing = true;
      else this.error = errorText(error);
    }
    this.loading = false;
    this.notify();
  }

  /** Merges the newest page of the record with the older entries that are loaded. */
  private take(head: Conversation): void {
    const first = head.items[0]?.position ?? 0;
    const last = this.entries[this.entries.length - 1]?.position ?? -1;
    const joins = this.entries.length > 0 && last + 1 >= first;
    const older = joins ? this.entries.filter((entry) => entry.position < first) : [];
    const keepsOlder = older.length > 0;
    this.entries = [...older, ...head.items];
    this.more = keepsOlder ? this.more : head.more;
    this.head = head;
  }

  /** Loads older entries: one page, or all back to a position. */
  async loadOlder(to?: number): Promise<void> {
    if (this.loadingOlder) return;
    this.loadingOlder = true;
    try {
      while (this.more && this.entries.length > 0) {
        const before = this.entries[0]!.position;
        if (to !== undefined && before <= to) break;
        const page = await api.conversation(this.id, to === undefined ? PAGE : 1000, before);
        this.entries = [...page.items, ...this.entries];
        this.more = page.more;
        if (to === undefined) break;
      }
    } catch (error) {
      this.error = errorText(error);
    }
    this.loadingOlder = false;
    this.notify();
  }

  /** Reads all turns: a message that was sent again takes back those that came after it. */
  private async loadTurns(): Promise<void> {
    const turns: Turn[] = [];
    let after: number | null = null;
    do {
      const page: { turns: Turn[]; next: number | null } = await api.turns(this.id, after);
      turns.push(...page.turns);
      after = page.next;
    } while (after !== null && turns.length < 20_000);
    this.turns = turns;
  }

  async loadRecordings(): Promise<void> {
    if (!server.value.info?.recording) return;
    const { recordings } = await api.recordings(this.id);
    const next = new Map<string, RecordedRun>();
    for (const recording of recordings) {
      const known = this.recordings.get(recording.run);
      next.set(recording.run, known ? { ...known, recording } : { recording, rows: [], seq: 0, loaded: false });
    }
    this.recordings = next;
    for (const recording of recordings.slice(-3)) void this.loadRows(recording.run);
  }

  /** Loads the rows of a recording, or those that have changed. */
  async loadRows(run: string): Promise<void> {
    const known = this.recordings.get(run);
    if (!known) return;
    try {
      const rows = new Map(known.rows.map((row) => [row.id, row]));
      let answer: Awaited<ReturnType<typeof api.rows>>;
      if (known.loaded) {
        answer = await api.changedRows(run, known.seq);
        for (const row of answer.rows) rows.set(row.id, row);
      } else {
        let after = 0;
        for (;;) {
          answer = await api.rows(run, after);
          for (const row of answer.rows) rows.set(row.id, row);
          if (answer.next === null) break;
          after = answer.next;
        }
      }
      const sorted = [...rows.values()].sort((a, b) => a.id - b.id);
      this.recordings.set(run, { recording: answer.recording, rows: sorted, seq: answer.seq, loaded: true });
      this.recordings = new Map(this.recordings);
      this.notify();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }

  /** Reads the rows of the run under way, at most four times a second. */
  private rowsSoon(run: string): void {
    if (this.rowTimer || !server.value.info?.recording) return;
    this.rowTimer = window.setTimeout(async () => {
      this.rowTimer = 0;
      if (!this.recordings.has(run)) {
        const recording = { run, started: Date.now(), ended: null, status: "running", rows: 0, tokens: null, cost: null, dropped: 0 };
        this.recordings.set(run, { recording, rows: [], seq: 0, loaded: false });
      }
      await this.loadRows(run);
    }, 250);
  }

  private attach(run: string): void {
    if (this.live) return;
    this.follow(new LiveRun(run), async (signal) => api.attach(run, signal));
  }

  /** Follows a run to its end, and then reads what was stored. */
  private follow(live: LiveRun, begin: (signal: AbortSignal) => Promise<RunStream>): void {
    this.live = live;
    this.error = "";
    this.notify();
    void (async () => {
      let failed = "";
      let run = "";
      try {
        const stream = await begin(this.abort.signal);
        run = stream.run;
        this.runId = run;
        const elsewhere = stream.conversation !== null && stream.conversation !== this.id;
        if (elsewhere) {
          this.live = null;
          void refreshList();
          openConversation(stream.conversation);
          return;
        }
        for await (const event of stream.events) {
          live.apply({ ...(JSON.parse(event.data) as RunEvent), type: event.type });
          this.notifySoon();
          this.rowsSoon(stream.run);
        }
      } catch (error) {
        if (this.abort.signal.aborted) return;
        failed = errorText(error);
      }
      this.runId = null;
      const kept = live.parts.filter((part) => part.kind === "note" && part.level === "error");
      await this.load();
      if (this.recordings.has(run)) await this.loadRows(run);
      this.live = null;
      if (failed) this.error = failed;
      else if (kept.length > 0 && live.error) this.error = live.error;
      this.notify();
      void loadWaiting();
      void refreshList();
    })();
  }

  private runId: string | null = null;

  send(input: MessageInput, start: { team?: string; agent?: string; context?: JsonObject } = {}): void {
    if (this.isRunning) return;
    const live = new LiveRun("new");
    live.showInput(typeof input === "string" ? input : (input as unknown as JsonObject[]));
    this.follow(live, (signal) => api.send(this.id, { input, ...start }, signal));
  }

  /** Sends the message at a position again, changed or not: in a copy, or in this conversation. */
  resend(position: number, input: MessageInput | undefined, inPlace: boolean): void {
    if (this.isRunning) return;
    const body = { position, in_place: inPlace, ...(input === undefined ? {} : { input }) };
    if (inPlace) this.entries = this.entries.filter((entry) => entry.position < position);
    const live = new LiveRun("again");
    if (input !== undefined && inPlace) live.showInput(typeof input === "string" ? input : (input as unknown as JsonObject[]));
    this.follow(live, (signal) => api.resend(this.id, body, signal));
  }

  decide(decisions: { call_id: string; approve: boolean; message?: string; always?: boolean }[]): void {
    this.follow(new LiveRun("decided"), (signal) => api.decide(this.id, decisions, signal));
  }

  answer(body: { person?: string; text?: string; hand_to?: string; hand_back?: boolean; note?: string }): void {
    this.follow(new LiveRun("answered"), (signal) => api.answer(this.id, body, signal));
  }

  async stop(): Promise<void> {
    const run = this.runId;
    if (run) await api.cancel(run).catch((error: unknown) => { this.error = errorText(error); });
  }

  /** Shows an error, or none. */
  fail(error: string): void {
    this.error = error;
    this.notify();
  }

  /** Opens a conversation for one decision or answer: it is closed once the run has ended. */
  static forOneRun(id: string): OpenConversation {
    const conversation = new OpenConversation(id);
    let hasBegun = false;
    conversation.changed.subscribe(() => {
      hasBegun ||= conversation.live !== null;
      if (hasBegun && conversation.live === null) conversation.close();
    });
    return conversation;
  }
}
