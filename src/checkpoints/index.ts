/** @file Checkpoints: TrainState and its files, saved aside in a worker, restored bit for bit or not at all. */

export {
  Checkpointer,
  type CheckpointerOptions,
  type RestoredCheckpoint,
  type RestoreOptions,
  type SaveOptions,
} from './checkpointer.js';
export { checkpointName, stepOfName } from './directory.js';
export { CheckpointError, type CheckpointErrorKind, RESTORE_PREVIOUS_FLAG } from './errors.js';
export type { CheckpointMetadata } from './metadata.js';
export { type CheckpointContents, type ReadOptions, readCheckpoint, readMetadata } from './restore.js';
export { parseDuration, type RetentionOptions, type SavedCheckpoint, stepsToDelete } from './retention.js';
export type { SafetensorsDtype, SafetensorsLayout, TensorPlace, TensorSpec } from './safetensors.js';
export {
  type FileDigest,
  type NamedTensor,
  SafetensorsFile,
  type TensorArray,
  writeSafetensors,
} from './safetensorsFile.js';
export { createTrainState, type StateEntry, type StateLayout, type TrainState } from './trainState.js';
