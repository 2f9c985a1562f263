/** @file Checkpoints: TrainState and its files, saved aside in a worker, restored bit for bit or not at all. */

export {
  Checkpointer,
  type CheckpointerOptions,
  type RestoredCheckpoint,
  type RestoreOptions,
  type SaveOptions,
} from './checkpointer.js';
export { stepOfName } from './directory.js';
export { CheckpointError } from './errors.js';
export { readCheckpoint } from './restore.js';
export { parseDuration, type RetentionOptions, type SavedCheckpoint, stepsToDelete } from './retention.js';
export { SafetensorsFile } from './safetensorsFile.js';
export { createTrainState, type TrainState } from './trainState.js';
