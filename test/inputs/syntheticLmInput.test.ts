import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { type LmBatch, type PackedLmBatch, SyntheticLmInput } from '../../src/inputs/index.js';
import { readAll, take } from './corpus.js';

const base = { seqLen: 16, vocabSize: 50, batchSize: 4, isTraining: true };

test('synthetic tokens fill every place, and labels are the ids one further', async () => {
  const batch = (await build(SyntheticLmInput.config(base)).getNext()) as LmBatch;
  expect(batch.ids.shape).toEqual([4, 16]);
  expect(batch.ids.data.every((id) => id >= 0 && id < 50)).toBe(true);
  expect(new Set(batch.ids.data).size).toBeGreaterThan(20);
  expect([...batch.labels.data.slice(0, 15)]).toEqual([...batch.ids.data.slice(1, 16)]);
  expect(batch.weights.data.every((weight) => weight === 1)).toBe(true);
  expect(batch.paddings.data.every((padding) => padding === 0)).toBe(true);
});

test('packed, a row is one segment with positions from 0, and its tokens are the same', async () => {
  const packed = build(SyntheticLmInput.config({ ...base, packed: true }));
  const { segmentIds, segmentPos, ...rest } = (await packed.getNext()) as PackedLmBatch;
  expect(rest).toEqual(await build(SyntheticLmInput.config(base)).getNext());
  expect([segmentIds.shape, segmentPos.shape]).toEqual([
    [4, 16],
    [4, 16],
  ]);
  expect(new Set(segmentIds.data)).toEqual(new Set([1]));
  const positions = Array.from({ length: 16 }, (_, t) => t);
  expect([...segmentPos.data]).toEqual([...positions, ...positions, ...positions, ...positions]);
});

test('synthetic data repeats with the seed, is split over hosts, ends where told, and resumes', async () => {
  const whole = await take(build(SyntheticLmInput.config(base)), 6);
  expect(await take(build(SyntheticLmInput.config(base)), 6)).toEqual(whole);
  expect(await take(build(SyntheticLmInput.config({ ...base, inputRandomSeed: 1 })), 6)).not.toEqual(whole);
  const second = build(
    SyntheticLmInput.config({ ...base, batchSize: 2, numInfeedHosts: 2, infeedHostIndex: 1 }),
  );
  expect((await take(second, 1))[0]!.ids.data).toEqual(whole[0]!.ids.data.slice(32));
  const input = build(SyntheticLmInput.config({ ...base, numBatches: 3, isTraining: false }));
  expect((await readAll(input)).length).toBe(3);
  const resumed = build(SyntheticLmInput.config(base));
  resumed.setState(input.getState());
  expect(await take(resumed, 3)).toEqual(whole.slice(3));
});

test('an input without text says so', () => {
  const input = build(SyntheticLmInput.config({ ...base, name: 'noise' }));
  expect(() => input.idsToStrings({ shape: [1, 1], data: [0] })).toThrow(
    "Input 'noise' has no text, so its ids have no strings.",
  );
});
