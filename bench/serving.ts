/** @file Timing of a queue of completions beside the bare batch: 20 clients at once, and a short request beside long ones. */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { GREEDY, Stepper } from '../src/decoding/index.js';
import { build } from '../src/hparams/index.js';
import { compileOptions } from '../src/runs/options.js';
import { Completion } from '../src/trained/completion.js';
import { RowQueue } from '../src/trained/decodeQueue.js';
import { generationOf } from '../src/trained/generation.js';
import { readMeasured } from './flags.js';
import { gptModel, initialParams } from './gptJob.js';
import { median } from './results.js';

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'small' },
    precision: { type: 'string', default: 'f32' },
    rows: { type: 'string', default: '8' },
    clients: { type: 'string', default: '20' },
    requests: { type: 'string', default: '3' },
    tokens: { type: 'string', default: '100' },
    prompt: { type: 'string', default: '16' },
    engine: { type: 'string', default: 'auto' },
  },
});
const { shape, precision, engine } = readMeasured(flags);
const { rows, clients, requests, tokens, prompt } = Object.fromEntries(
  (['rows', 'clients', 'requests', 'tokens', 'prompt'] as const).map((name) => [name, Number(flags[name])]),
) as Record<'rows' | 'clients' | 'requests' | 'tokens' | 'prompt', number>;
const seqlen = shape.context;
const model = build(gptModel(shape, precision));
const params = initialParams(model);
const options = {
  ...{ model, params, rows, seqlen, mayDraw: () => true },
  compileOptions: (name: string) => compileOptions({ engine, numThreads: availableParallelism() }, name),
};

const queue = new RowQueue(options);
await queue.prepare();

/** A completion of so many tokens, greedily drawn. */
function completionOf(length: number, maxTokens: number): Completion {
  const ids = Int32Array.from({ length }, (_, i) => (i * 7919) % model.vocabSize);
  const decoder = { take: () => '', rest: () => '' };
  const settings = generationOf({ temperature: 0, topK: 0, topP: null, seed: 0 }, { maxTokens });
  return new Completion(ids, settings, { decoder, rule: GREEDY, endIds: new Set(), enqueue: queue.add });
}

/** Milliseconds until the completion has ended. */
async function timed(completion: Completion): Promise<number> {
  const began = performance.now();
  queue.add(completion);
  await completion.ended;
  return performance.now() - began;
}

/** Milliseconds of a step of all rows at once, halfway in the tokens that are drawn. */
async function bareStep(): Promise<number> {
  const stepper = await Stepper.create({ ...options, rule: null });
  const ids = new Int32Array(rows).fill(1);
  const times: number[] = [];
  for (let step = prompt; step < prompt + tokens; step++) {
    const began = performance.now();
    await stepper.extendStep(ids, step);
    times.push(performance.now() - began);
  }
  await stepper.dispose();
  return median(times);
}

await timed(completionOf(prompt, 4));
const bareMs = await bareStep();
const began = performance.now();
const client = async () => {
  for (let i = 0; i < requests; i++) await timed(completionOf(prompt, tokens));
};
await Promise.all(Array.from({ length: clients }, client));
const togetherSeconds = (performance.now() - began) / 1000;
const perSecond = (clients * requests * tokens) / togetherSeconds;

// One client's long text, and short requests beside it.
const long = completionOf(prompt, seqlen - prompt - 1);
const longEnds = timed(long);
const firsts: number[] = [];
for (let i = 0; i < 15; i++) firsts.push(await timed(completionOf(8, 1)));
long.cancel();
await longEnds;
await queue.dispose();

const of = (value: number, digits = 1) => value.toFixed(digits);
console.log(
  [
    `${flags.shape}, ${precision}, ${rows} rows, ${availableParallelism()} threads`,
    `bare step of all rows: ${of(bareMs)} ms, ${of((rows * 1000) / bareMs)} tokens/s`,
    `${clients} clients, ${tokens} tokens behind ${prompt}: ${of(perSecond)} tokens/s, ${of((perSecond * bareMs) / rows / 10)} % of the bare batch`,
    `first token of a short request beside a long one: median ${of(median(firsts))} ms, ${of(median(firsts) / bareMs, 2)} steps; most ${of(Math.max(...firsts))} ms`,
  ].join('\n'),
);
