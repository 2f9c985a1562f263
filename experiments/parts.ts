/** @file Parts that fit many experiments: a learner, and changes of transformers that `task()` makes to its config. */
import {
  Adam,
  type Config,
  DotProductAttention,
  deepCopy,
  Learner,
  LinearRampupCosineDecay,
  type SingleTask,
  select,
} from '../src/index.js';
import {
  PipelinedTransformer,
  StackedTransformer,
  StackedTransformerRepeated,
  TransformerFeedForwardMoe,
  TransformerLm,
} from '../src/layers/index.js';

/** Adam with clipped gradients, whose learning rate rises for `warmupSteps` and decays to a fiftieth until the last step. */
export function decayingAdam(constants: {
  readonly learningRate: number;
  readonly numTrainSteps: number;
  readonly warmupSteps?: number;
}): Config<Learner> {
  const { learningRate, numTrainSteps, warmupSteps = 100 } = constants;
  const decayEnd = Math.max(numTrainSteps, warmupSteps);
  const lrSchedule = LinearRampupCosineDecay.config({
    ...{ warmupSteps, decayStart: warmupSteps, decayEnd, minRatio: 0.02 },
  });
  return Learner.config({
    optimizer: Adam.config({ learningRate, lrSchedule, clipGradientNormToValue: 1 }),
  });
}

/** Whether a config is in no block or stage of a stack, which takes its fields from the stack. */
function isOwn(task: Config<SingleTask>, cls: typeof DotProductAttention | typeof StackedTransformer) {
  const inBlocks = [
    ...[...select(task, StackedTransformerRepeated)].map(({ block }) => block),
    ...[...select(task, PipelinedTransformer)].map(({ pipelineStage }) => pipelineStage),
  ].flatMap((part) => [...select(part, cls)]);
  return (config: unknown): boolean => !inBlocks.some((inBlock) => inBlock === config);
}

/** Rotary positions, in place of those that are added to embeddings. */
export function useRotaryPositions(task: Config<SingleTask>): void {
  for (const lm of select(task, TransformerLm)) lm.positionEmbTpl = null;
  for (const attention of [...select(task, DotProductAttention)].filter(isOwn(task, DotProductAttention)))
    attention.useRotaryPositionEmb = true;
}

/** Experts in each feed-forward layer, of which a token takes two, each half as wide as the layer was. */
export function useExperts(task: Config<SingleTask>, numExperts = 8): void {
  const pipelines = new Map([...select(task, PipelinedTransformer)].map((each) => [each as unknown, each]));
  for (const stack of [...select(task, StackedTransformer)].filter(isOwn(task, StackedTransformer))) {
    const { numPipelineStages = 1, circularRepeat = 1 } = pipelines.get(stack) ?? {};
    // Of a pipeline, the layers of a stage.
    const layers = stack.numLayers / (numPipelineStages * circularRepeat);
    const { activationTpl, useGatedActivation, lnTpl } = stack.transformerLayerParamsTpl.trFflayerTpl;
    const like = { activationTpl: deepCopy(activationTpl), useGatedActivation, lnTpl: deepCopy(lnTpl) };
    const loss = { unadjustedExpertCapacityFactor: 0, moeLoadBalanceLossWeight: 0.01 };
    const hiddenDims = stack.hiddenDims / 2;
    stack.moeLayerTpl = TransformerFeedForwardMoe.config({ ...like, ...loss, hiddenDims });
    stack.moeLayers = [...Array(layers).keys()];
    stack.numExperts = numExperts;
  }
}
