/** @file Timing of completions beside the bare batch: 20 clients at once of a queue and of a server, and a short request beside long ones. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { GREEDY, Stepper } from '../src/decoding/index.js';
import { build } from '../src/hparams/index.js';
import { compileOptions } from '../src/runs/options.js';
import { Completion } from '../src/trained/completion.js';
import { RowQueue } from '../src/trained/decodeQueue.js';
import { type GenerateOptions, generationOf } from '../src/trained/generation.js';
import { serve, type TrainedRun } from '../src/trained/index.js';
import { readMeasured } from './flags.js';
import { gptModel, initialParams } from './gptJob.js';
import { median } from './results.js';

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'small' },
    precision: { type: 'string', default: 'f32' },
    rows: { type: 'string', default: '8' },
    clients: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '5' },
    tokens: { type: 'string', default: '100' },
    prompt: { type: 'string', default: '16' },
    engine: { type: 'string', default: 'auto' },
    threads: { type: 'string', default: String(availableParallelism()) },
  },
});
const { shape, precision, engine } = readMeasured(flags);
const { rows, clients, rounds, tokens, prompt } = Object.fromEntries(
  (['rows', 'clients', 'rounds', 'tokens', 'prompt'] as const).map((name) => [name, Number(flags[name])]),
) as Record<'rows' | 'clients' | 'rounds' | 'tokens' | 'prompt', number>;
const seqlen = shape.context;
const model = build(gptModel(shape, precision));
const params = initialParams(model);
const options = {
  ...{ model, params, rows, seqlen, mayDraw: () => true },
  compileOptions: (name: string) => compileOptions({ engine, numThreads: Number(flags.threads) }, name),
};

const queue = new RowQueue(options);
await queue.prepare();

const all: Completion[] = [];

/** A completion of so many tokens, greedily drawn. No two prompts of a round begin alike, unless `first` does. */
function completionOf(length: number, options: number | GenerateOptions, first = all.length): Completion {
  const ids = Int32Array.from({ length }, (_, i) => (i * 7919 + first) % model.vocabSize);
  const decoder = { take: (id: number) => ` ${id}`, rest: () => '' };
  const given = typeof options === 'number' ? { maxTokens: options } : options;
  const settings = generationOf({ temperature: 0, topK: 0, topP: null, seed: 0 }, given);
  const completion = new Completion(ids, settings, {
    ...{ decoder, rule: GREEDY, endIds: new Set(), enqueue: queue.add },
  });
  all.push(completion);
  return completion;
}

/** Milliseconds until the completion has ended. */
async function timed(completion: Completion): Promise<number> {
  const began = performance.now();
  queue.add(completion);
  await completion.ended;
  return performance.now() - began;
}

const bare = await Stepper.create({ ...options, rule: null });

/** Milliseconds of a step of all rows at once, halfway in the tokens that are drawn, and of CPU time. */
async function bareStep(): Promise<{ readonly ms: number; readonly cpu: number }> {
  const ids = new Int32Array(rows).fill(1);
  const [began, before] = [performance.now(), process.cpuUsage()];
  for (let step = prompt; step < prompt + tokens; step++) await bare.extendStep(ids, step);
  const { user, system } = process.cpuUsage(before);
  return { ms: (performance.now() - began) / tokens, cpu: (user + system) / 1000 / tokens };
}

/** CPU time of the main thread so far, ms. */
const mainThreadMs = () =>
  Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;

/** What clients get of all rows. */
interface Rate {
  readonly perSecond: number;
  /** CPU time of all threads a token, and of the main one, ms. */
  readonly cpu: number;
  readonly main: number;
}

/** Measures while a completion of so many tokens is drawn. */
async function rateWhile(run: () => Promise<unknown>): Promise<Rate> {
  const drawn = () => all.reduce((sum, completion) => sum + completion.tokens, 0);
  const [before, began, cpu, main] = [drawn(), performance.now(), process.cpuUsage(), mainThreadMs()];
  await run();
  const [count, ms] = [drawn() - before, performance.now() - began];
  const { user, system } = process.cpuUsage(cpu);
  return {
    perSecond: (count * 1000) / ms,
    cpu: (user + system) / 1000 / count,
    main: (mainThreadMs() - main) / count,
  };
}

/** Clients of a server, in a process of their own, with all rows taken. */
async function served(): Promise<Rate> {
  const begin = async (text: string, given: GenerateOptions) =>
    completionOf(prompt, { ...given, maxTokens: given.maxTokens! }, text.charCodeAt(0) * 31 + all.length);
  const run = { name: 'served', step: 1, continuesText: true, maxTokens: seqlen, begin, load: queue.load };
  const server = await serve(run as unknown as TrainedRun, {
    ...{ host: 'localhost', port: 0, maxBody: 1 << 16, maxWaiting: 100, log: console.error },
  });
  const script = join(import.meta.dirname, 'servedClients.ts');
  const child = spawn(
    process.execPath,
    [...process.execArgv, script, server.url, `${clients}`, `${tokens}`],
    {
      stdio: 'inherit',
    },
  );
  const ended = new Promise((resolve) => child.once('close', resolve));
  while (all.reduce((sum, { tokens: own }) => sum + own, 0) < rows * tokens) await sleep(5);
  const rate = await rateWhile(() => sleep(1000));
  child.kill();
  await ended;
  await server.close(0);
  all.length = 0;
  return rate;
}

