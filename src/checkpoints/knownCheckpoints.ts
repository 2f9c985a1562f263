/** @file Cache of the metadata by which retention chooses: read once from each checkpoint of a directory, and told where it can't be read. */
import { join } from 'node:path';
import { isThere } from '../files/index.js';
import { readMetadata } from './checkedFiles.js';
import { CheckpointError } from './checkpointErrors.js';
import type { SavedCheckpoint } from './retention.js';

export class KnownCheckpoints {
  readonly #known = new Map<number, SavedCheckpoint>();
  /** Steps whose checkpoints could not be read, which has been told. */
  readonly #reported = new Set<number>();

  constructor(
    private readonly directory: string,
    private readonly tell: (error: CheckpointError) => void,
  ) {}

  /** Adds a checkpoint that is being saved. */
  add(checkpoint: SavedCheckpoint): void {
    this.#known.set(checkpoint.step, checkpoint);
  }

  /** Forgets a checkpoint that could not be saved. */
  forget(step: number): void {
    this.#known.delete(step);
  }

  /** A checkpoint of the directory; undefined for one that can't be read, which is told once. */
  of(step: number, name: string): SavedCheckpoint | undefined {
    const known = this.#known.get(step);
    if (known !== undefined) return known;
    const path = join(this.directory, name);
    try {
      const { savedAt, isGood = true } = readMetadata(path);
      const described = { step, savedAt: Date.parse(savedAt), isGood };
      this.add(described);
      return described;
    } catch (error) {
      // A trainer may have deleted it meanwhile.
      if (!(error instanceof CheckpointError)) throw error;
      if (!this.#reported.has(step) && isThere(path)) {
        this.#reported.add(step);
        const message = `Checkpoint ${path} cannot be read, and is kept:\n  ${error.message}`;
        this.tell(new CheckpointError(error.kind, error.path, error.problem, { message, cause: error }));
      }
      return undefined;
    }
  }
}
