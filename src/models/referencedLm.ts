/** @file Base of the language models that learn beside a frozen reference. */
import type { Tensor } from '../compiler/index.js';
import { tf } from '../compiler/index.js';
import type { Decodable } from '../decoding/index.js';
import { sub } from '../hparams/index.js';
import {
  type DecodeStateSpec,
  decodeStateSpecs,
  type LmOutput,
  runFrozen,
  type StepArgs,
  TransformerLm,
} from '../layers/index.js';
import { BaseModel, type ReadIds, type RowSettings, type TensorBatch } from './baseModel.js';

/**
 * A network `mdl` and its reference `ref_mdl`, which nothing moves. Both start from the same weights (`initFromCheckpoint`);
 * `mdl` is the one that decodes. A row is one prompt with one answer, which alone has weight.
 */
export abstract class ReferencedLm
  extends BaseModel.with({
    mdl: sub(TransformerLm).describe('The network that learns.'),
    refMdl: sub(TransformerLm)
      .nullable()
      .default(null)
      .describe('The reference, which stays as it is; null: a network like mdl.'),
  })
  implements Decodable
{
  static override readonly isAbstract = true;
  #mdl!: TransformerLm;
  #refMdl: TransformerLm | null = null;

  /** Path in a batch of the ids that it reads. */
  protected abstract readonly idsPath: string;

  /** Whether there is a reference. */
  protected get isReferenced(): boolean {
    return true;
  }

  protected override setup(): void {
    const { mdl, refMdl } = this.hp;
    if (mdl.packedInput)
      throw this.error('mdl.packedInput is set, and a row is one prompt with one answer: set it to false.');
    if (mdl.softmaxTpl.chunkSize > 0)
      throw this.error(
        'mdl.softmaxTpl.chunkSize gives no gradient of the loss of one sequence: set it to 0.',
      );
    if (this.isReferenced) this.#refMdl = this.createFrozenChild('ref_mdl', refMdl ?? mdl);
    this.#mdl = this.createChild('mdl', mdl);
  }

  override get readIds(): readonly ReadIds[] {
    return [{ path: this.idsPath, count: this.vocabSize, field: 'mdl.vocabSize' }];
  }

  override get rowSettings(): RowSettings {
    const { packedInput, modelType, usePaddings } = this.hp.mdl;
    return { field: 'mdl', packedInput, modelType, usePaddings };
  }

  /** Outputs of the network for arrays of a batch. @param arrayOf the array of a name, without which the model can't do */
  protected predict(arrayOf: (name: string) => Tensor): LmOutput {
    return outputsOf(this.#mdl, arrayOf);
  }

  /** Log-probabilities of the labels under the reference, [B, T], without a gradient. */
  protected referenceLogProbs(arrayOf: (name: string) => Tensor): Tensor {
    return runFrozen(() => tf.neg(outputsOf(this.#refMdl!, arrayOf).perExampleXent));
  }

  /** A batch's array of a name. */
  protected arraysOf(batch: TensorBatch): (name: string) => Tensor {
    return (name) => this.tensorOf(batch, name);
  }

  get vocabSize(): number {
    return this.hp.mdl.vocabSize;
  }

  initialDecodeState(batchSize: number, seqLen: number): Record<string, DecodeStateSpec> {
    return decodeStateSpecs(this.#mdl, batchSize, seqLen);
  }

  extendStep(ids: Tensor, args: StepArgs): Tensor {
    return this.#mdl.extendStep(ids, args);
  }
}

function outputsOf(network: TransformerLm, arrayOf: (name: string) => Tensor): LmOutput {
  const { modelType, usePaddings } = network.hp;
  return network.fprop(
    {
      ids: arrayOf('ids'),
      ...(usePaddings && { paddings: arrayOf('paddings') }),
      ...(modelType === 'prefix' && { inputsIndicator: arrayOf('inputsIndicator') }),
    },
    { classIds: arrayOf('labels'), classWeights: arrayOf('weights') },
  );
}
