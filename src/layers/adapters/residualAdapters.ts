/** @file Residual adapters: a bottleneck for each task behind the layers of a frozen model (praxis/layers/adapters.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { sub } from '../../hparams/index.js';
import { activationField, activationLayer, type BaseActivation, ReLU } from '../activations.js';
import { BaseLayer } from '../core/base.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';
import { TransformerFeedForward } from '../transformer/feedForwards.js';

/**
 * x + f(norm(x) down_w + down_b) up_w + up_b with weights for each task: down_w [K, D, n], up_w [K, n, D] (Houlsby et al., 2019).
 * up_w begins at 0.
 */
export class MultitaskResidualAdapter extends BaseLayer.with({
  inputDims: z.int().positive().describe('Depth D of the input and the output.'),
  bottleneckDims: z.int().positive().describe('Depth n between the maps.'),
  numTasks: z.int().positive().default(1).describe('Number K of tasks.'),
  normTpl: sub(BaseNormalization, () => LayerNorm.config())
    .nullable()
    .describe('The norm in front; null: none.'),
  activationTpl: activationField(() => ReLU.config()),
}) {
  declare readonly theta: Theta<'down_w' | 'down_b' | 'up_w' | 'up_b'>;
  #norm: BaseNormalization | null = null;
  #activation!: BaseActivation;

  protected override setup(): void {
    const { inputDims, bottleneckDims, numTasks, normTpl, activationTpl } = this.hp;
    if (normTpl) this.#norm = this.createChild('norm', normTpl, { dim: inputDims });
    this.createVariable('down_w', { shape: [numTasks, inputDims, bottleneckDims] });
    this.createVariable('down_b', { shape: [numTasks, bottleneckDims] });
    this.createVariable('up_w', { shape: [numTasks, bottleneckDims, inputDims], init: constantInit(0) });
    this.createVariable('up_b', { shape: [numTasks, inputDims] });
    this.#activation = this.createChild('activation', activationLayer(activationTpl));
  }

  /**
   * @param inputs [B, ..., D].
   * @param paddings [B, ...], 1 for padding, for norms that see other positions.
   * @param tasks int32 [B], the task of each example; absent where there is one.
   * @returns the shape of inputs.
   * @throws LayerError where there are several tasks, and no `tasks`
   */
  fprop(inputs: Tensor, paddings?: Tensor, tasks?: Tensor): Tensor {
    return tf.add(inputs, this.change(inputs, paddings, tasks));
  }

  /** As `fprop`, without the inputs themselves. */
  change(inputs: Tensor, paddings?: Tensor, tasks?: Tensor): Tensor {
    const { numTasks } = this.hp;
    if (!tasks && numTasks > 1)
      throw this.error(`has ${numTasks} tasks; pass the task of each example, int32 [B].`);
    const { down_w, down_b, up_w, up_b } = this.theta;
    const normed = this.#norm ? this.#norm.fprop(inputs, paddings) : inputs;
    const [batch, ...rest] = inputs.shape as [number, ...number[]];
    const depth = rest.at(-1)!;
    const positions = rest.slice(0, -1).reduce((a, b) => a * b, 1);
    // One task: products over all positions. Several: one product for each example, whose weights are those of its task.
    const of = (x: Tensor): Tensor => (tasks ? tf.gather(x, tasks) : x);
    const rows = tf.reshape(normed, tasks ? [batch, positions, depth] : [1, batch * positions, depth]);
    const hidden = tf.add(tf.matMul(rows, of(down_w)), tf.expandDims(of(down_b), 1));
    const outputs = tf.add(tf.matMul(this.#activation.fprop(hidden), of(up_w)), tf.expandDims(of(up_b), 1));
    return tf.reshape(outputs, inputs.shape);
  }
}

/**
 * A feed-forward layer with an adapter in its branch, before dropout, norms behind the branch and the residual connection:
 * behind the layer (`sequential`), or beside it (`parallel`, He et al., 2022).
 */
export class AdaptedTransformerFeedForward extends TransformerFeedForward.with({
  adapterTpl: sub(MultitaskResidualAdapter).describe('The adapter; its depth is that of the model.'),
  mode: z
    .enum(['sequential', 'parallel'])
    .default('sequential')
    .describe('Where the adapter takes its input from.'),
}) {
  #adapter!: MultitaskResidualAdapter;

  protected override setup(): void {
    super.setup();
    this.#adapter = this.createChild('adapters', this.hp.adapterTpl, { inputDims: this.hp.inputDims });
  }

  protected override residual(inputs: Tensor, branch: (x: Tensor) => Tensor): Tensor {
    const { mode } = this.hp;
    return super.residual(inputs, (x) => {
      const outputs = branch(x);
      return tf.add(outputs, this.#adapter.change(mode === 'sequential' ? outputs : inputs));
    });
  }
}
