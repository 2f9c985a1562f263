/** @file Trained runs: continuations with their settings, predictions, checkpoints, and what they refuse. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { nativeTools } from '../../src/compiler/index.js';
import type { Decodable } from '../../src/decoding/index.js';
import type { Batch } from '../../src/inputs/index.js';
import { loadRun, type TrainedRun } from '../../src/trained/index.js';
import { project, temporaryDirectory } from '../command.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { type Decoded, tinyRun } from './tinyRun.js';

let directory: string;
let decoded: Decoded[];
let run: TrainedRun;

beforeAll(async () => {
  ({ directory, decoded } = await tinyRun());
  run = await loadRun(directory);
  return () => run.dispose();
});

/** A copy of the run whose record was edited. */
function edited(replace: (text: string) => string): string {
  const copy = join(temporaryDirectory(), 'run');
  cpSync(directory, copy, { recursive: true });
  const path = join(copy, 'experiment.json');
  writeFileSync(path, replace(readFileSync(path, 'utf8')));
  return copy;
}

test('a run without further settings continues prompts as decode mode did', async () => {
  expect([run.name, run.step, run.maxTokens]).toEqual(['tiny.Tiny', 200, 24]);
  expect(decoded.length).toBe(2);
  for (const { prefix, decoded_substr } of decoded) expect(await run.generate(prefix)).toBe(decoded_substr);
  const { prefix, decoded_substr } = decoded[0]!;
  expect(await run.generate(prefix, { maxTokens: 5 })).toBe(decoded_substr.slice(0, 5));
});

test('a long prompt is encoded by a thread, and refused by its bytes where these cannot fit', async () => {
  await expect(run.begin('x'.repeat(3000))).rejects.toThrow(
    'The prompt has 3000 bytes; prompt and continuation together have 24 tokens at most, so expected 23 bytes or fewer.',
  );
  const long = await loadRun(edited((text) => text.replaceAll(/"seqlen": 24\b/g, '"seqlen": 9000')));
  const prompt = 'é1 '.repeat(1000);
  expect((await long.begin(prompt)).promptIds).toEqual(long.stream(prompt).promptIds);
  await long.dispose();
});

test('a batch beyond memory is refused with the bytes that it would take', async () => {
  const large = await loadRun(directory, { batchSize: 1_000_000_000 });
  await expect(large.prepare()).rejects.toThrow(
    /^The batch size is 1,000,000,000: the keys, values and logits of as many texts of 24 tokens would take [\d,]+ bytes, and there are [\d,]+ bytes of memory\. Set a smaller batchSize \(--batch_size\)\.$/,
  );
  await large.dispose();
});

test('caches of 8 bits are chosen where the run is loaded', async () => {
  const rounded = await loadRun(directory, { cacheBits: 8 });
  const states = Object.values((rounded.task.model as unknown as Decodable).initialDecodeState(1, 24));
  expect(states.filter(({ roundedTo }) => roundedTo === 'int8').length).toBe(states.length / 2);
  const { prefix } = decoded[0]!;
  expect((await rounded.generate(prefix, { maxTokens: 8 })).length).toBe(8);
  await rounded.dispose();
  await expect(loadRun(directory, { cacheBits: 4 as never })).rejects.toThrow(
    'loadRun: cacheBits: expected 8, or none, got 4.',
  );
});

test('a run that is disposed of ends its continuations with an error', async () => {
  const one = await loadRun(directory);
  await one.prepare();
  const refused = expect(one.generate('1 ')).rejects.toThrow(
    'The run was disposed of before the continuation had ended.',
  );
  await one.dispose();
  await refused;
});

test('a seed decides on what is drawn, and pieces are its text', async () => {
  const options = { temperature: 2, topK: 20, topP: 0.9, maxTokens: 12, seed: 7 };
  const text = await run.generate('one two ', options);
  const pieces: string[] = [];
  const completion = run.stream('one two ', options);
  for await (const piece of completion) pieces.push(piece);
  expect(pieces).toEqual([...text]);
  expect(text.length).toBe(12);
  expect([completion.tokens, completion.finishReason]).toEqual([12, 'length']);
  expect(await run.generate('one two ', { ...options, seed: 8 })).not.toBe(text);
});

