/** @file Base of the models that learn beside a frozen reference. */
import { type Tensor, type TensorSpec, tf } from '../compiler/index.js';
import type { Decodable } from '../decoding/index.js';
import { type Config, sub } from '../hparams/index.js';
import { BaseLayer, type DecodeStateSpec, type LmOutput, runFrozen, type StepArgs } from '../layers/index.js';
import { BaseModel, idsBelow, type ReadIds, type RowSettings } from './baseModel.js';
import { type ArrayOf, type TokenLayer, type TokenNetwork, tokenNetwork } from './tokenNetworks.js';

/** Descriptions of the two networks, whose classes a model says. */
export const MDL = 'The network that learns.';
export const REF_MDL = 'The reference, which stays as it is; null: a network like mdl.';

/**
 * A network `mdl` and its reference `ref_mdl`, which nothing moves. Both start from the same weights (`initFromCheckpoint`);
 * `mdl` is the one that decodes. A row is one prompt with one answer, which alone has weight.
 */
export abstract class ReferencedModel
  extends BaseModel.with({
    mdl: sub(BaseLayer, null).describe(MDL),
    refMdl: sub(BaseLayer, null).nullable().default(null).describe(REF_MDL),
  })
  implements Decodable
{
  static override readonly isAbstract = true;
  /** The network that learns. */
  protected network!: TokenNetwork;
  #reference: TokenNetwork | null = null;

  /** Whether there is a reference. */
  protected get isReferenced(): boolean {
    return true;
  }

  protected override setup(): void {
    const mdl = this.hp.mdl as Config<TokenLayer>;
    const refMdl = this.hp.refMdl as Config<TokenLayer> | null;
    if (mdl.packedInput)
      throw this.error('mdl.packedInput is set, and a row is one prompt with one answer: set it to false.');
    if (mdl.softmaxTpl.chunkSize > 0)
      throw this.error(
        'mdl.softmaxTpl.chunkSize gives no gradient of the loss of one sequence: set it to 0.',
      );
    if (this.isReferenced) this.#reference = tokenNetwork(this.createFrozenChild('ref_mdl', refMdl ?? mdl));
    this.network = tokenNetwork(this.createChild('mdl', mdl));
  }

  override get readIds(): readonly ReadIds[] {
    return idsBelow('mdl', this.network.readIds);
  }

  override get labelIds(): readonly ReadIds[] {
    return idsBelow('mdl', this.network.labelIds);
  }

  override get rowSettings(): RowSettings {
    return { field: 'mdl', ...this.network.rowSettings };
  }

  /** Outputs of the network that learns. */
  protected predict(arrayOf: ArrayOf): LmOutput {
    return this.network.outputs(arrayOf);
  }

  /** Log-probabilities of the labels under the reference, [B, T], without a gradient. */
  protected referenceLogProbs(arrayOf: ArrayOf): Tensor {
    return runFrozen(() => tf.neg(this.#reference!.outputs(arrayOf).perExampleXent));
  }

  get vocabSize(): number {
    return this.network.vocabSize;
  }

  get seesWholePrompt(): boolean {
    return this.network.seesWholePrompt ?? false;
  }

  get nested(): Decodable['nested'] {
    return this.network.nested;
  }

  get promptNames(): readonly string[] {
    return this.network.promptNames ?? [];
  }

  initialDecodeState(
    rows: number,
    seqLen: number,
    prompt?: Readonly<Record<string, TensorSpec>>,
  ): Record<string, DecodeStateSpec> {
    return this.network.initialDecodeState(rows, seqLen, prompt);
  }

  get begin(): Decodable['begin'] {
    return this.network.begin;
  }

  extendStep(ids: Tensor, args: StepArgs): Tensor {
    return this.network.extendStep(ids, args);
  }
}
