/**
 * @file Prompt lookup beside greedy decoding of the same text: of a run on prompts from code, or of random weights, whose drafts are
 * taken as far as a text of code repeats itself, as if the model would write that text.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { prngKey } from '../src/compiler/index.js';
import {
  GREEDY,
  GreedyDecoder,
  PromptLookupDecoder,
  Stepper,
  type StepperOptions,
} from '../src/decoding/index.js';
import { lookedUp } from '../src/decoding/promptLookupDecoder.js';
import { build } from '../src/hparams/index.js';
import { resolveFiles } from '../src/inputs/index.js';
import { compileOptions } from '../src/runs/options.js';
import { loadRun } from '../src/trained/index.js';
import { readMeasured } from './flags.js';
import { gptModel, initialParams } from './gptJob.js';
import { median } from './results.js';

const { values: flags } = parseArgs({
  options: {
    run: { type: 'string' },
    files: { type: 'string', default: 'src/decoding/*.ts' },
    shape: { type: 'string', default: 'small' },
    precision: { type: 'string', default: 'f32' },
    engine: { type: 'string', default: 'native' },
    drafts: { type: 'string', default: '4,8,12' },
    prompt: { type: 'string', default: '256' },
    tokens: { type: 'string', default: '250' },
    prompts: { type: 'string', default: '8' },
    threads: { type: 'string', default: '1' },
  },
});
const GPT2 = { layers: 12, heads: 12, width: 768, context: 512, batch: 1, vocabulary: 50257, steps: 1 };
const [prompt, tokens, count] = [flags.prompt, flags.tokens, flags.prompts].map(Number) as [
  number,
  number,
  number,
];
const drafts = flags.drafts.split(',').map(Number);
const engineOptions = (name: string) =>
  compileOptions({ engine: 'native', numThreads: Number(flags.threads) }, name);
const texts = resolveFiles([flags.files])
  .map(({ path }) => readFileSync(path))
  .filter(({ length }) => length > prompt + tokens)
  .slice(0, count);

/** CPU time of a call, ms, and its result. */
async function cpu<T>(run: () => Promise<T>): Promise<{ ms: number; result: T }> {
  const before = process.cpuUsage();
  const result = await run();
  const { user, system } = process.cpuUsage(before);
  return { ms: (user + system) / 1000, result };
}

/** Greedy decoding of a run beside lookup by drafts of each size. */
async function ofRun(directory: string): Promise<void> {
  const run = await loadRun(directory, {});
  const { model } = run.task;
  const seqlen = prompt + tokens;
  const base = {
    model,
    params: run.params,
    rows: 1,
    seqlen,
    compileOptions: engineOptions,
  } as unknown as StepperOptions;
  const inputs = await Promise.all(texts.map((text) => run.encode(text.subarray(0, prompt).toString())));
  const prompts = inputs.map((ids) => ({
    prefixIds: { shape: [1, ids.length], dtype: 'int32' as const, data: ids },
    prefixLengths: { shape: [1], dtype: 'int32' as const, data: Int32Array.of(ids.length) },
  }));
  const greedy = build(GreedyDecoder.config({ seqlen, eosId: [] }));
  const plain = await Stepper.create({ ...base, rule: GREEDY });
  const timed = async (
    stepper: Stepper,
    decoder: GreedyDecoder | PromptLookupDecoder,
    given: (typeof prompts)[0],
  ) => {
    stepper.reset();
    return cpu(() => decoder.decode({ ...given, ...stepper.calls, key: prngKey(0) }));
  };
  for (const numDraftTokens of drafts) {
    const lookup = build(PromptLookupDecoder.config({ seqlen, eosId: [], numDraftTokens }));
    const stepper = await Stepper.create({ ...base, rule: null, draftTokens: numDraftTokens });
    let calls = 0;
    const { extendDrafts, extendRows } = stepper;
    const counted =
      <A extends unknown[], R>(call: (...args: A) => R) =>
      (...args: A): R => {
        calls++;
        return call(...args);
      };
    Object.assign(stepper, { extendDrafts: counted(extendDrafts), extendRows: counted(extendRows) });
    const ratios: number[] = [];
    const perCall: number[] = [];
    for (let round = 0; round < 3; round++)
      for (const given of prompts) {
        const before = await timed(plain, greedy, given);
        calls = 0;
        const now = await timed(stepper, lookup, given);
        const same = now.result.outputIds.data.join() === before.result.outputIds.data.join();
        if (!same) throw new Error('the texts differ');
        if (round === 0) continue;
        ratios.push(before.ms / now.ms);
        perCall.push(tokens / calls);
      }
    console.log(
      `drafts of ${numDraftTokens}: ${median(ratios).toFixed(2)} times as fast (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}), ` +
        `${median(perCall).toFixed(2)} tokens a call`,
    );
    await stepper.dispose();
  }
}

/** Tokens a call where a model writes the rest of each text, and the cost of a call beside a step. */
async function ofShape(): Promise<void> {
  const shape = flags.shape === 'gpt2' ? GPT2 : readMeasured(flags).shape;
  const { precision } = readMeasured({ ...flags, shape: 'small' });
  const model = build(gptModel(shape, precision));
  const params = initialParams(model);
  const base = { model, params, rows: 1, seqlen: shape.context, compileOptions: engineOptions };
  const plain = await Stepper.create({ ...base, rule: GREEDY });
  const at = shape.context >> 1;
  const least = async (run: () => Promise<unknown>) => {
    const all: number[] = [];
    for (let i = 0; i < 30; i++) all.push((await cpu(run)).ms);
    return all.sort((a, b) => a - b)[3]!;
  };
  const step = await least(() => plain.extendDrawing(Int32Array.of(1), at, 1));
  for (const most of drafts) {
    const stepper = await Stepper.create({ ...base, rule: null, draftTokens: most });
    const call = await least(() => stepper.extendDrafts(new Int32Array(most + 1), Int32Array.of(at)));
    console.log(
      `drafts of ${most}: ${call.toFixed(2)} ms, ${(call / step).toFixed(2)} steps of ${step.toFixed(2)} ms`,
    );
  }
}

/** Tokens a call where a model writes the rest of each text. */
function ofTexts(ids: readonly (readonly number[])[]): void {
  for (const most of drafts) {
    const perCall = ids.map((all) => {
      let calls = 0;
      let at = prompt;
      for (; at < all.length; calls++) {
        const draft = lookedUp(all.slice(0, at), 3, most);
        let same = 0;
        while (same < draft.length && draft[same] === all[at + same]) same++;
        at += same + 1;
      }
      return (at - prompt) / calls;
    });
    console.log(`drafts of ${most}: ${median(perCall).toFixed(2)} tokens a call of code`);
  }
}

if (flags.run !== undefined) await ofRun(flags.run);
else {
  ofTexts(texts.map((text) => [...text.subarray(0, 4000)]));
  await ofShape();
}
process.exit();