test('a text ends before the first stop text, and pieces hold its beginning back', async () => {
  const { prefix, decoded_substr } = decoded[0]!;
  // Two that end at one place: the longer one begins first.
  const [short, long] = [decoded_substr.slice(7, 10), decoded_substr.slice(4, 10)];
  const completion = run.stream(prefix, { stop: [short, long] });
  const pieces: string[] = [];
  for await (const piece of completion) pieces.push(piece);
  const firsts = [short, long].map((stop) => decoded_substr.indexOf(stop)).filter((at) => at >= 0);
  const ends = [short, long].map((stop) => decoded_substr.indexOf(stop) + stop.length);
  expect(pieces.join('')).toBe(decoded_substr.slice(0, Math.min(...firsts)));
  expect([completion.tokens, completion.finishReason]).toEqual([Math.min(...ends), 'stop']);
  expect(await run.generate(prefix, { stop: 'nowhere' })).toBe(decoded_substr);
});

test('a batch of several gives each text as alone, whatever waits beside it', async () => {
  const many = await loadRun(directory, { batchSize: 3 });
  const prompts = ['one two ', 'three', 'four five six', 'seven', '8'];
  const options = (i: number) => ({ temperature: 1.2, seed: i });
  const alone: string[] = [];
  for (const [i, prompt] of prompts.entries()) alone.push(await many.generate(prompt, options(i)));
  const together = await Promise.all(prompts.map((prompt, i) => many.generate(prompt, options(i))));
  expect(together).toEqual(alone);
  expect(new Set(alone).size).toBe(5);
  await many.dispose();
});

test('leaving a loop ends its decoding, and what waited goes on', async () => {
  const left = run.stream('182 a');
  for await (const piece of left) {
    expect(piece).toBe('n');
    break;
  }
  expect(left.finishReason).toBe('cancelled');
  expect(left.tokens).toBeLessThan(5);
  expect(await run.generate(decoded[0]!.prefix)).toBe(decoded[0]!.decoded_substr);
  const again = (async () => {
    for await (const _ of left);
  })();
  await expect(again).rejects.toThrow('A continuation is decoded once: ask for another.');
});

test('an abort ends a continuation with its reason, before or while it is read', async () => {
  const aborting = new AbortController();
  const pieces: string[] = [];
  const reading = async () => {
    for await (const piece of run.stream('182 a', {}, aborting)) {
      pieces.push(piece);
      aborting.abort(new Error('enough'));
    }
  };
  await expect(reading()).rejects.toThrow('enough');
  expect(pieces).toHaveLength(1);
  await expect(run.generate('182 a', {}, aborting)).rejects.toThrow('enough');
  expect(await run.generate('182 a')).toContain(pieces[0]);
  expect(run.load.busy).toBe(0);
});

test('options and prompts that do not fit are refused at the call', () => {
  const stream = run.stream.bind(run);
  expect(() => stream('a', { temperature: -1 })).toThrow(/^Generation\.temperature.* -1/);
  expect(() => stream('a', { topp: 1 } as object)).toThrow(/'topp'.*topP/s);
  expect(() => stream('')).toThrow(
    'The prompt is empty: the model continues text, and needs a token to begin with.',
  );
  expect(() => stream('x'.repeat(24))).toThrow(
    'The prompt has 24 tokens; prompt and continuation together have 24 at most, so expected 23 or fewer.',
  );
});

const ids = { shape: [2, 16], dtype: 'int32' as const, data: Int32Array.from({ length: 32 }, (_, i) => i) };

test('predictions are those that the arrays of a batch suffice for, of any number of rows', async () => {
  const found = await run.predict({ ids });
  expect(Object.keys(found)).toEqual(['logits', 'perExampleArgmax']);
  expect(found.logits).toMatchObject({ shape: [2, 16, 256], dtype: 'float32' });
  expect(found.perExampleArgmax).toMatchObject({ shape: [2, 16], dtype: 'int32' });
  const one = await run.predict({ ids: { ...ids, shape: [1, 16], data: ids.data.slice(16) } });
  expect(one.logits!.data).toEqual(found.logits!.data.slice(16 * 256));
  const weights = { shape: [2, 16], dtype: 'float32' as const, data: new Float32Array(32).fill(1) };
  const all = await run.predict({ ids, labels: ids, weights });
  expect(all.logits!.data).toEqual(found.logits!.data);
  expect(Object.keys(all)).toContain('perExampleXent');
});

