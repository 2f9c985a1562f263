/** @file SSMGated: a block of a state space of its own depth and a gate (praxis/layers/ssm_transformers.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { type Config, deepCopyWith, sub } from '../../hparams/index.js';
import { GELU, Identity } from '../activations.js';
import { BaseMixer } from '../core/mixer.js';
import { FeedForward } from '../linears.js';
import { SSM } from '../recurrent/stateSpaces.js';
import { type Attends, Transformer } from './transformers.js';

/** Depth of the gate, in depths of the model. */
const GATE = 3;

/**
 * h = x + W_uc mixer(gelu(W_u n)) with n = norm(x), between vectors of depth `ssmDim`; the output is
 * W_o (gelu(W_uco h) ⊙ gelu(W_v n)), with a gate of three times the model's depth (Wang et al., 2022,
 * https://arxiv.org/abs/2212.10544, in one direction). All W have biases. As in Pax, the output has no residual connection, and
 * nothing reads `hiddenDims` and `trFflayerTpl`; `trAttenTpl` is the cross-attention's alone.
 */
export class SSMGated extends Transformer.with({
  ssmDim: z.int().positive().describe("Depth of the mixer's vectors."),
  mixerTpl: sub(
    BaseMixer,
    (): Config<BaseMixer> => SSM.config({ hippoType: 'ss4d-1d-legs', stepSize: 0.1 }),
  ).describe('The state space, or another mixer; its depth is ssmDim.'),
  gssFflayerTpl: sub(FeedForward).describe('Each map with bias and activation.'),
}) {
  #v!: FeedForward;
  #u!: FeedForward;
  #uc!: FeedForward;
  #uco!: FeedForward;
  #o!: FeedForward;

  protected override createMixer(): BaseMixer {
    return this.createMixerOf('ssm', this.hp.mixerTpl, this.hp.ssmDim);
  }

  protected override createFeedForward(): void {
    const { inputDims, ssmDim, gssFflayerTpl } = this.hp;
    const create = (name: string, from: number, to: number, activationTpl: Config<GELU | Identity>) =>
      this.createChild(
        `gss_ffn_${name}`,
        deepCopyWith(gssFflayerTpl, { inputDims: from, outputDims: to, activationTpl }),
      );
    this.#v = create('v', inputDims, GATE * inputDims, GELU.config());
    this.#u = create('u', inputDims, ssmDim, GELU.config());
    this.#uc = create('uc', ssmDim, inputDims, Identity.config());
    this.#uco = create('uco', inputDims, GATE * inputDims, GELU.config());
    this.#o = create('o', GATE * inputDims, inputDims, Identity.config());
  }

  protected override subLayers(inputs: Tensor, { self, cross }: Attends): Tensor {
    const normed = this.norms.before(inputs);
    const mixed = this.added(inputs, this.#uc.fprop(self(this.#u.fprop(normed))));
    const crossed = cross ? this.residual(mixed, cross, this.crossNorms) : mixed;
    return this.#o.fprop(tf.mul(this.#uco.fprop(crossed), this.#v.fprop(normed)));
  }
}
