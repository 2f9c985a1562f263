/** @file Attention to a context of bounded size around each query (praxis/layers/attentions.py, conformers.py). */
import { z } from 'zod';
import { type ops, type Tensor, tf } from '../../compiler/index.js';
import { sub } from '../../hparams/index.js';
import type { Theta } from '../core/weights.js';
import { DotProductAttention } from './attentions.js';
import { Alibi, BasePositionBias, biasAt, distancesOf } from './biases.js';
import { positionsOf, type Visibility } from './visibility.js';
import { DotProductAttentionXL } from './xlAttention.js';

const contextFields = {
  leftContext: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe('How many keys a query sees up to its own, that one included; null: all.'),
  rightContext: z.int().nonnegative().nullable().default(null).describe('How many behind it; null: all.'),
};

const blockSizeField = z
  .int()
  .positive()
  .nullable()
  .default(null)
  .describe(
    "Pax's block of the computation; the result does not depend on it, and kernels choose their own.",
  );

const windowOf = ({
  leftContext,
  rightContext,
}: Readonly<Record<'leftContext' | 'rightContext', number | null>>) =>
  leftContext === null && rightContext === null
    ? undefined
    : { before: leftContext === null ? undefined : leftContext - 1, after: rightContext ?? undefined };

/** Attention to `leftContext` keys up to the query's own and `rightContext` behind it. A decode sees none behind it. */
export class DotProductAttentionWithContext extends DotProductAttention.with(contextFields) {
  protected override get window(): Partial<ops.Window> | undefined {
    return windowOf(this.hp) as Partial<ops.Window> | undefined;
  }
}

/** The same with Transformer-XL's relative positions. */
export class DotProductAttentionWithContextXL extends DotProductAttentionXL.with(contextFields) {
  protected override get window(): Partial<ops.Window> | undefined {
    return windowOf(this.hp) as Partial<ops.Window> | undefined;
  }
}

/** Pax's local attention: kernels skip the keys outside the context. */
export class LocalSelfAttention extends DotProductAttentionWithContext.with({ blockSize: blockSizeField }) {}

/** Local attention with Transformer-XL's relative positions. */
export class LocalSelfAttentionXL extends DotProductAttentionWithContextXL.with({
  blockSize: blockSizeField,
}) {}

/** Local attention with ALiBi. */
export class LocalSelfAttentionAlibi extends LocalSelfAttention.with({
  relativeBiasTpl: sub(BasePositionBias, () => Alibi.config()).describe('What is added to the logits.'),
}) {}

/**
 * Local attention with a trained number for each head and distance (DIET-REL, Chen et al., 2021). Its variable is Pax's: of
 * distance d it is element leftContext + blockSize - 3 - d of leftContext + rightContext + 2 (blockSize - 1), of which
 * others are not used.
 */
export class LocalSelfAttentionRelativeBias extends LocalSelfAttention {
  declare readonly theta: Theta<'pos_emb_compressed' | 'sinks'>;

  protected override setup(): void {
    const { leftContext, rightContext, blockSize, numHeads } = this.hp;
    if (leftContext === null || rightContext === null || blockSize === null || blockSize < 2)
      throw this.error(
        `leftContext ${leftContext}, rightContext ${rightContext} and blockSize ${blockSize} size the variable: expected numbers, ` +
          'and blocks of 2 or more.',
      );
    super.setup();
    const size = leftContext + rightContext + 2 * (blockSize - 1);
    this.createVariable('pos_emb_compressed', { shape: [numHeads, size] });
  }

  protected override positionBias(query: Tensor, key: Tensor, seen: Visibility): Tensor | undefined {
    const [leftContext, rightContext] = [this.hp.leftContext!, this.hp.rightContext!];
    const distance = distancesOf(positionsOf(seen, query.shape[1]!, key.shape[1]!));
    const inside = tf.clipByValue(distance, -rightContext, leftContext - 1);
    const first = tf.scalar(leftContext + this.hp.blockSize! - 3, 'int32');
    const bias = biasAt(tf.transpose(this.theta.pos_emb_compressed), tf.sub(first, tf.cast(inside, 'int32')));
    const other = super.positionBias(query, key, seen);
    return other ? tf.add(bias, other) : bias;
  }
}
