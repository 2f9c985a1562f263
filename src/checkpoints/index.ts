/** @file Checkpoints: TrainState and its files, written by a worker, restored bit for bit or not at all. */

export { isAxisOrder, orderAxes, storedShape, storeElements } from './axes.js';
export { CheckpointError } from './checkpointErrors.js';
export {
  Checkpointer,
  type CheckpointerOptions,
  type RestoredCheckpoint,
  type RestoreOptions,
  type SaveOptions,
} from './checkpointer.js';
export { checkpointName, listCheckpoints, stepOfName } from './directory.js';
export { locateCheckpoint } from './locate.js';
export type { BestCheckpoint } from './metadata.js';
export { isComplete, readCheckpoint } from './restore.js';
export { parseDuration, type RetentionOptions, type SavedCheckpoint, stepsToDelete } from './retention.js';
export { type ArrayTensor, encodeSafetensors } from './safetensors.js';
export { SafetensorsFile } from './safetensorsFile.js';
export { SavedVariables } from './savedVariables.js';
export { createTrainState, type TrainState } from './trainState.js';
export type { VariableSource } from './variableSource.js';
export { holdsWeights, WeightFiles } from './weightFiles.js';
export { writeParams } from './writeParams.js';
export { type WrittenTensor, writeTensors } from './writeTensors.js';
