/** @file Parts that fit any experiment with a transformer: its `task()` calls these functions on its config. */
import { type Config, DotProductAttention, deepCopy, type SingleTask, select } from '../src/index.js';
import { StackedTransformer, TransformerFeedForwardMoe, TransformerLm } from '../src/layers/index.js';

/** Rotary positions, in place of those that are added to embeddings. */
export function useRotaryPositions(task: Config<SingleTask>): void {
  for (const lm of select(task, TransformerLm)) lm.positionEmbTpl = null;
  for (const attention of select(task, DotProductAttention)) attention.useRotaryPositionEmb = true;
}

/** Experts in each feed-forward layer, of which a token takes two, each half as wide as the layer was. */
export function useExperts(task: Config<SingleTask>, numExperts = 8): void {
  for (const stack of select(task, StackedTransformer)) {
    const { activationTpl, useGatedActivation, lnTpl } = stack.transformerLayerParamsTpl.trFflayerTpl;
    const like = { activationTpl: deepCopy(activationTpl), useGatedActivation, lnTpl: deepCopy(lnTpl) };
    const loss = { unadjustedExpertCapacityFactor: 0, moeLoadBalanceLossWeight: 0.01 };
    const hiddenDims = stack.hiddenDims / 2;
    stack.moeLayerTpl = TransformerFeedForwardMoe.config({ ...like, ...loss, hiddenDims });
    stack.moeLayers = [...Array(stack.numLayers).keys()];
    stack.numExperts = numExperts;
  }
}
