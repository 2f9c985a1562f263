/** @file Variables of a checkpoint, read one by one into a model that may have others. */
import type { AxisOrder } from './axes.js';
import { openWholeState, readMetadata } from './checkedFiles.js';
import { CheckpointError, ioError } from './checkpointErrors.js';
import { locateCheckpoint } from './locate.js';
import { type CheckpointMetadata, slotsOf } from './metadata.js';
import type { SafetensorsFile } from './safetensorsFile.js';
import { tensorName } from './trainState.js';
import type { VariableSource } from './variableSource.js';

/** An open checkpoint whose files are whole. Its names are paths of variables; `ema/<path>` is a slot's value of one. */
export class SavedVariables implements VariableSource {
  readonly names: readonly string[];
  readonly origin: Readonly<Record<string, string | number>>;

  private constructor(
    /** Directory of the checkpoint. */
    readonly path: string,
    private readonly metadata: CheckpointMetadata,
    private readonly file: SafetensorsFile,
  ) {
    this.names = Object.keys(metadata.variables);
    this.origin = { experiment: metadata.experiment, step: metadata.step };
  }

  /**
   * @param path a run's directory, its directory of checkpoints, or one checkpoint.
   * @param step of the checkpoint, or the best; undefined is the newest.
   * @throws CheckpointError if there is none, or it is damaged
   */
  static open(path: string, step?: number | 'best'): SavedVariables {
    const directory = locateCheckpoint(path, step);
    const metadata = readMetadata(directory);
    return new SavedVariables(directory, metadata, openWholeState(directory, metadata));
  }

  shapeOf(name: string): readonly number[] | undefined {
    const tensor = this.#tensorOf(name);
    return tensor === undefined ? undefined : this.file.place(tensor)?.shape;
  }

  dtypeProblem(name: string): string | undefined {
    return this.file.dtypeProblem(this.#tensorOf(name) ?? name);
  }

  readInto(name: string, target: Float32Array, order?: AxisOrder): void {
    try {
      this.file.readFloats(this.#tensorOf(name) ?? name, target, order);
    } catch (cause) {
      if (cause instanceof CheckpointError) throw cause;
      throw ioError(this.file.path, 'cannot be read', cause);
    }
  }

  areEqual(a: string, b: string): boolean {
    return this.file.isEqual(this.#tensorOf(a) ?? a, this.file, this.#tensorOf(b) ?? b);
  }

  close(): void {
    this.file.close();
  }

  #tensorOf(name: string): string | undefined {
    const { variables, slots } = this.metadata;
    if (Object.hasOwn(variables, name)) return tensorName(null, name);
    const slot = slots.find((each) => name.startsWith(`${each}/`));
    if (slot === undefined) return undefined;
    const variable = name.slice(slot.length + 1);
    if (!Object.hasOwn(variables, variable)) return undefined;
    // The average of a frozen variable is the variable.
    const has = slotsOf(this.metadata, variables[variable]!)[slot] !== undefined;
    return tensorName(has ? slot : null, variable);
  }
}
