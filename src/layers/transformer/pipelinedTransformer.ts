/** @file PipelinedTransformer: a stack of transformer layers as the stages of a pipeline (praxis/layers/transformers.py). */
import { z } from 'zod';
import type { Tensor } from '../../compiler/index.js';
import { type Config, classOf, deepCopyWith, sub } from '../../hparams/index.js';
import { LayerwiseShardablePipelined, pipelineFields } from '../shardablePipeline.js';
import { StackedTransformerRepeated } from './repeatedTransformers.js';
import { StackedTransformer } from './stackedTransformers.js';
import type { TransformerArgs } from './transformers.js';

/** What the stack does itself: a stage does it not. */
const OF_WHOLE: readonly string[] = ['inputDropoutProb', 'numLayers'];

/**
 * `numLayers` transformer layers in sequence, as many of them in each of `numPipelineStages` times `circularRepeat` stages, which
 * are those of a LayerwiseShardablePipelined. As StackedTransformer but for the names and shapes of its variables, which
 * stack those of all stages, and for experts and norms of a batch, which see a microbatch. It decodes nothing.
 */
export class PipelinedTransformer extends StackedTransformer.with({
  pipelineStage: sub(StackedTransformer).describe(
    'What each stage is built from: a StackedTransformer, or a StackedTransformerRepeated, whose layers are one repeated ' +
      'block; its fields are those of this layer.',
  ),
  numPipelineStages: z
    .int()
    .positive()
    .default(1)
    .describe('Stages, as many as the mesh has along their axis.'),
  numPipelineMicrobatches: z.int().positive().nullable().default(null).describe('Microbatches of a batch.'),
  pipelineMicrobatchSize: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe('Rows of a microbatch, of those that a device has, in place of numPipelineMicrobatches.'),
  ...pipelineFields,
}) {
  protected pipeline!: LayerwiseShardablePipelined;

  protected override createLayers(): void {
    const {
      pipelineStage: stage,
      numPipelineStages: numStages,
      circularRepeat,
      numLayers,
      ...rest
    } = this.hp;
    const layers = numLayers / (numStages * circularRepeat);
    if (!Number.isInteger(layers))
      throw this.error(
        `${numLayers} layers can't be cut into ${numStages} stages of ${circularRepeat} repeats each: numLayers is a multiple of ` +
          'numPipelineStages times circularRepeat.',
      );
    const isRepeated =
      classOf(stage).prototype instanceof StackedTransformerRepeated ||
      classOf(stage) === StackedTransformerRepeated;
    this.pipeline = this.createChild('pipeline', LayerwiseShardablePipelined.config(), {
      singleStageBody: deepCopyWith(stage, {
        ...this.fieldsFor('pipelineStage', stage, OF_WHOLE),
        ...(isRepeated ? { xTimes: layers } : { numLayers: layers }),
      } as Partial<Config<StackedTransformer>>),
      ...{ numStages, circularRepeat },
      numMicrobatches: rest.numPipelineMicrobatches,
      microbatchSize: rest.pipelineMicrobatchSize,
      streamIo: rest.streamIo,
      pipelineBroadcastInputs: rest.pipelineBroadcastInputs,
    });
  }

  override fprop(inputs: Tensor, args: TransformerArgs = {}): Tensor {
    return this.pipeline.fprop(this.inputDropout.fprop(inputs), args);
  }

  override begin(): void {
    throw this.error('a pipeline decodes nothing.');
  }

  override extendStep(): Tensor {
    throw this.error('a pipeline decodes nothing.');
  }
}
