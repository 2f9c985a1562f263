/** @file TransformerFeedForwardMoe: a feed-forward layer of experts, of which each token takes a few (praxis/layers/transformers.py). */
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { build } from '../../hparams/index.js';
import { activationLayer, type BaseActivation, GELU } from '../activations.js';
import { bothOf, selected, unpadded, weighedRows } from '../core/masks.js';
import { constantInit, Uniform, type WeightInit } from '../core/weightInit.js';
import { type Theta, WeightCollection } from '../core/weights.js';
import { TransformerFeedForward } from '../transformer/feedForwards.js';
import { expertFields } from './expertFields.js';
import {
  type Choices,
  chooseExperts,
  type Dispatch,
  deadUnits,
  dispatchByExperts,
  dispatchChoices,
  expertOfRows,
  loadBalanceLoss,
  overCapacity,
} from './gating.js';

/** Matrices of the experts. */
type ExpertWeight = 'wi_0' | 'wi_gate_0' | 'wo_0';

/**
 * Experts E in the place of the two layers of a TransformerFeedForward: Σ gate_e(x) activation(x wi_0[e]) wo_0[e] over the
 * experts that take x (GShard, Lepikhin et al., 2020; expert choice, Zhou et al., 2022). Rows of one expert are multiplied as
 * one matrix of as many rows as it has tokens, so that no place is computed in vain.
 *
 * Without a capacity (`unadjustedExpertCapacityFactor` and `expertCapacityDim` 0) no token is dropped, and a token's output
 * depends on it alone. With one, and where experts choose or `shuffleTokens` or `moeGatingEmbeddingLevel: 'sentence'` is set, it
 * depends on the other tokens of its group, so that decoding and padding may change it.
 *
 * DeepSeek-V3's layer (2024, section 2.1.2) is `gatingFunc: 'topk'`, `routerScores: 'sigmoid'`, `biasUpdateRate: 0.001` and
 * `numSharedExperts: 1` without a capacity and, but for its small loss of each sequence, without a load-balancing loss.
 */
export class TransformerFeedForwardMoe extends TransformerFeedForward.with(expertFields) {
  declare readonly theta: Theta<
    'gate' | 'gate_bias' | 'shared_expert_gate' | ExpertWeight | `${ExpertWeight}_bias`
  >;
  protected activation!: BaseActivation;
  #linearPathActivation: BaseActivation | null = null;

  protected override createLayers(hiddenDims: number): void {
    const { hp } = this;
    const { inputDims, numExperts, numSharedExperts, numExpertsPerToken, gatingFunc } = hp;
    const least = gatingFunc === 'topk' ? numExpertsPerToken : gatingFunc.endsWith('top2') ? 2 : 1;
    if (numExperts < least)
      throw this.error(`numExperts is ${numExperts}: expected ${least} or more, as tokens take ${least}.`);
    this.#checkExpertGroups();
    const fanIn = (size: number): { init?: WeightInit } =>
      hp.internalGshardVarianceScalingFanInInit
        ? { init: build(Uniform.config({ scale: Math.sqrt(3 / size) })) }
        : {};
    const axes = { fanInAxes: [-2], fanOutAxes: [-1] };
    this.createVariable('gate', { shape: [inputDims, numExperts], ...fanIn(inputDims) });
    if (hp.hasRouterBias) this.createVariable('gate_bias', { shape: [numExperts], init: constantInit(0) });
    const create = (name: ExpertWeight, rows: number, columns: number, init = fanIn(rows)): void => {
      this.createVariable(name, { shape: [numExperts, rows, columns], ...axes, ...init });
      if (hp.hasExpertBias)
        this.createVariable(`${name}_bias`, { shape: [numExperts, columns], init: constantInit(0) });
    };
    if (hp.useGatedActivation) create('wi_gate_0', inputDims, hiddenDims);
    create('wi_0', inputDims, hiddenDims);
    create('wo_0', hiddenDims, inputDims, hp.outputProjInit ? { init: build(hp.outputProjInit) } : undefined);
    if (hp.biasUpdateRate > 0)
      this.createVariable('expert_bias', {
        shape: [numExperts],
        init: constantInit(0),
        collections: [WeightCollection.NON_TRAINABLE],
      });
    this.activation = this.createChild('activation', activationLayer(hp.activationTpl));
    if (hp.linearPathActivationTpl)
      this.#linearPathActivation = this.createChild('linear_path_activation', hp.linearPathActivationTpl);
    if (hp.useSharedExpertGate && numSharedExperts === 0)
      throw this.error('useSharedExpertGate is set, and numSharedExperts is 0.');
    if (hp.useSharedExpertGate) this.createVariable('shared_expert_gate', { shape: [inputDims, 1] });
    if (numSharedExperts > 0) super.createLayers(numSharedExperts * hiddenDims);
    else this.createReluDropout();
  }

