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
    rounds: { type: 'string', default: '5' },
    tokens: { type: 'string', default: '100' },
    prompt: { type: 'string', default: '16' },
    engine: { type: 'string', default: 'auto' },
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
  compileOptions: (name: string) => compileOptions({ engine, numThreads: availableParallelism() }, name),
};

const queue = new RowQueue(options);
await queue.prepare();

const all: Completion[] = [];

/** A completion of so many tokens, greedily drawn. No two prompts of a round begin alike, unless `first` does. */
function completionOf(length: number, maxTokens: number, first = all.length): Completion {
  const ids = Int32Array.from({ length }, (_, i) => (i * 7919 + first) % model.vocabSize);
  const decoder = { take: () => '', rest: () => '' };
  const settings = generationOf({ temperature: 0, topK: 0, topP: null, seed: 0 }, { maxTokens });
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

/** Milliseconds of a step of all rows at once, halfway in the tokens that are drawn. */
async function bareStep(): Promise<number> {
  const ids = new Int32Array(rows).fill(1);
  const began = performance.now();
  for (let step = prompt; step < prompt + tokens; step++) await bare.extendStep(ids, step);
  return (performance.now() - began) / tokens;
}

/** Tokens a second of clients that each have one completion after the other, with all rows taken. */
async function together(): Promise<number> {
  let isEnded = false;
  const client = async () => {
    // Rows end one after the other, as they do where lengths differ.
    for (let i = 0; !isEnded; i++)
      await timed(completionOf(prompt, i === 0 ? 1 + Math.ceil(Math.random() * tokens) : tokens));
  };
  const drawn = () => all.reduce((sum, completion) => sum + completion.tokens, 0);
  const running = Array.from({ length: clients }, client);
  const steps = async (count: number) => timed(completionOf(prompt, count));
  await steps(tokens / 4);
  const [before, began] = [drawn(), performance.now()];
  await steps(tokens);
  const perSecond = ((drawn() - before) * 1000) / (performance.now() - began);
  isEnded = true;
  for (const completion of all) if (completion.finishReason === undefined) completion.cancel();
  await Promise.all(running);
  all.length = 0;
  return perSecond;
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
// Other work on the machine is the same for all three of a round.
const measured: { readonly step: number; readonly perSecond: number; readonly firsts: readonly number[] }[] =
  [];
for (let round = 0; round < rounds; round++) {
  const before = await bareStep();
  const perSecond = await together();
  const firsts = await firstTokens();
  measured.push({ step: (before + (await bareStep())) / 2, perSecond, firsts });
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

const middle = (value: (round: (typeof measured)[number]) => number) => median(measured.map(value));
const firsts = measured.flatMap((round) => round.firsts);
const bareMs = middle(({ step }) => step);
const share = middle(({ step, perSecond }) => (perSecond * step) / rows / 10);
const inSteps = middle(({ step, firsts: own }) => median(own) / step);
const of = (value: number, digits = 1) => value.toFixed(digits);
console.log(
  [
    `${flags.shape}, ${precision}, ${rows} rows, ${availableParallelism()} threads`,
    `bare step of all rows: ${of(bareMs)} ms, ${of((rows * 1000) / bareMs)} tokens/s`,
    `${clients} clients, ${tokens} tokens behind ${prompt}: ${of(middle((round) => round.perSecond))} tokens/s, ${of(share)} % of the bare batch`,
    `first token of a short request beside a long one: median ${of(median(firsts))} ms, ${of(inSteps, 2)} steps; most ${of(Math.max(...firsts))} ms`,
    `first token behind ${lengthOfLong} tokens: ${of(median(longPrompts.fresh))} ms, and ${of(median(longPrompts.again))} ms where they are known`,
    `each round: ${measured.map(({ step, perSecond, firsts: own }) => `${of(step)} ms, ${of((perSecond * step) / rows / 10)} %, ${of(median(own) / step, 2)}`).join('; ')}`,
  ].join('\n'),
);
