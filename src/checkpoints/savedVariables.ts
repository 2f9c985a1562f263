/** @file Variables of a checkpoint, read one by one into a model that may have others. */
import { CheckpointError, ioError } from './checkpointErrors.js';
import { locateCheckpoint } from './locate.js';
import type { CheckpointMetadata } from './metadata.js';
import { openWholeState, readMetadata } from './restore.js';
import type { SafetensorsFile } from './safetensorsFile.js';
import { tensorName } from './trainState.js';

/** An open checkpoint whose files are whole. */
export class SavedVariables {
  private constructor(
    /** Directory of the checkpoint. */
    readonly path: string,
    readonly metadata: CheckpointMetadata,
    private readonly file: SafetensorsFile,
  ) {}

  /**
   * @param path a run's directory, its directory of checkpoints, or one checkpoint.
   * @param step of the checkpoint, or the best; undefined is the newest.
   * @throws CheckpointError where there is none, or it is damaged
   */
  static open(path: string, step?: number | 'best'): SavedVariables {
    const directory = locateCheckpoint(path, step);
    const metadata = readMetadata(directory);
    return new SavedVariables(directory, metadata, openWholeState(directory, metadata));
  }

  /**
   * Reads a variable, or an optimizer slot's value of it (`ema`), into `target` of as many elements.
   *
   * @throws CheckpointError where the file can't be read or has no such tensor
   */
  readInto(slot: string | null, variable: string, target: Float32Array): void {
    try {
      this.file.readInto(tensorName(slot, variable), target);
    } catch (cause) {
      if (cause instanceof CheckpointError) throw cause;
      throw ioError(this.file.path, 'cannot be read', cause);
    }
  }

  close(): void {
    this.file.close();
  }
}
