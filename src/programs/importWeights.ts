/** @file Published weights as the first checkpoint of a run, read and written tensor by tensor. */
import { join } from 'node:path';
import { type WeightFiles, writeParams } from '../checkpoints/index.js';
import { type FlatArray, type FlatLayout, narrow } from '../compiler/index.js';
import { build } from '../hparams/index.js';
import type { NameRules } from '../models/index.js';
import { CheckpointLoadingRules, type SingleTask } from '../tasks/index.js';
import { type Reading, VariableMatcher } from './loadedVariables.js';

/** Elements that are narrowed at once. */
const PIECE = 1 << 20;

/** Published weights, with the variables that they give. */
export class ImportedWeights {
  /** Reasons why they are not the model's, a line each. */
  readonly problems: readonly string[];
  readonly #layout: FlatLayout;
  readonly #variables: ReadonlyMap<string, readonly Reading[]>;

  /**
   * Finds each variable of a task in weights; nothing is read yet.
   *
   * @param ignoreTensors patterns of tensors that may be left over.
   */
  constructor(
    task: SingleTask,
    private readonly source: WeightFiles,
    names: NameRules,
    ignoreTensors: readonly string[],
  ) {
    const rules = CheckpointLoadingRules.config({
      checkpoint: source.path,
      ignoreTensors: [...ignoreTensors],
    });
    this.#layout = task.layout();
    const matcher = new VariableMatcher(build(rules), source, names, this.#layout);
    this.#variables = matcher.match();
    this.problems = matcher.problems;
  }

  /**
   * Writes the checkpoint of step 0. Beside it, no more is in memory than the largest tensor as float32.
   *
   * @param experiment name of the run's experiment. @throws CheckpointError where files can't be read or written
   */
  write(jobLogDir: string, experiment: string): void {
    const { source } = this;
    const [layout, variables] = [this.#layout, this.#variables];
    const storages = new Map(layout.entries.map(({ name, storage }) => [name, storage]));
    const most = Math.max(...[...variables.values()].flat().map(({ length }) => length));
    const buffer = new Float32Array(most);
    function* values(variable: string): Generator<FlatArray> {
      const storage = storages.get(variable);
      for (const { tensor, order, length } of variables.get(variable)!) {
        const floats = buffer.subarray(0, length);
        source.readInto(tensor, floats, order);
        if (storage === undefined) yield floats;
        else
          for (let at = 0; at < length; at += PIECE) yield narrow(floats.subarray(at, at + PIECE), storage);
      }
    }
    writeParams({ directory: join(jobLogDir, 'checkpoints'), experiment, layout, values });
  }

  /** Parameters of the model. */
  get count(): number {
    return this.#layout.entries.reduce((sum, { size }) => sum + size, 0);
  }

  close(): void {
    this.source.close();
  }
}
