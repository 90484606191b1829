// OpenAI's Agents SDK for JavaScript. `peer.mjs CASE SECONDS [URL]` prints what a case cost.

import { readFileSync } from 'node:fs';
import { setImmediate as tick } from 'node:timers/promises';
import {
  Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, Usage, handoff, setTraceProcessors, setTracingDisabled,
} from '@openai/agents';
import { removeAllTools } from '@openai/agents-core/extensions';
import OpenAI from 'openai';

const INPUT = 'My bill is wrong';
const SECOND = 'You handle bills.';
const PARKED = 1000;
// V8 makes machine code of what it has seen often.
const WARM_RUNS = 1000;
const WARM_SECONDS = 3;

/** Hands off along a chain of agents and then answers. */
class Script {
  constructor(handoffs, wait, keepsRequests) {
    const names = handoffs === 1
      ? ['transfer_to_Billing']
      : Array.from({ length: handoffs }, (_, n) => `transfer_to_Agent_${n + 1}`);
    this.answers = [...names.map(call), message()];
    this.next = 0;
    this.wait = wait;
    this.kept = keepsRequests ? [] : undefined;
  }

  async getResponse(request) {
    this.kept?.push(request);
    const first = request.handoffs.length > 0;
    let answer;
    if (!this.wait) {
      answer = this.answers[this.next++ % this.answers.length];
    } else {
      answer = this.answers.at(first ? 0 : -1);
      if (this.wait === 'parks' && !first) await new Promise(() => {});
      await null;
    }
    return { usage: new Usage(), output: [answer] };
  }
}

const call = (name) => ({
  type: 'function_call', id: 'fc_1', callId: `call_${name}`, name, arguments: '{}', status: 'completed',
});
const message = () => ({
  type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Done.' }],
});

/** The history in the SDK's own form. */
function history(items) {
  return JSON.parse(text(items)).map((item) => {
    if (item.type === 'function_call') {
      return { type: 'function_call', callId: item.call_id, name: item.name, arguments: item.arguments, status: 'completed' };
    }
    if (item.type === 'function_call_output') {
      const output = { type: 'text', text: item.output };
      return { type: 'function_call_result', callId: item.call_id, name: 'lookup', status: 'completed', output };
    }
    if (item.role === 'user') return { role: 'user', content: item.content };
    const content = [{ type: 'output_text', text: item.content[0].text }];
    return { type: 'message', role: 'assistant', id: item.id, status: 'completed', content };
  });
}

const text = (items) => readFileSync(`${process.env.BENCH_HISTORIES}/history-${items}.json`, 'utf8');

class Case {
  constructor(name, url) {
    Object.assign(this, { handoffs: 1, items: 0, atOnce: 1, wait: undefined, isStreamed: false, isWire: false });
    const settings = {};
    setTracingDisabled(name !== 'triage_traced');
    const number = Number(name.split('_').at(-1));
    if (name === 'triage_traced') setTraceProcessors([memory()]);
    else if (name.startsWith('chain_')) this.handoffs = number;
    else if (name.startsWith('history_1000')) this.items = 1000;
    else if (name === 'one_at_a_time') this.wait = 'yields';
    else if (name.startsWith('at_once_')) Object.assign(this, { wait: 'yields', atOnce: number });
    else if (name.startsWith('parked_')) Object.assign(this, { wait: 'parks', items: 20 });
    else if (!['triage', 'cold', 'parse_1000'].includes(name)) this.overHttp(name, url);
    if (name.endsWith('_without_tools')) settings.handoffInputFilter = removeAllTools;
    this.model ??= new Script(this.handoffs, this.wait, name.endsWith('_recorded'));
    this.agent = new Agent({ name: this.handoffs === 1 ? 'Billing' : `Agent ${this.handoffs}`, instructions: SECOND });
    for (let n = this.handoffs - 1; n >= 0; n--) {
      const to = this.isWire ? handoff(this.agent, { toolNameOverride: 'transfer_to_billing' }) : this.agent;
      this.agent = new Agent({ name: `Agent ${n}`, instructions: 'Route.', handoffs: [to] });
    }
    this.runner = new Runner({ model: this.model, tracingDisabled: name !== 'triage_traced', ...settings });
    this.input = this.items ? history(this.items) : INPUT;
  }

