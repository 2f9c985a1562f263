/** @file Augmented batches: the same bits at any batch size, number of hosts and after resuming; labels; refusals. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { encode } from 'fast-png';
import { expect, test } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import type { RawImage } from '../../../src/inputs/images/rawImage.js';
import {
  BaseAugmentation,
  type Batch,
  ColorJitter,
  CutMix,
  ImageFolder,
  ImageInput,
  Mixup,
  openInput,
  RandAugment,
  RandomErasing,
  RandomHorizontalFlip,
  RandomResizedCrop,
} from '../../../src/inputs/index.js';
import { temporaryDirectory } from '../../command.js';
import { runs } from '../../faults/campaign.js';

const directory = temporaryDirectory();
const NUM_IMAGES = 11;
for (let i = 0; i < NUM_IMAGES; i++) {
  const [height, width] = [6 + (i % 3), 9 - (i % 4)];
  const data = Uint8Array.from({ length: height * width * 3 }, (_, at) => (i * 37 + at * 11) % 256);
  mkdirSync(join(directory, `${i % 3}`), { recursive: true });
  writeFileSync(join(directory, `${i % 3}`, `${i}.png`), encode({ height, width, channels: 3, data }));
}

type Fields = Partial<Parameters<typeof ImageInput.config>[0]>;
const plain: Fields = {
  source: ImageFolder.config({ directory }),
  ...{ height: 5, width: 4, split: 'all', isTraining: true },
};
const augmented = (): Fields => ({
  ...plain,
  augmentations: [
    RandomResizedCrop.config(),
    RandomHorizontalFlip.config(),
    ColorJitter.config({ brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1 }),
    RandAugment.config({ magnitude: 15 }),
    RandomErasing.config({ probability: 0.3, value: 'random' }),
  ],
  mixings: [Mixup.config({ alpha: 0.4 }), CutMix.config({ probability: 0.7 })],
  ...{ numClasses: 3, inputRandomSeed: 5 },
});
const configOf = (fields: Fields) => ImageInput.config({ height: 5, width: 4, batchSize: 1, ...fields });
const inputOf = (fields: Fields) => build(configOf(fields));

/** The rows of a batch: pixels, then labels. */
const rowsOf = ({ inputs, labels, weights }: Batch): number[][] =>
  Array.from(weights!.data as Float32Array, (_, b) =>
    [inputs!, labels!].flatMap((array) => {
      const data = array.data as Float32Array;
      const size = data.length / (weights!.data as Float32Array).length;
      return [...data.subarray(b * size, (b + 1) * size)];
    }),
  );

/** The first rows, three epochs of them, one at a time. */
const expected: Promise<number[][]> = (async () => {
  const input = inputOf(augmented());
  const rows: number[][] = [];
  for (let i = 0; i < 3 * NUM_IMAGES; i++) rows.push(...rowsOf(await input.getNext()));
  return rows;
})();

test('any batch size, any number of hosts, resumed after any batch: the same rows to the bit', async () => {
  const all = await expected;
  const cases = fc.record({
    batchSize: fc.integer({ min: 1, max: 6 }),
    numInfeedHosts: fc.integer({ min: 1, max: 4 }),
    before: fc.nat(2),
    numHostsBefore: fc.integer({ min: 1, max: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ batchSize, numInfeedHosts, before, numHostsBefore }) => {
      const first = inputOf({ ...augmented(), batchSize: 2, numInfeedHosts: numHostsBefore });
      for (let i = 0; i < before; i++) await first.getNext();
      const start = before * 2 * numHostsBefore;
      for (let infeedHostIndex = numInfeedHosts - 1; infeedHostIndex >= 0; infeedHostIndex--) {
        const host = inputOf({ ...augmented(), batchSize, numInfeedHosts, infeedHostIndex });
        host.setState(first.getState());
        const rows = rowsOf(await host.getNext());
        const at = start + infeedHostIndex * batchSize;
        const wanted = all.slice(at, at + batchSize);
        expect(rows.slice(0, wanted.length)).toEqual(wanted);
      }
    }),
    { numRuns: runs(25, 6) },
  );
});

