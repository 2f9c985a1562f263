/** @file Classifier-free guidance: rows of prompts and of unconditional prompts draw as one (Ho and Salimans, 2022). */
import { type Tensor, tf } from '../compiler/index.js';
import type { ExtendStep, Int32Tensor, Prompts } from './decodingModel.js';

/**
 * Rows of guided decodes: for each prompt its samples, then as many of its unconditional prompt (praxis/sample_decode.py).
 * Logits of both are uncond + scale * (cond - uncond), and both take the token of the first.
 *
 * @param scales one of each sample.
 */
export type Scales = readonly number[];

/** Guided logits of rows [2 B S, V], both halves of a prompt's alike. */
export function guidedLogits(logits: Tensor, scales: Scales): Tensor {
  const [rows, size] = logits.shape as [number, number];
  const samples = scales.length;
  const parts = tf.reshape(logits, [rows / samples / 2, 2, samples, size]);
  const [conditional, unconditional] = tf.unstack(parts, 1) as [Tensor, Tensor];
  const scale = tf.tensor3d([...scales], [1, samples, 1]);
  const guided = tf.add(unconditional, tf.mul(scale, tf.sub(conditional, unconditional)));
  return tf.reshape(tf.stack([guided, guided] as Tensor[], 1), [rows, size]) as Tensor;
}

/** Tokens [2 B S] of which unconditional rows have those of their samples. */
export function alignedIds(ids: Tensor, samples: number): Tensor {
  const prompts = ids.size / samples / 2;
  const [conditional] = tf.unstack(tf.reshape(ids, [prompts, 2, samples]), 1) as [Tensor];
  return tf.reshape(tf.stack([conditional, conditional], 1), [ids.size]) as Tensor;
}

/** The row whose tokens a row takes. */
export const leadingRow = (row: number, samples: number): number =>
  Math.floor(row / (2 * samples)) * 2 * samples + (row % samples);

/** A model's step that gives guided logits. */
export const guidedStep =
  (extendStep: ExtendStep, scales: Scales): ExtendStep =>
  async (ids, timeStep) => {
    const logits = await extendStep(ids, timeStep);
    const size = logits.length / ids.length;
    const samples = scales.length;
    return logits.map((_, i) => {
      const row = leadingRow(Math.floor(i / size), samples);
      const conditional = logits[row * size + (i % size)]!;
      const unconditional = logits[(row + samples) * size + (i % size)]!;
      // A token that may not be drawn has no difference.
      if (conditional === unconditional) return conditional;
      return unconditional + scales[row % samples]! * (conditional - unconditional);
    });
  };

/** Each prompt, and behind it its unconditional one: that which is given, or its last token alone. */
export function withUnconditional(
  { prefixIds, prefixLengths }: Prompts,
  given: Prompts | undefined,
): Prompts {
  const [prompts, size] = prefixIds.shape as [number, number];
  const width = Math.max(size, given?.prefixIds.shape[1] ?? 1);
  const ids = new Int32Array(2 * prompts * width);
  const lengths = new Int32Array(2 * prompts);
  const put = (row: number, from: Int32Array) => {
    ids.set(from, row * width);
    lengths[row] = from.length;
  };
  const rowOf = ({ shape, data }: Int32Tensor, row: number, length: number) =>
    data.subarray(row * shape[1]!, row * shape[1]! + Math.max(1, length));
  for (let row = 0; row < prompts; row++) {
    const prompt = rowOf(prefixIds, row, prefixLengths.data[row]!);
    put(2 * row, prompt);
    const own = given && rowOf(given.prefixIds, row, given.prefixLengths.data[row]!);
    put(2 * row + 1, own ?? prompt.subarray(-1));
  }
  return {
    prefixIds: { shape: [2 * prompts, width], dtype: 'int32', data: ids },
    prefixLengths: { shape: [2 * prompts], dtype: 'int32', data: lengths },
  };
}
