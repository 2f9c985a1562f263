/** @file Means of the variables of a run's last checkpoints (Vaswani et al., 2017, section 6.1). */
import { dirname, join } from 'node:path';
import type { AxisOrder } from './axes.js';
import { CheckpointError } from './checkpointErrors.js';
import { listCheckpoints } from './directory.js';
import { locateCheckpoint } from './locate.js';
import { SavedVariables } from './savedVariables.js';
import type { VariableSource } from './variableSource.js';

/** Open checkpoints, each variable of which is their mean; beside it, a variable is in memory once more as float64. */
export class AveragedVariables implements VariableSource {
  private constructor(
    /** Directory of the newest checkpoint. */
    readonly path: string,
    private readonly checkpoints: readonly SavedVariables[],
  ) {}

  /**
   * @param path a run's directory, or its directory of checkpoints. @param count how many, from the newest back.
   * @throws CheckpointError where there are fewer, one is damaged, or they have not the same variables
   */
  static open(path: string, count: number): AveragedVariables {
    const newest = locateCheckpoint(path);
    const directory = dirname(newest);
    const names = [...listCheckpoints(directory).values()].slice(-count);
    if (newest === path || names.length < count) {
      const found = newest === path ? 'it is one' : `there are ${names.length}`;
      throw new CheckpointError('missing', path, `expected ${count} checkpoints to average; ${found}`);
    }
    const checkpoints: SavedVariables[] = [];
    try {
      for (const name of names) checkpoints.push(SavedVariables.open(join(directory, name)));
      const shapes = (of: SavedVariables) => new Map(of.names.map((each) => [each, `${of.shapeOf(each)}`]));
      const last = shapes(checkpoints.at(-1)!);
      for (const each of checkpoints) {
        const own = shapes(each);
        const other = [...new Set([...last.keys(), ...own.keys()])].find(
          (name) => last.get(name) !== own.get(name),
        );
        if (other !== undefined)
          throw new CheckpointError(
            'mismatch',
            each.path,
            `its variable '${other}' is not that of ${newest}`,
          );
      }
      return new AveragedVariables(newest, checkpoints);
    } catch (error) {
      for (const each of checkpoints) each.close();
      throw error;
    }
  }

  get names(): readonly string[] {
    return this.#newest.names;
  }

  get origin(): Readonly<Record<string, string | number>> {
    return { ...this.#newest.origin, checkpoints: this.checkpoints.length };
  }

  shapeOf(name: string): readonly number[] | undefined {
    return this.#newest.shapeOf(name);
  }

  dtypeProblem(name: string): string | undefined {
    return this.#newest.dtypeProblem(name);
  }

  readInto(name: string, target: Float32Array, order?: AxisOrder): void {
    const sum = new Float64Array(target.length);
    for (const each of this.checkpoints) {
      each.readInto(name, target, order);
      for (const [i, value] of target.entries()) sum[i]! += value;
    }
    for (const [i, value] of sum.entries()) target[i] = value / this.checkpoints.length;
  }

  areEqual(a: string, b: string): boolean {
    return this.checkpoints.every((each) => each.areEqual(a, b));
  }

  close(): void {
    for (const each of this.checkpoints) each.close();
  }

  get #newest(): SavedVariables {
    return this.checkpoints.at(-1)!;
  }
}
