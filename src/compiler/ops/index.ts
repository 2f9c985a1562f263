/** @file Luthier's own operations, which layers call beside tf.*. */
export { sumOfChunks } from '../control/chunks.js';
export { cond, type WhileOptions, whileLoop } from '../control/cond.js';
export { type ScanOptions, scan } from '../control/scan.js';
export { hostConstant } from '../trace/tracing.js';
export { type AttentionOptions, attention, type WeightDropout } from './attention.js';
export { attentionLogits } from './attentionForms.js';
export { type CheckpointPolicy, checkpoint, checkpointName } from './checkpoint.js';
export { softmaxCrossEntropy } from './crossEntropy.js';
export {
  bernoulli,
  categorical,
  gumbel,
  permutation,
  randomInt,
  randomNormal,
  splitKey,
  truncatedNormal,
} from './distributionOps.js';
export { embeddingLookup } from './embedding.js';
export { type Line, maxAffine, minAffine, nearestInteger, powerOfTwo } from './fewBits.js';
export { gelu } from './gelu.js';
export { groupedMatMul } from './groupedMatMul.js';
export type { Window } from './hiddenKeys.js';
export { layerNorm, type NormOptions, rmsNorm } from './norm.js';
export { type AttentionPart, attentionPart, joinParts } from './partialAttention.js';
export { CODE_BLOCK, type CodeBits, dequantize, type RowBits, roundRows } from './quantized.js';
export { dropout, foldIn, randomUniform } from './randomOps.js';
export { allGather, allReduce, ownPart } from './rankOperations.js';
export { roll } from './roll.js';
export { coalesceRows } from './rowGradients.js';
export { withSharding } from './shardingConstraint.js';
export { stopGradient } from './stopGradient.js';
export { stored } from './stored.js';
export { updateRows } from './updateRows.js';
export { updateSlice } from './updateSlice.js';
