/** @file Checkpoints: TrainState and its files, written by a worker, restored bit for bit or not at all. */

export { AveragedVariables } from './averagedVariables.js';
export { isAxisOrder, orderAxes, storedShape, storeElements } from './axes.js';
export { isComplete, readBeside, readMetadata } from './checkedFiles.js';
export { CheckpointError } from './checkpointErrors.js';
export {
  Checkpointer,
  type CheckpointerOptions,
  type RestoredCheckpoint,
  type RestoreOptions,
  type SaveOptions,
  type StateWriters,
} from './checkpointer.js';
export { planRestore, type RestorePlan, type StateLayouts } from './compatibility.js';
export { checkpointName, listCheckpoints, stepOfName } from './directory.js';
export { createStateFile, type FilePart } from './filePart.js';
export {
  type GgufEntry,
  GgufFile,
  type GgufMetadata,
  type GgufTensor,
  type GgufValue,
  ggmlBlock,
  type WrittenGgmlType,
  writeGguf,
  writtenGgmlTypes,
} from './gguf/index.js';
export { type Lease, leaseCheckpoint } from './leases.js';
export { locateCheckpoint } from './locate.js';
export { MatchingRestore, matchTensors, type TensorMatch } from './matchingRestore.js';
export {
  type BestCheckpoint,
  type CheckpointDescription,
  describeState,
  STATE_FILE,
  slotsOf,
} from './metadata.js';
export { PIECE_BYTES, type Piece, piecesOf } from './pipelinedFile.js';
export { readRange } from './readRange.js';
export { readCheckpoint, readTogether } from './restore.js';
export {
  type CheckpointPolicy,
  newestSteps,
  parseDuration,
  type RetentionOptions,
  type SavedCheckpoint,
  type SaveMoment,
  stepsToDelete,
} from './retention.js';
export { type ArrayTensor, encodeSafetensors } from './safetensors.js';
export { SafetensorsFile } from './safetensorsFile.js';
export { SavedVariables } from './savedVariables.js';
export type { SaveStatistics } from './saveMeter.js';
export { SaveThread } from './saveThread.js';
export { type StatePiece, StateRange } from './stateRange.js';
export type { Elements } from './storedElements.js';
export {
  createTrainState,
  STEP_TENSOR,
  stateFileLayout,
  stateTensors,
  type TrainState,
  tensorName,
} from './trainState.js';
export type { VariableSource } from './variableSource.js';
export { holdsWeights, WeightFiles } from './weightFiles.js';
export { writeParams } from './writeParams.js';
export { type WrittenTensor, writeTensors } from './writeTensors.js';
