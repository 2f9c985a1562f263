/** @file Variational noise: normal noise on weights in training (paxml's SingleTask.VariationalNoise). */
import { z } from 'zod';
import { hashString, ops, type Tensor, tf } from '../compiler/index.js';
import { ConfigError, Configurable } from '../hparams/index.js';
import type { Variable } from '../layers/index.js';
import { isPattern, wholePath } from '../learners/index.js';

/**
 * Noise that a training step adds to weights before its forward pass, w + vnScale · N(0, 1), drawn anew for each step and each
 * of its sub-batches. Gradients are those at the noisy weights; the update is that of the stored ones, and evaluations,
 * decodes and checkpoints have these (Graves, "Practical Variational Inference for Neural Networks", 2011).
 */
export class VariationalNoise extends Configurable.with({
  vnScale: z.number().nonnegative().default(0).describe('Standard deviation of the noise; 0: none.'),
  vnRegex: z
    .string()
    .refine(isPattern, { error: (issue) => `'${issue.input}' is not a regular expression` })
    .default('')
    .describe(
      'Pattern of the whole paths of the variables that get noise; those that no gradient moves at all have none.',
    ),
  vnStartStep: z.int().nonnegative().default(0).describe('Finished steps from which on there is noise.'),
}) {
  /**
   * Paths of the variables that get noise.
   *
   * @param variables those of the model that gradients may move.
   * @throws ConfigError where there is to be noise and no variable has it.
   */
  pathsOf(variables: readonly Variable[]): string[] {
    const { vnScale, vnRegex } = this.hp;
    if (vnScale === 0) return [];
    const pattern = wholePath(vnRegex);
    const paths = variables.map(({ path }) => path);
    const noisy = paths.filter((path) => pattern.test(path));
    if (noisy.length > 0) return noisy;
    const some = paths.slice(0, 5).map((path) => `'${path}'`);
    const more = paths.length > some.length ? `, and ${paths.length - some.length} more` : '';
    throw new ConfigError(
      `task.vn.vnRegex: '${vnRegex}' matches the whole path of no variable, and vnScale is ${vnScale}. Expected a pattern ` +
        `such as '.*' for all of ${some.join(', ')}${more}, or a vnScale of 0.`,
      { path: 'task.vn.vnRegex' },
    );
  }

  /** Whether noise begins with a later step than the first. */
  get beginsLater(): boolean {
    return this.hp.vnScale > 0 && this.hp.vnStartStep > 0;
  }

  /**
   * A weight with its noise.
   *
   * @param prngKey int32 [2], of the step.
   * @param step int32 [], finished steps; absent where noise begins with the first.
   */
  noisy(path: string, weight: Tensor, prngKey: Tensor, step: Tensor | undefined): Tensor {
    const { vnScale, vnStartStep } = this.hp;
    const key = ops.foldIn(prngKey, hashString(`${path}#vn`));
    const noisy = tf.add(weight, tf.mul(ops.randomNormal(key, weight.shape), vnScale));
    return step === undefined ? noisy : tf.where(tf.greaterEqual(step, vnStartStep), noisy, weight);
  }
}
