/** @file MaskedLmDataAugmenter: shares of replaced tokens, padding. */
import { expect, test } from 'vitest';
import { tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { MaskedLmDataAugmenter } from '../../src/layers/index.js';
import { ints, run } from './helpers.js';

const config = MaskedLmDataAugmenter.config({
  vocabSize: 50,
  maskTokenId: 99,
  maskProb: 0.4,
  randomProb: 0.2,
  sameProb: 0.1,
});

test('replaces tokens with the given probabilities, and no padding', () => {
  const [batch, time] = [4, 5000];
  const inputs = tf.fill([batch, time], 60, 'int32');
  // The last row is padding.
  const paddings = tf.concat([tf.zeros([batch - 1, time]), tf.ones([1, time])], 0);
  const outputs = run({}, () => build(config).fprop(inputs, paddings), { prngKey: ints([3, 4], [2]) });
  const [tokens, mask] = [outputs.inputs.dataSync(), outputs.mask.dataSync()];
  const count = (of: (token: number, chosen: number) => boolean): number =>
    [...tokens].filter((token, i) => of(token, mask[i]!)).length / (3 * time);
  expect(count((token, chosen) => token === 99 && chosen === 1)).toBeCloseTo(0.4, 1.5);
  expect(count((token, chosen) => token < 50 && chosen === 1)).toBeCloseTo(0.2, 1.5);
  expect(count((token, chosen) => token === 60 && chosen === 1)).toBeCloseTo(0.1, 1.5);
  expect(new Set([...tokens].filter((token) => token < 50)).size).toBe(50);
  expect(count((token, chosen) => token !== 60 && chosen === 0)).toBe(0);
  expect([...tokens.slice(3 * time)].every((token) => token === 60)).toBe(true);
  expect(mask.slice(3 * time).includes(1)).toBe(false);
});

test('refuses probabilities without a rest', () => {
  expect(() => build(MaskedLmDataAugmenter.config({ vocabSize: 5, maskTokenId: 4, maskProb: 0.97 }))).toThrow(
    'maskProb + randomProb + sameProb: expected a sum between 0 and 1, got 0.97 + 0.015 + 0.015.',
  );
});
