/** @file StackedTransformerRepeated: a stack of transformer layers as one repeated block (praxis/layers/transformers.py). */
import { z } from 'zod';
import type { Tensor } from '../../compiler/index.js';
import { deepCopyWith, sub } from '../../hparams/index.js';
import type { StepArgs } from '../core/mixer.js';
import { Repeat } from '../repeats.js';
import { StackedTransformer } from './stackedTransformers.js';
import type { TransformerArgs } from './transformers.js';

/** What the repeated stack does itself: a block does it not. */
const OF_WHOLE: readonly string[] = ['inputDropoutProb', 'remat', 'checkpointPolicy'];

/**
 * `xTimes` blocks in sequence, each of `numLayers` transformer layers, of which `moeLayers` have experts. As
 * StackedTransformer with numLayers xTimes layers, but for the names and shapes of its variables, which stack those of all blocks: a program has the layers of one
 * block, whatever xTimes is.
 */
export class StackedTransformerRepeated extends StackedTransformer.with({
  numLayers: z.int().positive().default(1).describe('Number of layers of a block.'),
  xTimes: z.int().positive().describe('Number of blocks.'),
  block: sub(StackedTransformer).describe(
    'What each block is built from, such as a subclass of StackedTransformer; its fields are those of this layer.',
  ),
  repeatLayer: sub(Repeat).describe('What repeats the block.'),
  unrollInDecode: z
    .boolean()
    .default(true)
    .describe(
      'As in Repeat: whether decoding has separate states, and compiles the block for each repetition.',
    ),
}) {
  protected repeated!: Repeat;

  protected override createLayers(): void {
    const { xTimes, block, repeatLayer, unrollInDecode, remat, ...rest } = this.hp;
    const subTpl = deepCopyWith(block, this.fieldsFor('block', block, OF_WHOLE));
    const checkpointPolicy = remat ? rest.checkpointPolicy : 'SAVE_EVERYTHING';
    this.repeated = this.createChild('repeat', repeatLayer, {
      subTpl,
      xTimes,
      checkpointPolicy,
      unrollInDecode,
    });
  }

  override fprop(inputs: Tensor, args: TransformerArgs = {}): Tensor {
    return this.repeated.fprop(this.inputDropout.fprop(inputs), args);
  }

  override begin(states: Tensor): void {
    this.repeated.begin(states);
  }

  override extendStep(inputs: Tensor, args: StepArgs): Tensor {
    return this.repeated.extendStep(inputs, args);
  }
}