test('a thread that reads ahead gives the same rows', async () => {
  const input = openInput(configOf({ ...augmented(), batchSize: 4, prefetchBatches: 2 }));
  const rows: number[][] = [];
  for (let i = 0; i < 4; i++) rows.push(...rowsOf(await input.getNext()));
  await input.close();
  expect(rows).toEqual((await expected).slice(0, 16));
});

test('epochs and seeds differ, numbers are from 0 to 1, and shares of classes sum to 1', async () => {
  const all = await expected;
  expect(new Set(all.map((row) => row.join())).size).toBe(all.length);
  const shares = all.map((row) => row.slice(-3));
  for (const share of shares) expect(share.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 6);
  expect(shares.filter((share) => Math.max(...share) < 0.999).length).toBeGreaterThan(5);
  for (const row of all) expect(Math.min(...row) >= 0 && Math.max(...row) <= 1).toBe(true);
  const other = rowsOf(await inputOf({ ...augmented(), inputRandomSeed: 6, batchSize: 33 }).getNext());
  expect(other.filter((row) => all.some((known) => known.join() === row.join()))).toEqual([]);
});

test('evaluations are augmented where they say so', async () => {
  const evaluation = { ...augmented(), isTraining: false, batchSize: NUM_IMAGES };
  const [bare, asIs] = await Promise.all(
    [{ ...plain, isTraining: false, numClasses: 3, batchSize: NUM_IMAGES }, evaluation].map((fields) =>
      inputOf(fields).getNext(),
    ),
  );
  expect(asIs).toEqual(bare);
  expect([...(bare!.labels!.data as Float32Array)].every((share) => share === 0 || share === 1)).toBe(true);
  const changed = inputOf({ ...evaluation, augmentsEvaluation: true });
  const first = await changed.getNext();
  expect(first).not.toEqual(bare);
  changed.reset();
  expect(await changed.getNext()).toEqual(first);
});

test('mean and std of each channel', async () => {
  const shifted = await inputOf({ ...plain, mean: [0.5, 0, 0.25], std: [0.5, 1, 2], batchSize: 2 }).getNext();
  const bare = await inputOf({ ...plain, batchSize: 2 }).getNext();
  const wanted = Array.from(
    bare.inputs!.data as Float32Array,
    (x, i) => (x - [0.5, 0, 0.25][i % 3]!) / [0.5, 1, 2][i % 3]!,
  );
  for (const [i, x] of (shifted.inputs!.data as Float32Array).entries()) expect(x).toBeCloseTo(wanted[i]!, 6);
});

/** Cuts off the last row. */
class Shorter extends BaseAugmentation {
  override apply(image: RawImage): RawImage {
    return { ...image, height: image.height - 1, data: image.data.subarray(0, -3 * image.width) };
  }
}

test('what cannot be is refused with the reason', async () => {
  const errorOf = async (fields: Fields): Promise<string> => {
    try {
      await inputOf({ ...plain, ...fields }).getNext();
      return 'none';
    } catch (error) {
      return (error as Error).message.split('\n')[0]!;
    }
  };
  expect(
    await errorOf({ augmentations: [RandomHorizontalFlip.config(), RandomResizedCrop.config()] }),
  ).toContain(
    "ImageInput 'train': RandomResizedCrop takes images at the size of their files, so it must be the first of the augmentations.",
  );
  expect(await errorOf({ mixings: [Mixup.config()] })).toContain(
    "ImageInput 'train': mixed images belong to two classes, which an id cannot express. Set numClasses: labels are then the " +
      'shares of the classes, [batchSize, numClasses].',
  );
  expect(await errorOf({ mean: [0.5] })).toContain(
    "ImageInput 'train': expected as many numbers in mean as channels, 3; got 1.",
  );
  expect(await errorOf({ std: [1, 0, 1] })).toContain(
    "ImageInput 'train': expected std above 0, got [1, 0, 1].",
  );
  expect(await errorOf({ numClasses: 2, batchSize: NUM_IMAGES })).toBe(
    "ImageInput 'train': an image has class 2, and numClasses 2 allows 0 to 1.",
  );
  expect(await errorOf({ augmentations: [Shorter.config()] })).toBe(
    "ImageInput 'train': Shorter made an image of 4 × 4 × 3, and the batch has 5 × 4 × 3.",
  );
});
