/** @file Mixup and CutMix: shares against their distribution, pixels against their shares. */
import { expect, test } from 'vitest';
import { prngKey } from '../../../../src/compiler/random/prng.js';
import { build } from '../../../../src/hparams/index.js';
import { CutMix, Mixup } from '../../../../src/inputs/index.js';
import { ExampleDraws } from '../../../../src/inputs/seqio/exampleDraws.js';

const size = { height: 6, width: 5 };
const filled = (value: number) => new Float32Array(size.height * size.width * 3).fill(value);
const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
const seeds = Array.from({ length: 3000 }, (_, seed) => seed);

test('Mixup: shares of Beta(alpha, alpha), each pixel the weighted mean', () => {
  for (const alpha of [0.2, 1, 3]) {
    const mixup = build(Mixup.config({ alpha }));
    const shares = seeds.map((seed) => {
      const pixels = filled(1);
      const share = mixup.mix(pixels, filled(-1), new ExampleDraws(prngKey(seed)));
      expect(pixels.every((pixel) => Math.abs(pixel - (2 * share - 1)) < 1e-6)).toBe(true);
      return share;
    });
    expect(mean(shares)).toBeCloseTo(0.5, 1);
    // The variance of Beta(alpha, alpha) is 1 / (4 (2 alpha + 1)).
    const variance = mean(shares.map((share) => (share - 0.5) ** 2));
    expect(Math.abs(variance * 4 * (2 * alpha + 1) - 1)).toBeLessThan(0.08);
  }
});

test('CutMix: one box of the other image, and the share is that of the pixels left', () => {
  const cutMix = build(CutMix.config());
  const shares = seeds.map((seed) => {
    const pixels = filled(1);
    const share = cutMix.mix(pixels, filled(0), new ExampleDraws(prngKey(seed)), size);
    expect(mean([...pixels])).toBeCloseTo(share, 5);
    const rows = Array.from({ length: size.height }, (_, y) => pixels.slice(y * 15, (y + 1) * 15).join());
    // Rows within the box are alike, and so are those outside.
    expect(new Set(rows).size).toBeLessThanOrEqual(2);
    return share;
  });
  expect(Math.min(...shares)).toBeLessThan(0.5);
  expect(Math.max(...shares)).toBe(1);
});
