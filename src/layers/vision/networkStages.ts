/** @file Networks of stages: a convolution and a pooling at the entry, then blocks (praxis/layers/resnets.py, vanillanets.py). */
import { z } from 'zod';
import type { Tensor } from '../../compiler/index.js';
import { sub } from '../../hparams/index.js';
import { BaseLayer } from '../core/base.js';
import { GlobalPooling, Pooling } from '../poolings.js';

const size = () => z.int().positive();
const perStage = (values: number[], what: string) => z.array(size()).min(1).default(values).describe(what);

/** The block of a stage, as a network of stages sees it. */
export interface StageBlock {
  readonly inputDim: number;
  readonly outputDim: number;
  readonly kernelSize: number;
  readonly stride: number;
}

type Applied = BaseLayer & { fprop(x: Tensor): Tensor };

/** Base of the networks of stages: strides halve the image at the beginning of a stage. */
export abstract class BaseStages extends BaseLayer.with({
  strides: perStage([1, 2, 2, 2], "Stride of each stage's first block."),
  channels: perStage([256, 512, 1024, 2048], 'Depth of each stage.'),
  blocks: perStage([3, 4, 6, 3], 'Blocks of each stage.'),
  kernels: perStage([3, 3, 3, 3], 'Height and width of the windows of each stage.'),
  entryflowConvKernel: z
    .tuple([size(), size(), size()])
    .default([7, 7, 3])
    .describe('Height, width and depth of the input of the first convolution.'),
  entryflowConvStride: z.tuple([size(), size()]).default([2, 2]).describe('Stride of the first convolution.'),
  outputSpatialPoolingParams: sub(GlobalPooling, () => GlobalPooling.config({ poolingDims: [1, 2] }))
    .nullable()
    .describe('Pooling of the last stage; null: none.'),
}) {
  static override readonly isAbstract = true;
  #entry!: Applied;
  #maxPool!: Pooling;
  #stages: Applied[][] = [];
  #pooling: GlobalPooling | null = null;

  /** Creates the first convolution, to so many channels. */
  protected abstract createEntry(filterShape: [number, number, number, number]): Applied;
  /** Creates a block. */
  protected abstract createBlock(name: string, block: StageBlock): Applied;
  /** By how much the entry is shallower than the first stage. */
  protected abstract get entryflowContraction(): number;

  /** What is applied to the outputs of the first convolution. */
  protected activateEntry(x: Tensor): Tensor {
    return x;
  }

  protected override setup(): void {
    const { strides, channels, blocks, kernels, entryflowConvKernel, outputSpatialPoolingParams } = this.hp;
    for (const [name, values] of Object.entries({ channels, blocks, kernels }))
      if (values.length !== strides.length)
        throw this.error(`${name} has ${values.length} stages, and strides has ${strides.length}.`);
    let inputDim = Math.floor(channels[0]! / this.entryflowContraction);
    this.#entry = this.createEntry([...entryflowConvKernel, inputDim]);
    this.#maxPool = this.createChild(
      'entryflow_maxpool',
      Pooling.config({ windowShape: [3, 3], windowStride: [2, 2] }),
    );
    this.#stages = strides.map((stageStride, stage) =>
      Array.from({ length: blocks[stage]! }, (_, i) => {
        const [outputDim, kernelSize] = [channels[stage]!, kernels[stage]!];
        const stride = i === 0 ? stageStride : 1;
        const block = { inputDim, outputDim, kernelSize, stride };
        inputDim = outputDim;
        return this.createBlock(`stage_${stage}_block_${i}`, block);
      }),
    );
    if (outputSpatialPoolingParams)
      this.#pooling = this.createChild('output_spatial_pooling', outputSpatialPoolingParams);
  }

  /** Images [B, H, W, 3] to the last stage's outputs, pooled to [B, D] by default. */
  fprop(inputs: Tensor): Tensor {
    const last = this.blockFeatures(inputs).at(-1)!;
    return this.#pooling ? this.#pooling.fprop(last) : last;
  }

  /** Outputs of each stage, [B, H', W', channels], from the finest to the coarsest. */
  blockFeatures(inputs: Tensor): Tensor[] {
    let x = this.#maxPool.fprop(this.activateEntry(this.#entry.fprop(inputs)));
    return this.#stages.map((stage) => {
      x = stage.reduce((x, block) => block.fprop(x), x);
      return x;
    });
  }
}