  #checkExpertGroups(): void {
    const { numExperts, numExpertGroups: count, numExpertGroupsPerToken: taken, ...hp } = this.hp;
    if (count === 1) return;
    const size = numExperts / count;
    if (hp.gatingFunc !== 'topk')
      throw this.error(`numExpertGroups is ${count}, and gatingFunc '${hp.gatingFunc}': expected 'topk'.`);
    if (!Number.isInteger(size) || size < 2)
      throw this.error(
        `numExperts is ${numExperts}: expected 2 or more for each of numExpertGroups ${count}.`,
      );
    if (taken > count || taken * size < hp.numExpertsPerToken)
      throw this.error(
        `numExpertGroupsPerToken is ${taken}: expected ${Math.ceil(hp.numExpertsPerToken / size)} to ${count}, as tokens take ` +
          `${hp.numExpertsPerToken} experts from groups of ${size}.`,
      );
  }

  /** @param x [..., inputDims]. @param paddings as in fprop: no expert takes padding. */
  protected override branch(x: Tensor, paddings?: Tensor): Tensor {
    if (x.size === 0) return x;
    const { numSharedExperts, useSharedExpertGate, routedScalingFactor } = this.hp;
    const routed = tf.reshape(this.experts(x, paddings), x.shape);
    const scaled = routedScalingFactor === 1 ? routed : tf.mul(routed, routedScalingFactor);
    if (numSharedExperts === 0) return scaled;
    const shared = super.branch(x);
    if (!useSharedExpertGate) return tf.add(scaled, shared);
    return tf.add(scaled, tf.mul(shared, tf.sigmoid(tf.matMul(x, this.theta.shared_expert_gate))));
  }

  /** Sum over the experts that take each token: [..., inputDims] to [N, inputDims]. */
  protected experts(x: Tensor, paddings: Tensor | undefined): Tensor {
    const { inputDims } = this.hp;
    const rows = tf.reshape(x, [-1, inputDims]) as Tensor;
    const { tokens, sizes, weights } = this.dispatch(x, rows.shape[0]!, paddings);
    const taken = tf.gather(rows, tokens as tf.Tensor1D) as Tensor;
    const results = this.#product('wo_0', this.expertHidden(taken, sizes), sizes);
    const weighed = tf.mul(results, tf.expandDims(weights, 1));
    return tf.unsortedSegmentSum(weighed as tf.Tensor2D, tokens as tf.Tensor1D, rows.shape[0]!);
  }

  /** Hidden units of the experts' rows, after dropout: [R, inputDims] to [R, hiddenDims]. */
  protected expertHidden(rows: Tensor, sizes: Tensor): Tensor {
    const inner = this.#product('wi_0', rows, sizes);
    const gate = this.hp.useGatedActivation ? this.#product('wi_gate_0', rows, sizes) : null;
    this.#countDead(gate ?? inner, sizes);
    if (!gate) return this.reluDropout.fprop(this.activation.fprop(inner));
    const linear = this.#linearPathActivation?.fprop(inner) ?? inner;
    return this.reluDropout.fprop(tf.mul(this.activation.fprop(gate), linear));
  }

  /** Rows times their expert's matrix, plus its bias. */
  #product(weight: ExpertWeight, rows: Tensor, sizes: Tensor): Tensor {
    const product = ops.groupedMatMul(rows, this.theta[weight], sizes);
    if (!this.hp.hasExpertBias) return product;
    // Rows behind those of the last expert have a weight of 0, so that any bias does.
    const expert = tf.minimum(
      expertOfRows(sizes, rows.shape[0]!),
      tf.scalar(this.hp.numExperts - 1, 'int32'),
    );
    return tf.add(product, tf.gather(this.theta[`${weight}_bias`], expert as tf.Tensor1D));
  }

  #countDead(hidden: Tensor, sizes: Tensor): void {
    if (!this.hp.countDeadNeurons) return;
    const threshold = this.activation instanceof GELU ? -3 : 0;
    const { name } = this.activation.constructor;
    this.addSummary(`dead_${name}_count`, () => deadUnits(hidden, sizes, threshold));
  }

  /** The rows that experts compute of x [..., inputDims], which are `count` tokens. */
  protected dispatch(x: Tensor, count: number, paddings: Tensor | undefined): Dispatch {
    const { hp } = this;
    const groups = this.#groups(count);
    const order = hp.shuffleTokens && !this.doEval ? ops.permutation(this.nextPrngKey(), count) : undefined;
    const inGroups = (values: Tensor, depth: number): Tensor => {
      const flat = tf.reshape(values, [count, depth]) as Tensor;
      return tf.reshape(order ? tf.gather(flat, order as tf.Tensor1D) : flat, [
        groups,
        count / groups,
        depth,
      ]);
    };
    const kept = paddings && unpadded(this, paddings, x.shape.slice(0, -1));
    const logits = this.routerLogits(x, kept);
    const flags = (values: Tensor | undefined): Tensor | undefined =>
      values && inGroups(tf.broadcastTo(values as Tensor, x.shape.slice(0, -1)) as Tensor, 1);
    const grouped = inGroups(logits, hp.numExperts);
    const dispatch = this.#route(grouped, flags(kept), this.#counted(x, flags(kept), flags));
    return order ? { ...dispatch, tokens: tf.gather(order, dispatch.tokens as tf.Tensor1D) } : dispatch;
  }

  /** Logits of the experts, [..., E], for x [..., inputDims]. @param kept bool [...]: what is no padding */
  protected routerLogits(x: Tensor, kept: Tensor | undefined): Tensor {
    const { moeGatingEmbeddingLevel, hasRouterBias, gatingLogitCap: cap } = this.hp;
    let routed = x;
    if (moeGatingEmbeddingLevel === 'sentence') {
      const counts = kept
        ? tf.expandDims(tf.cast(kept, 'float32'), -1)
        : tf.onesLike(tf.slice(x, 0, [...x.shape.slice(0, -1), 1]));
      const sums = tf.sum(kept ? selected(x, tf.expandDims(kept, -1)) : x, -2, true);
      routed = tf.broadcastTo(tf.div(sums, tf.maximum(tf.sum(counts, -2, true), 1)) as Tensor, x.shape);
    }
    const products = tf.matMul(routed, this.theta.gate);
    const logits = hasRouterBias ? tf.add(products, this.theta.gate_bias) : products;
    return cap > 0 ? tf.mul(tf.tanh(tf.div(logits, cap)), cap) : logits;
  }

  /** @param logits [G, S, E]. @param kept, @param counted bool [G, S, 1]: no padding; tokens that statistics count */
  #route(logits: Tensor, kept: Tensor | undefined, counted: Tensor | undefined): Dispatch {
    const { hp } = this;
    const size = logits.shape[1]!;
    const scores = hp.routerScores === 'softmax' ? tf.softmax(logits) : tf.sigmoid(logits);
    this.#addZLoss(logits, counted);
    if (hp.gatingFunc === 'expert_choice' || hp.gatingFunc === 'expert_choice_v2') {
      const { unadjustedExpertCapacityFactor: factor, numExperts } = hp;
      const taken =
        hp.gatingFunc === 'expert_choice'
          ? Math.floor(Math.floor(size / numExperts) * factor)
          : this.capacity(size);
      return dispatchByExperts({ scores, kept }, Math.max(1, Math.min(size, taken)));
    }
    const choices = this.#choose(scores, logits, kept);
    if (hp.gatingFunc === 'dense_top2') return dispatchChoices(choices, size);
    const capacity = this.capacity(size);
    this.#addStatistics(choices, scores, counted, capacity);
    return dispatchChoices(choices, capacity);
  }

  #choose(scores: Tensor, logits: Tensor, kept: Tensor | undefined): Choices {
    const { gatingFunc, numExpertsPerToken, biasUpdateRate, secondExpertThreshold: threshold } = this.hp;
    const { numExpertGroups: count, numExpertGroupsPerToken: taken } = this.hp;
    const policy = gatingFunc === 'top2' && !this.doEval ? this.hp.secondExpertPolicy : 'all';
    return chooseExperts(
      { scores, kept },
      {
        k: gatingFunc === 'topk' ? numExpertsPerToken : 2,
        bias: biasUpdateRate > 0 ? this.getVar('expert_bias') : undefined,
        groups: count > 1 ? { count, taken } : undefined,
        sampled: policy === 'sampling' ? { key: this.nextPrngKey(), logits } : undefined,
        thinned: policy === 'random' ? { key: this.nextPrngKey(), threshold } : undefined,
      },
    );
  }

  /** Most tokens of a group of `size` that an expert takes. */
  protected capacity(size: number): number {
    const { unadjustedExpertCapacityFactor: factor, expertCapacityDim, numExperts } = this.hp;
    if (factor === 0) return expertCapacityDim === 0 ? size : expertCapacityDim;
    // A few tokens, as in decoding, have a place.
    const even = Math.max(1, Math.floor((size * factor) / numExperts));
    return expertCapacityDim >= even ? expertCapacityDim : Math.ceil(even / 4) * 4;
  }

  #groups(count: number): number {
    const { numGroups, minGroupSize } = this.hp;
    const groups =
      minGroupSize !== null && count / numGroups < minGroupSize ? Math.ceil(count / minGroupSize) : numGroups;
    if (count % groups !== 0)
      throw this.error(`the ${count} tokens of a batch do not divide into numGroups ${groups} equal groups.`);
    return groups;
  }

  /** Tokens that count in statistics: no padding, and in rows of a weight other than 0. */
  #counted(
    x: Tensor,
    kept: Tensor | undefined,
    flags: (values: Tensor | undefined) => Tensor | undefined,
  ): Tensor | undefined {
    const rows = weighedRows(this, x);
    return bothOf(kept, rows && flags(tf.squeeze(rows, [-1]) as Tensor));
  }

  #addZLoss(logits: Tensor, counted: Tensor | undefined): void {
    const { routerZLossWeight } = this.hp;
    if (routerZLossWeight === 0) return;
    const squares = tf.square(tf.logSumExp(logits, -1, true)) as Tensor;
    const sum = tf.sum(counted ? selected(squares, counted) : squares);
    const count = counted ? tf.maximum(tf.sum(tf.cast(counted, 'float32')), 1) : squares.size;
    const loss = tf.mul(tf.div(sum, count), routerZLossWeight) as Tensor;
    this.addSummary('aux_moe_router_z_loss', () => loss);
    this.addAuxLoss('aux_moe_router_z_loss', loss);
  }

  /** Reports the load, adds its loss, and moves the bias towards an even one. */
  #addStatistics({ masks }: Choices, scores: Tensor, counted: Tensor | undefined, capacity: number): void {
    const { moeLoadBalanceLossWeight: weight, biasUpdateRate, routerScores } = this.hp;
    const [groups, k, size, experts] = masks.shape as [number, number, number, number];
    for (let i = 0; i < k && capacity < size; i++)
      this.addSummary(`over_capacity_${i + 1}_ratio`, () => overCapacity(masks, i, capacity));
    if (weight > 0) {
      const first = tf.reshape(tf.slice(masks, 0, [groups, 1, size, experts]), [
        groups,
        size,
        experts,
      ]) as Tensor;
      const probabilities =
        routerScores === 'softmax'
          ? scores
          : (tf.div(scores, tf.add(tf.sum(scores, -1, true), 1e-9)) as Tensor);
      const loss = tf.mul(loadBalanceLoss(first, probabilities, counted), weight) as Tensor;
      this.addSummary('aux_moe_load_balance_loss', () => loss);
      this.addAuxLoss('aux_moe_load_balance_loss', loss);
    }
    if (biasUpdateRate === 0 || this.doEval) return;
    const load = tf.sum(counted ? selected(masks, tf.expandDims(counted, 1)) : masks, [0, 1, 2]);
    const step = tf.mul(tf.sign(tf.sub(tf.mean(load), load)), biasUpdateRate);
    this.updateVar('expert_bias', tf.add(this.getVar('expert_bias'), step));
  }
}