test.runIf(hasCompiler)(
  'a run multiplies bfloat16 as its training did, whatever this machine prefers',
  async () => {
    const logits: unknown[] = [];
    for (const products of ['bf16 instructions', 'float32 instructions'] as const) {
      const recorded = edited((text) => {
        const { machine, ...record } = JSON.parse(text);
        const model = record.config.configs.find(
          (config: { class: string }) => config.class === 'LanguageModel',
        );
        model.values.fpropDtype = 'bfloat16';
        return JSON.stringify({ ...record, machine: { ...machine, bfloat16Products: products } });
      });
      const served = await loadRun(recorded, { engine: 'native' });
      logits.push((await served.predict({ ids })).logits!.data);
      await served.dispose();
    }
    // By the instruction, pairs are added first.
    if ((await nativeTools())!.kernels.includes('avx512bf16')) expect(logits[0]).not.toEqual(logits[1]);
    else expect(logits[0]).toEqual(logits[1]);
  },
);

test.each<[string, Batch, string]>([
  ['no arrays', {}, 'predict: the batch has no arrays.'],
  [
    'an unknown array',
    { ids, label: ids },
    "predict: the batches of training have no 'label'. Did you mean 'labels'? They have: ids, labels, paddings, weights.",
  ],
  [
    'another length',
    { ids: { ...ids, shape: [4, 8] } },
    "predict: 'ids' is int32[4,8]; expected int32[rows,16].",
  ],
  [
    'another number of rows',
    { ids, labels: { ...ids, shape: [1, 16] } },
    "predict: 'labels' is int32[1,16]; expected int32[rows,16], with 2 rows as 'ids' has.",
  ],
  [
    'other data',
    { ids: { ...ids, data: new Float32Array(32) } },
    "predict: 'ids' is int32[2,16]; expected data of 32 elements in a Int32Array, got 32 in a Float32Array.",
  ],
  [
    'too little',
    { labels: ids },
    "predict: no prediction can be computed from 'labels' alone. Each needs arrays of the batch:\n  logits: ids\n" +
      '  perExampleArgmax: ids\n  perExampleXent: ids, labels\n  totalXent: ids, labels, weights\n' +
      '  avgXent: ids, labels, weights\n  perSequenceXent: ids, labels, weights\n  totalLoss: ids, labels, weights',
  ],
  [
    'an id that the model lacks',
    { ids: { ...ids, data: new Int32Array(32).fill(256) } },
    "predict: input 'batch.ids', element [0,0]: 256 is not one of the 256 rows of float32[256,32], 0 to 255",
  ],
])('a batch is refused that has %s', async (_, batch, message) => {
  const error = await run.predict(batch).catch((error: Error) => error);
  expect((error as Error).message).toContain(message);
});

test('a checkpoint of another step is loaded, and what is not there is told', async () => {
  const earlier = await loadRun(directory, { checkpoint: 196 });
  expect(earlier.step).toBe(196);
  await earlier.dispose();
  await expect(loadRun(directory, { checkpoint: 5 })).rejects.toThrow(
    'no checkpoint for step 5; there are checkpoints for steps 196, 200',
  );
  await expect(loadRun(directory, { batchSize: 0 })).rejects.toThrow(
    'loadRun: batchSize: expected an integer from 1, got 0.',
  );
  const empty = temporaryDirectory();
  await expect(loadRun(empty)).rejects.toThrow(
    `${empty}: expected the directory of a trained run, which has an experiment.json, and there is none. ` +
      'Give the --job_log_dir of luthier train.',
  );
});

test('the module of an experiment is loaded for classes of its own, and found by its name', async () => {
  const own = edited((text) => text.replaceAll('"LanguageModel"', '"Unheard"'));
  const experiments = [join(project, 'experiments')];
  await expect(loadRun(own, { experiments })).rejects.toThrow("No class 'Unheard' is known.");
  const gone = edited((text) =>
    text.replaceAll('"LanguageModel"', '"Unheard"').replace('"tiny.Tiny"', '"gone.Tiny"'),
  );
  await expect(loadRun(gone, { experiments })).rejects.toThrow(/^Could not find experiment 'gone.Tiny'/);
  const damaged = edited(() => '{');
  await expect(loadRun(damaged)).rejects.toThrow(`${damaged}/experiment.json: not the record of a run (`);
});

test('a run without checkpoints is told from one that was trained', async () => {
  const untrained = edited((text) => text);
  rmSync(join(untrained, 'checkpoints'), { recursive: true });
  await expect(loadRun(untrained)).rejects.toThrow(
    `there is none in ${untrained}/checkpoints. Train with --mode=train first`,
  );
});