  overHttp(name, url) {
    const [protocol, form, items, atOnce] = name.split('_');
    Object.assign(this, { isWire: true, isStreamed: form === 'streamed', items: Number(items), atOnce: Number(atOnce.slice(1)) });
    const client = new OpenAI({ baseURL: url, apiKey: 'bench' });
    const Kind = protocol === 'responses' ? OpenAIResponsesModel : OpenAIChatCompletionsModel;
    this.model = new Kind(client, 'm');
  }

  async run(given = this.input) {
    const settings = { maxTurns: this.handoffs + 2 };
    let result;
    if (this.isStreamed) {
      result = await this.runner.run(this.agent, given, { ...settings, stream: true });
      for await (const _ of result) { /* read to its end */ }
      await result.completed;
    } else {
      result = await this.runner.run(this.agent, given, settings);
    }
    if (!result.finalOutput) throw new Error('no output');
    if (this.model.kept) this.model.kept.length = 0;
  }
}

/** Keeps spans in memory. */
function memory() {
  const spans = [];
  return {
    onTraceStart: async () => {},
    onTraceEnd: async () => { spans.length = 0; },
    onSpanStart: async (span) => { spans.push(span); },
    onSpanEnd: async () => {},
    shutdown: async () => {},
    forceFlush: async () => {},
  };
}

const cpu = () => {
  const used = process.cpuUsage();
  return (used.user + used.system) / 1e6;
};

/** Does so many runs; CPU time in seconds and the time of each on the clock. */
async function batch(task, runs) {
  const waits = [];
  const worker = async (count) => {
    for (let n = 0; n < count; n++) {
      const start = performance.now();
      await task.run();
      waits.push(performance.now() - start);
    }
  };
  const start = cpu();
  const each = Math.ceil(runs / task.atOnce);
  const all = (make) => Promise.all(Array.from({ length: task.atOnce }, make));
  if (task.isWire) await all(() => worker(each));
  else if (task.wait) for (let n = 0; n < each; n++) await all(() => task.run());
  else await worker(runs);
  return [cpu() - start, waits];
}

async function measured(name, task, seconds) {
  if (name === 'cold') return task.run().then(() => ({ runs: 1 }));
  if (name === 'parse_1000') return parsed(seconds);
  if (task.wait === 'parks') return parked(name, task);
  let [spent, warm] = [0, 0];
  while (warm < WARM_RUNS && spent < WARM_SECONDS) {
    spent += (await batch(task, task.atOnce))[0];
    warm += task.atOnce;
  }
  const [once] = await batch(task, task.atOnce);
  const runs = Math.ceil(Math.max(1, seconds / (once / task.atOnce)) / task.atOnce) * task.atOnce;
  const [used, waits] = await batch(task, runs);
  const told = { runs, cpu_s: used };
  if (task.isWire) {
    waits.sort((a, b) => a - b);
    const at = (percent) => 1e3 * waits[Math.min(Math.floor(waits.length * percent / 100), waits.length - 1)];
    Object.assign(told, { p50_us: at(50), p99_us: at(99) });
  }
  return told;
}

function parsed(seconds) {
  const given = text(1000);
  for (let n = 0; n < WARM_RUNS; n++) JSON.parse(given);
  const start = cpu();
  let runs = 0;
  for (; cpu() - start < seconds; runs++) JSON.parse(given);
  return { runs, cpu_s: cpu() - start };
}

async function parked(name, task) {
  const park = async (runs) => {
    for (let n = 0; n < runs; n++) task.run(name === 'parked_own' ? history(20) : undefined);
    for (let n = 0; n < 200; n++) await tick();
  };
  await park(10);
  const before = process.memoryUsage.rss();
  await park(PARKED);
  return { runs: PARKED, bytes: Math.round((process.memoryUsage.rss() - before) / PARKED) };
}

const [name, seconds, url] = process.argv.slice(2);
console.log(JSON.stringify(await measured(name, new Case(name, url), Number(seconds))));
process.exit(0);