/** Clients of the queue that each have one completion after the other, with all rows taken. */
async function together(): Promise<Rate> {
  let isEnded = false;
  const client = async () => {
    // Rows end one after the other, as they do where lengths differ.
    for (let i = 0; !isEnded; i++)
      await timed(completionOf(prompt, i === 0 ? 1 + Math.ceil(Math.random() * tokens) : tokens));
  };
  const running = Array.from({ length: clients }, client);
  const steps = async (count: number) => timed(completionOf(prompt, count));
  await steps(tokens / 4);
  const rate = await rateWhile(() => steps(tokens));
  isEnded = true;
  for (const completion of all) if (completion.finishReason === undefined) completion.cancel();
  await Promise.all(running);
  all.length = 0;
  return rate;
}

/** Milliseconds to the first tokens of short requests, one after the other, beside one client's long text. */
async function firstTokens(): Promise<number[]> {
  const long = completionOf(prompt, seqlen - prompt - 1);
  const ends = timed(long);
  const firsts: number[] = [];
  for (let i = 0; i < 8; i++) firsts.push(await timed(completionOf(8, 1)));
  long.cancel();
  await ends;
  return firsts;
}

await timed(completionOf(prompt, 4));
await bareStep();
/** Of a round, in which other work on the machine is the same for all. */
interface Round {
  readonly step: number;
  readonly stepCpu: number;
  readonly queue: Rate;
  readonly server: Rate;
  readonly firsts: readonly number[];
}
const measured: Round[] = [];
for (let round = 0; round < rounds; round++) {
  const before = await bareStep();
  const [ofQueue, ofServer, firsts] = [await together(), await served(), await firstTokens()];
  const after = await bareStep();
  const [step, stepCpu] = [(before.ms + after.ms) / 2, (before.cpu + after.cpu) / 2];
  measured.push({ step, stepCpu, queue: ofQueue, server: ofServer, firsts });
}
// A prompt of most of the context, new and again.
const lengthOfLong = Math.floor(0.9 * seqlen);
const longPrompts = { fresh: [] as number[], again: [] as number[] };
for (let i = 0; i < 5; i++) {
  longPrompts.fresh.push(await timed(completionOf(lengthOfLong, 1, i + 1)));
  longPrompts.again.push(await timed(completionOf(lengthOfLong, 1, i + 1)));
}
await bare.dispose();
await queue.dispose();

const middle = (value: (round: Round) => number) => median(measured.map(value));
const firsts = measured.flatMap((round) => round.firsts);
const bareMs = middle(({ step }) => step);
const inSteps = middle(({ step, firsts: own }) => median(own) / step);
const of = (value: number, digits = 1) => value.toFixed(digits);
const rateOf = (name: 'queue' | 'server'): string => {
  const share = middle((round) => (round[name].perSecond * round.step) / rows / 10);
  const cpu = middle((round) => (100 * round.stepCpu) / rows / round[name].cpu);
  const main = middle((round) => round[name].main * rows);
  return (
    `${clients} clients of the ${name}, ${tokens} tokens behind ${prompt}: ${of(middle((round) => round[name].perSecond))} tokens/s, ` +
    `${of(share)} % of the bare batch, ${of(cpu)} % by CPU time; main thread ${of(main, 2)} ms of CPU time a step`
  );
};
console.log(
  [
    `${flags.shape}, ${precision}, ${rows} rows, ${flags.threads} threads`,
    `bare step of all rows: ${of(bareMs)} ms, ${of(middle(({ stepCpu }) => stepCpu))} of CPU time, ${of((rows * 1000) / bareMs)} tokens/s`,
    rateOf('queue'),
    rateOf('server'),
    `first token of a short request beside a long one: median ${of(median(firsts))} ms, ${of(inSteps, 2)} steps; most ${of(Math.max(...firsts))} ms`,
    `first token behind ${lengthOfLong} tokens: ${of(median(longPrompts.fresh))} ms, and ${of(median(longPrompts.again))} ms where they are known`,
    `each round: ${measured.map(({ step, queue: own, firsts: all }) => `${of(step)} ms, ${of((own.perSecond * step) / rows / 10)} %, ${of(median(all) / step, 2)}`).join('; ')}`,
  ].join('\n'),
);
process.exit();
