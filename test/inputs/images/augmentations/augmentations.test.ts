/** @file Augmentations of one image: hand-computed results, boxes, shares, identity at no strength, purity. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { prngKey } from '../../../../src/compiler/random/prng.js';
import { build, type Config } from '../../../../src/hparams/index.js';
import { operations } from '../../../../src/inputs/images/augmentations/randAugment.js';
import type { RawImage } from '../../../../src/inputs/images/rawImage.js';
import {
  type BaseAugmentation,
  ColorJitter,
  RandAugment,
  RandomCrop,
  RandomErasing,
  RandomHorizontalFlip,
  RandomResizedCrop,
} from '../../../../src/inputs/index.js';
import { ExampleDraws } from '../../../../src/inputs/seqio/exampleDraws.js';
import { images } from './images.js';

const augmented = (config: Config<BaseAugmentation>, image: RawImage, seed: number): RawImage =>
  build(config).apply(image, new ExampleDraws(prngKey(seed)), image);

/** A grey image whose bytes count from 1. */
const counted = (height: number, width: number): RawImage => ({
  ...{ height, width, channels: 1 },
  data: Uint8Array.from({ length: height * width }, (_, i) => i + 1),
});

const seeds = Array.from({ length: 400 }, (_, seed) => seed);

/** Distinct results over many seeds. */
const results = (config: Config<BaseAugmentation>, image: RawImage): string[] => [
  ...new Set(seeds.map((seed) => augmented(config, image, seed).data.join())),
];

test('RandomHorizontalFlip mirrors its share of the images', () => {
  const image = { ...counted(2, 2), channels: 3 as const, data: Uint8Array.from([...Array(12).keys()]) };
  const mirrored = '3,4,5,0,1,2,9,10,11,6,7,8';
  expect(results(RandomHorizontalFlip.config({ probability: 1 }), image)).toEqual([mirrored]);
  const flips = seeds.filter(
    (seed) => augmented(RandomHorizontalFlip.config(), image, seed).data.join() === mirrored,
  );
  expect(flips.length).toBeGreaterThan(160);
  expect(flips.length).toBeLessThan(240);
});

test('RandomCrop takes every window of the padded image, and no other', () => {
  const windows = (padded: readonly (readonly number[])[]) =>
    [0, 1, 2].flatMap((top) =>
      [0, 1, 2].map((left) =>
        padded
          .slice(top, top + 2)
          .flatMap((row) => row.slice(left, left + 3))
          .join(),
      ),
    );
  const rowsOf = {
    constant: [
      [9, 9, 9, 9, 9],
      [9, 1, 2, 3, 9],
      [9, 4, 5, 6, 9],
      [9, 9, 9, 9, 9],
    ],
    edge: [
      [1, 1, 2, 3, 3],
      [1, 1, 2, 3, 3],
      [4, 4, 5, 6, 6],
      [4, 4, 5, 6, 6],
    ],
    reflect: [
      [5, 4, 5, 6, 5],
      [2, 1, 2, 3, 2],
      [5, 4, 5, 6, 5],
      [2, 1, 2, 3, 2],
    ],
  };
  for (const [paddingMode, padded] of Object.entries(rowsOf)) {
    const config = RandomCrop.config({ padding: 1, paddingMode: paddingMode as 'edge', fill: 9 });
    expect(results(config, counted(2, 3)).sort()).toEqual([...new Set(windows(padded))].sort());
  }
});

test('RandomResizedCrop scales parts of the image that have the wanted area and ratio', () => {
  const whole = RandomResizedCrop.config({ scale: [1, 1], ratio: [1, 1] });
  expect(results(whole, counted(5, 5))).toEqual([counted(5, 5).data.join()]);
  // A quarter of the area, square: each 2 × 2 window of 4 × 4, at its own size.
  const image = counted(4, 4);
  const quarter = build(RandomResizedCrop.config({ scale: [0.25, 0.25], ratio: [1, 1] }));
  const size = { height: 2, width: 2 };
  const found = seeds.map((seed) => quarter.apply(image, new ExampleDraws(prngKey(seed)), size).data.join());
  const windows = [1, 2, 3, 5, 6, 7, 9, 10, 11].map((at) => [at, at + 1, at + 4, at + 5].join());
  expect([...new Set(found)].sort()).toEqual(windows.sort());
  // No part of a long image has both: the middle with the nearest ratio is taken.
  const long = RandomResizedCrop.config({ scale: [1, 1], ratio: [1, 1] });
  expect(
    build(long).apply(counted(1, 9), new ExampleDraws(prngKey(0)), { height: 1, width: 1 }).data,
  ).toEqual(Uint8Array.of(5));
});

