/** @file Vision transformers (praxis/layers/vits.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { sub } from '../../hparams/index.js';
import { Identity, Tanh } from '../activations.js';
import { BasePositionalEmbedding, TrainablePositionalEmbedding } from '../attention/positions.js';
import { BaseLayer } from '../core/base.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { FeedForward } from '../linears.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';
import { GlobalPooling } from '../poolings.js';
import { Dropout, dropoutField } from '../stochastics.js';
import { StackedTransformer } from '../transformer/stackedTransformers.js';
import { grid, imageToPatch, resizeGrid } from './patches.js';

const size = () => z.int().positive();
const tokens = (where: string) =>
  z
    .int()
    .nonnegative()
    .default(0)
    .describe(`Trained tokens ${where} the patches, such as that of the class.`);

/** Patches, their projection, position embeddings and class tokens. */
export class VitEntryLayers extends BaseLayer.with({
  posEmbShapes: z
    .tuple([size(), size()])
    .describe('Rows and columns of the position embeddings; images of other sizes have them interpolated.'),
  patchSize: size().describe('Height and width of a patch.'),
  inputDims: size().describe("Elements of a patch: patchSize², times the image's depth."),
  outputDims: size().describe('Depth of a token.'),
  posEmbDropoutProb: dropoutField('an element of a token'),
  prependClsTokens: tokens('before'),
  appendClsTokens: tokens('behind'),
  posEmbTpl: sub(BasePositionalEmbedding, () => TrainablePositionalEmbedding.config())
    .nullable()
    .describe('Position embeddings of the patches, row by row; null: none.'),
  posEmbOfClsTokens: z
    .boolean()
    .default(false)
    .describe('Whether class tokens have position embeddings too, in the order of all tokens.'),
  inputFcHasBias: z.boolean().default(true).describe('Whether the projection has a bias.'),
  lnTpl: sub(BaseNormalization, null)
    .nullable()
    .default(null)
    .describe('The norm of all tokens, before the stack; null: none.'),
}) {
  declare readonly theta: Theta<'prepend_cls_embs' | 'append_cls_embs'>;
  #projection!: FeedForward;
  #positions: BasePositionalEmbedding | null = null;
  #norm: BaseNormalization | null = null;
  #dropout!: Dropout;

  protected override setup(): void {
    const { hp } = this;
    const { inputDims, outputDims, inputFcHasBias: hasBias } = hp;
    this.#projection = this.createChild(
      'patch_projection',
      FeedForward.config({ inputDims, outputDims, hasBias, activationTpl: Identity.config() }),
    );
    if (hp.posEmbTpl)
      this.#positions = this.createChild('pos_emb', hp.posEmbTpl, { embeddingDims: outputDims });
    this.#dropout = this.createChild('dropout', Dropout.config({ keepProb: 1 - hp.posEmbDropoutProb }));
    if (hp.lnTpl) this.#norm = this.createChild('ln', hp.lnTpl, { dim: outputDims });
    for (const [name, count] of this.#classTokens())
      this.createVariable(name, { shape: [1, count, outputDims], init: constantInit(0) });
  }

  #classTokens() {
    const { prependClsTokens, appendClsTokens } = this.hp;
    const all = [
      ['prepend_cls_embs', prependClsTokens] as const,
      ['append_cls_embs', appendClsTokens] as const,
    ];
    return all.filter(([, count]) => count > 0);
  }

  /**
   * Images [B, H, W, C], or patches [B, N, inputDims], to tokens [B, N + class tokens, outputDims].
   *
   * @throws LayerError for inputs that do not fit
   */
  fprop(inputs: Tensor): Tensor {
    const { patchSize, inputDims, posEmbShapes, posEmbOfClsTokens } = this.hp;
    const isImage = inputs.rank === 4;
    const depth = inputs.shape.at(-1)! * (isImage ? patchSize ** 2 : 1);
    if ((!isImage && inputs.rank !== 3) || depth !== inputDims)
      throw this.error(
        `inputs [${inputs.shape.join(', ')}] do not fit inputDims ${inputDims}: expected images [B, H, W, ` +
          `${inputDims / patchSize ** 2}] or patches [B, N, ${inputDims}].`,
      );
    const patches = this.#projection.fprop(isImage ? imageToPatch(inputs, patchSize) : inputs);
    const cells = isImage ? grid(inputs.shape, patchSize) : posEmbShapes;
    const place = (x: Tensor): Tensor =>
      this.#dropout.fprop(this.#positions ? tf.add(x, this.#embeddings(this.#positions, cells)) : x);
    const tokens = posEmbOfClsTokens
      ? place(this.#withClassTokens(patches))
      : this.#withClassTokens(place(patches));
    return this.#norm ? this.#norm.fprop(tokens) : tokens;
  }

  #withClassTokens(patches: Tensor): Tensor {
    const [batch, , depth] = patches.shape as [number, number, number];
    return this.#classTokens().reduce((x, [name, count]) => {
      const parts = [tf.add(this.theta[name], tf.zeros([batch, count, depth])), x];
      return tf.concat(name === 'prepend_cls_embs' ? parts : parts.reverse(), 1);
    }, patches);
  }

  /** Position embeddings of the patches of a grid, or of all tokens, [N, outputDims]. */
  #embeddings(positions: BasePositionalEmbedding, cells: readonly [number, number]): Tensor {
    const { posEmbShapes, posEmbOfClsTokens, prependClsTokens, appendClsTokens, outputDims } = this.hp;
    const count = posEmbShapes[0] * posEmbShapes[1];
    if (!posEmbOfClsTokens) return resizeGrid(positions.fprop(count), posEmbShapes, cells);
    const all = positions.fprop(prependClsTokens + count + appendClsTokens);
    if (cells.join() === posEmbShapes.join()) return all;
    const rows = (first: number, size: number): Tensor[] =>
      size > 0 ? [tf.slice(all, [first, 0], [size, outputDims])] : [];
    const patches = rows(prependClsTokens, count).map((x) => resizeGrid(x, posEmbShapes, cells));
    return tf.concat(
      [...rows(0, prependClsTokens), ...patches, ...rows(prependClsTokens + count, appendClsTokens)],
      0,
    );
  }
}

