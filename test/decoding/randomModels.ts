/** @file Random parameters of models that are decoded, and random prompts for them. */
import { flatLayout, flatViews, prngKey, uniform } from '../../src/compiler/index.js';
import type { Int32Tensor, Prompts } from '../../src/decoding/index.js';
import { listVariables } from '../../src/layers/index.js';
import type { LanguageModel } from '../../src/models/index.js';
import type { FlatParams } from '../../src/programs/taskState.js';

/** Parameters from -factor / 2 to factor / 2. */
export function randomParams(model: LanguageModel, seed: number, factor = 1): FlatParams {
  const layout = flatLayout(
    listVariables(model).map(({ path, shape }) => ({ name: path, shape, group: 'all' })),
  );
  const params = Float32Array.from(uniform(prngKey(seed), layout.size), (u) => factor * (u - 0.5));
  return { layout, views: flatViews(layout, params) };
}

/** A host tensor of whole numbers. */
export const int32 = (shape: number[], data: ArrayLike<number>): Int32Tensor => ({
  ...{ shape, dtype: 'int32' },
  data: Int32Array.from(data),
});

/** `count` ids below `vocabSize`. */
export const randomIds = (count: number, vocabSize: number): number[] =>
  Array.from(uniform(prngKey(9), count), (u) => Math.floor(u * vocabSize));

/** Prompts of these lengths, filled up with further random ids. */
export function randomPrompts(lengths: readonly number[], vocabSize: number): Prompts {
  const [rows, width] = [lengths.length, Math.max(...lengths)];
  return {
    prefixIds: int32([rows, width], randomIds(rows * width, vocabSize)),
    prefixLengths: int32([rows], lengths),
  };
}