test('RandomErasing fills one box of its share of the area', () => {
  const image = { ...counted(8, 8), data: new Uint8Array(64).fill(200) };
  const quarter = { probability: 1, scale: [0.25, 0.25], ratio: [1, 1] } as const;
  for (const seed of seeds) {
    const { data } = augmented(RandomErasing.config({ ...quarter, value: 7 } as never), image, seed);
    const erased = [...data.keys()].filter((i) => data[i] === 7);
    expect([erased.length, erased.at(-1)! - erased[0]!]).toEqual([16, 27]);
    expect(data.filter((value) => value === 200)).toHaveLength(48);
  }
  const noise = augmented(RandomErasing.config({ ...quarter, value: 'random' } as never), image, 0);
  expect(new Set(noise.data).size).toBeGreaterThan(10);
  expect(results(RandomErasing.config({ probability: 0 }), image)).toHaveLength(1);
});

test('ColorJitter draws factors within its bounds, in a random order', () => {
  const flat = { height: 1, width: 1, channels: 1 as const, data: Uint8Array.of(100) };
  const values = results(ColorJitter.config({ brightness: 0.2 }), flat).map(Number);
  expect(Math.min(...values)).toBe(80);
  expect(Math.max(...values)).toBeGreaterThanOrEqual(118);
  expect(Math.max(...values)).toBeLessThanOrEqual(120);
  const strong = results(ColorJitter.config({ brightness: 3 }), flat).map(Number);
  expect([Math.min(...strong) < 5, Math.max(...strong)]).toEqual([true, 255]);
});

test('RandAugment moves and turns by hand-computed amounts at full strength', () => {
  const full = { strength: 1, signed: 1, fill: 0 };
  const data = (name: string, image: RawImage, by = full) => [...operations[name]!(image, by).data];
  // 150 of 331 pixels: one of three.
  expect(data('translateX', counted(2, 3))).toEqual([0, 1, 2, 0, 4, 5]);
  expect(data('translateX', counted(2, 3), { ...full, signed: -1 })).toEqual([2, 3, 0, 5, 6, 0]);
  expect(data('translateY', counted(3, 2))).toEqual([0, 0, 1, 2, 3, 4]);
  // Rows shift by 0.3 · (y + 0.5): 0.15, 0.45, 0.75 pixels.
  expect(data('shearX', counted(3, 3))).toEqual([1, 2, 3, 4, 5, 6, 8, 9, 0]);
  expect(data('shearY', counted(3, 3))).toEqual([1, 2, 6, 4, 5, 9, 7, 8, 0]);
  // 30° leaves the middle and takes the corners from outside.
  expect(data('rotate', counted(3, 3))[4]).toBe(5);
  expect(data('posterize', { ...counted(1, 1), data: Uint8Array.of(255) })).toEqual([240]);
  expect(data('solarize', counted(1, 2))).toEqual([254, 253]);
  expect(data('brightness', { ...counted(1, 1), data: Uint8Array.of(100) })).toEqual([190]);
});

test('of any image: magnitude 0 changes nothing, but where there is none', () => {
  const off = { strength: 0, signed: 0, fill: 0 };
  fc.assert(
    fc.property(images, (image) => {
      for (const [name, operation] of Object.entries(operations))
        if (name !== 'autoContrast' && name !== 'equalize') expect(operation(image, off)).toEqual(image);
    }),
  );
  expect(Object.keys(operations)).toHaveLength(14);
});

const any = fc.constantFrom<Config<BaseAugmentation>>(
  RandomResizedCrop.config(),
  RandomCrop.config({ padding: 4, paddingMode: 'reflect' }),
  RandomHorizontalFlip.config(),
  ColorJitter.config({ brightness: 0.9, contrast: 0.9, saturation: 0.9, hue: 0.5 }),
  RandAugment.config({ numOps: 3, magnitude: 30 }),
  RandomErasing.config({ value: 'random' }),
);

test('of any image: size and channels stay, the image is not written to, and the draws alone decide', () => {
  fc.assert(
    fc.property(images, any, fc.nat(1e6), (image, config, seed) => {
      const before = Uint8Array.from(image.data);
      const after = augmented(config, image, seed);
      expect({ ...after, data: after.data.length }).toEqual({ ...image, data: image.data.length });
      expect(image.data).toEqual(before);
      expect(augmented(config, image, seed)).toEqual(after);
    }),
    { numRuns: 300 },
  );
  const nothing: Config<BaseAugmentation>[] = [
    RandomCrop.config({ padding: 0 }),
    RandomHorizontalFlip.config({ probability: 0 }),
    ColorJitter.config(),
    RandAugment.config({ numOps: 0 }),
    RandomErasing.config({ probability: 0 }),
  ];
  fc.assert(
    fc.property(images, fc.nat(1e6), (image, seed) => {
      for (const config of nothing) expect(augmented(config, image, seed)).toEqual(image);
    }),
  );
});

test('fields are checked', () => {
  const error = (make: () => unknown) => {
    try {
      make();
      return 'none';
    } catch (thrown) {
      return (thrown as Error).message;
    }
  };
  expect(error(() => RandomResizedCrop.config({ scale: [0.5, 0.2] }))).toContain(
    'expected [smallest, largest]',
  );
  expect(error(() => RandAugment.config({ magnitude: 31 }))).toContain('magnitude');
  expect(error(() => ColorJitter.config({ hue: 0.6 }))).toContain('hue');
});