/** [B, N, D] to [B, D]. */
const firstToken = (tokens: Tensor): Tensor => {
  const [batch, , depth] = tokens.shape as [number, number, number];
  return tf.reshape(tf.slice(tokens, [0, 0, 0], [batch, 1, depth]), [batch, depth]);
};

/** Norm, pooling over the tokens, projection and dropout. */
export class VitExitLayers extends BaseLayer.with({
  hiddenDim: size().describe('Depth of the tokens.'),
  outputDim: z
    .int()
    .nonnegative()
    .default(0)
    .describe('Depth of the output; 0, or hiddenDim: without a projection, unless outputFcTanh is set.'),
  outputDropoutProb: dropoutField('an output element'),
  pooled: z.boolean().default(true).describe('Whether the tokens are pooled.'),
  useClsToken: z
    .boolean()
    .default(false)
    .describe('Whether the first token, that of the class, is taken in the place of pooling.'),
  preLn: z.boolean().default(true).describe('Whether a norm stands first.'),
  outputFcTanh: z.boolean().default(true).describe('Whether there is a linear layer with a tanh.'),
  outputFcHasBias: z.boolean().default(true).describe('Whether the projection has a bias.'),
  poolingTpl: sub(GlobalPooling, () => GlobalPooling.config({ poolingDims: [1] })).describe(
    'The pooling of the tokens.',
  ),
  lnTpl: sub(BaseNormalization, () => LayerNorm.config()).describe('The norm.'),
}) {
  #norm: BaseNormalization | null = null;
  #pooling: GlobalPooling | null = null;
  #projection: FeedForward | null = null;
  #dropout!: Dropout;

  protected override setup(): void {
    const { hiddenDim, outputDim, outputFcTanh, outputFcHasBias: hasBias, ...hp } = this.hp;
    if (outputFcTanh && outputDim === 0) throw this.error('outputFcTanh is set, and outputDim is 0.');
    if (hp.preLn) this.#norm = this.createChild('ln', hp.lnTpl, { dim: hiddenDim });
    if (hp.pooled && !hp.useClsToken) this.#pooling = this.createChild('pooling', hp.poolingTpl);
    const projection = { inputDims: hiddenDim, outputDims: outputDim, hasBias };
    if (outputFcTanh)
      this.#projection = this.createChild(
        'fc_tanh',
        FeedForward.config({ ...projection, activationTpl: Tanh.config() }),
      );
    else if (outputDim !== 0 && outputDim !== hiddenDim)
      this.#projection = this.createChild(
        'output_projection',
        FeedForward.config({ ...projection, activationTpl: Identity.config() }),
      );
    this.#dropout = this.createChild('dropout', Dropout.config({ keepProb: 1 - hp.outputDropoutProb }));
  }

  /** Tokens [B, N, hiddenDim] to [B, outputDim], or to [B, N, outputDim] where `pooled` is not set. */
  fprop(inputs: Tensor): Tensor {
    const layers = [this.#norm, this.#pooling, this.#projection, this.#dropout];
    const taken = this.hp.useClsToken ? firstToken(inputs) : inputs;
    return layers.reduce((x, layer) => (layer ? layer.fprop(x) : x), taken);
  }
}

/** A transformer over patches of images (Dosovitskiy et al., 2021): entry, stack and exit, each a template. */
export class VisionTransformer extends BaseLayer.with({
  entryLayersTpl: sub(VitEntryLayers).nullable().describe('From images to tokens; null: inputs are tokens.'),
  transformerLayersTpl: sub(StackedTransformer).describe('The stack.'),
  exitLayersTpl: sub(VitExitLayers).nullable().describe('From tokens to outputs; null: outputs are tokens.'),
}) {
  #entry: VitEntryLayers | null = null;
  #stack!: StackedTransformer;
  #exit: VitExitLayers | null = null;

  protected override setup(): void {
    const { entryLayersTpl, transformerLayersTpl, exitLayersTpl } = this.hp;
    if (entryLayersTpl) this.#entry = this.createChild('entry_stack', entryLayersTpl);
    this.#stack = this.createChild('transformers_stack', transformerLayersTpl);
    if (exitLayersTpl) this.#exit = this.createChild('exit_stack', exitLayersTpl);
  }

  /** The tokens of images [B, H, W, C] or patches [B, N, D], with positions: the input of the stack. */
  tokens(inputs: Tensor): Tensor {
    return this.#entry ? this.#entry.fprop(inputs) : inputs;
  }

  /** The outputs of some tokens. @param paddings [B, N], 1 for those that no other sees */
  encode(tokens: Tensor, paddings?: Tensor): Tensor {
    const features = this.#stack.fprop(tokens, paddings ? { seen: { paddings }, paddings } : {});
    return this.#exit ? this.#exit.fprop(features) : features;
  }

  /**
   * Images [B, H, W, C], or patches [B, N, D], to [B, outputDim], or to tokens.
   *
   * @param paddings [B, N], 1 for patches that no other sees; pooling counts them, as Pax's does.
   */
  fprop(inputs: Tensor, paddings?: Tensor): Tensor {
    return this.encode(this.tokens(inputs), paddings);
  }
}
