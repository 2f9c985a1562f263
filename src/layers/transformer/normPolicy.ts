/** @file Norm policies: positions of norms in a residual branch (praxis/layers/transformers.py). */
import { z } from 'zod';
import type { Tensor } from '../../compiler/index.js';
import { type Config, deepCopy } from '../../hparams/index.js';
import type { BaseNormalization } from '../normalizations.js';

/** Field that selects a policy. */
export const NormPolicySchema = z
  .enum(['pre', 'primer_hybrid', 'post', 'post_skip'])
  .default('pre')
  .describe(
    'Where the norm stands: before the branch; before and after it; after it; after the residual connection.',
  );

type Policy = z.infer<typeof NormPolicySchema>;
type Norm = BaseNormalization | null;

/** The norms of a residual branch; without one at a position, values pass through. */
export class NormPolicy {
  private constructor(
    private readonly pre: Norm,
    private readonly post: Norm,
    private readonly postSkip: Norm,
  ) {}

  /** Creates the policy's norms under Pax's names. @param norm creates a child from a template */
  static create(
    policy: Policy,
    lnTpl: Config<BaseNormalization>,
    norm: (name: string, template: Config<BaseNormalization>) => BaseNormalization,
  ): NormPolicy {
    if (policy === 'primer_hybrid') {
      return new NormPolicy(
        norm('pre_layer_norm', deepCopy(lnTpl)),
        norm('post_layer_norm', deepCopy(lnTpl)),
        null,
      );
    }
    const only = norm('layer_norm', lnTpl);
    return new NormPolicy(
      policy === 'pre' ? only : null,
      policy === 'post' ? only : null,
      policy === 'post_skip' ? only : null,
    );
  }

  /** The branch's input. */
  before(x: Tensor): Tensor {
    return this.pre ? this.pre.fprop(x) : x;
  }
  /** The branch's output. */
  after(x: Tensor): Tensor {
    return this.post ? this.post.fprop(x) : x;
  }
  /** The sum of the branch's output and its input. */
  afterSkip(x: Tensor): Tensor {
    return this.postSkip ? this.postSkip.fprop(x) : x;
  }
}
