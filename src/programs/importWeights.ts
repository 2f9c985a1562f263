/** @file Published weights as the first checkpoint of a run, read and written tensor by tensor. */
import { join } from 'node:path';
import {
  type Elements,
  PIECE_BYTES,
  type Piece,
  type WeightFiles,
  type WrittenTensor,
  writeParams,
  writeTensors,
} from '../checkpoints/index.js';
import {
  type FlatArray,
  type FlatLayout,
  flatArrayType,
  type NarrowType,
  sizeOf,
} from '../compiler/index.js';
import { loadMapFile } from '../files/index.js';
import { build } from '../hparams/index.js';
import { LORA_VARIABLES } from '../layers/index.js';
import { wholePath } from '../learners/index.js';
import type { NameRules } from '../models/index.js';
import { applyRule, CheckpointLoadingRules, type SingleTask } from '../tasks/index.js';
import { adapterNames } from './adapterNames.js';
import { type Reading, VariableMatcher } from './loadedVariables.js';
import { type KnownShapes, keptTensors } from './writtenTensors.js';

/** Pieces of so many elements. @param elements says how many to take at once */
function* pieces(
  length: number,
  storage: NarrowType | undefined,
  fill: (target: FlatArray, from: number) => void,
  elements?: Elements,
): Generator<Piece> {
  const Elements = flatArrayType(storage ?? 'float32');
  const size = Elements.BYTES_PER_ELEMENT;
  const room = PIECE_BYTES / size;
  const most = elements?.stretch(room) ?? room;
  for (let at = 0; at < length; at += most) {
    const count = Math.min(most, length - at);
    yield {
      byteLength: count * size,
      write: ({ buffer, byteOffset }) => fill(new Elements(buffer as ArrayBuffer, byteOffset, count), at),
    };
  }
}

/** A variable's source. */
interface Given {
  readonly source: WeightFiles;
  readonly readings: readonly Reading[];
}

/** Published weights, with the variables that they give. */
export class ImportedWeights {
  /** Reasons why they are not the model's, a line each. */
  readonly problems: readonly string[];
  readonly #layout: FlatLayout;
  readonly #variables = new Map<string, Given>();

  /**
   * Finds each variable of a task in weights; nothing is read yet.
   *
   * @param ignoreTensors patterns of tensors that may be left over.
   * @param adapter weights of an adapter of PEFT; factors that it lacks are 0, and training leaves them so.
   */
  constructor(
    task: SingleTask,
    private readonly source: WeightFiles,
    private readonly names: NameRules,
    ignoreTensors: readonly string[],
    adapter?: WeightFiles,
  ) {
    this.#layout = task.layout();
    const isFactor = ({ name }: { readonly name: string }) => wholePath(LORA_VARIABLES).test(name);
    const problems = this.#match(source, names, ignoreTensors, (entry) => !isFactor(entry));
    if (adapter !== undefined) {
      const factors = adapterNames(task.model, names);
      const has = (name: string): boolean =>
        factors.names.rules.some(
          (rule) => applyRule(rule, name) !== undefined && isThere(adapter, factors.names, rule[1]),
        );
      problems.push(
        ...factors.problems,
        ...this.#match(adapter, factors.names, [], (entry) => isFactor(entry) && has(entry.name)),
      );
    }
    this.problems = problems;
  }

  #match(
    source: WeightFiles,
    names: NameRules,
    ignoreTensors: readonly string[],
    isOfSource: (entry: FlatLayout['entries'][number]) => boolean,
  ): string[] {
    const rules = CheckpointLoadingRules.config({
      checkpoint: source.path,
      ignoreTensors: [...ignoreTensors],
    });
    const entries = this.#layout.entries.filter(isOfSource);
    const matcher = new VariableMatcher(build(rules), source, names, { ...this.#layout, entries });
    for (const [name, readings] of matcher.match()) this.#variables.set(name, { source, readings });
    return [...matcher.problems];
  }

  /**
   * Writes the checkpoint of step 0. Beside it, no more is in memory than the largest tensor.
   *
   * @param experiment name of the run's experiment. @throws CheckpointError where files can't be read or written
   */
  async write(jobLogDir: string, experiment: string): Promise<void> {
    const [layout, variables, map] = [this.#layout, this.#variables, await loadMapFile()];
    const entries = new Map(layout.entries.map((entry) => [entry.name, entry]));
    function* values(variable: string): Generator<Piece> {
      const { storage, size } = entries.get(variable)!;
      const given = variables.get(variable);
      if (given === undefined) yield* pieces(size, storage, (target) => target.fill(0));
      for (const { tensor, order, length } of given?.readings ?? []) {
        const elements = given!.source.elements(tensor, order, map);
        yield* pieces(length, storage, (target, from) => elements.fill(target, from, storage), elements);
        elements.release();
      }
    }
    await writeParams({ directory: join(jobLogDir, 'checkpoints'), experiment, layout, values });
  }

  /** Writes the tensors that exports have and the model does without, if there are any. @throws as `write` */
  writeKept(path: string): void {
    const { source, names } = this;
    const readings = Array.from(this.#variables.values(), (given) => given.readings).flat();
    const kept = keptTensors(source.names, names, new Set(readings.map(({ tensor }) => tensor)));
    if (kept.length > 0)
      writeTensors(
        path,
        kept.map((name) => asStored(source, name, 'float32')),
        {},
      );
  }

  /** Shapes of the model's tensors by name. */
  get shapes(): KnownShapes {
    const { source } = this;
    return Object.fromEntries(source.names.map((name) => [name, source.shapeOf(name)!]));
  }

  /** Tensors of heads of multi-token prediction, which are left out. */
  get predictionHeads(): readonly string[] {
    const { prefixes, predictionHeads = [] } = this.names;
    const patterns = ['', ...prefixes].flatMap((prefix) =>
      predictionHeads.map((head) => [prefix, wholePath(head)] as const),
    );
    return this.source.names.filter((name) =>
      patterns.some(
        ([prefix, pattern]) => name.startsWith(prefix) && pattern.test(name.slice(prefix.length)),
      ),
    );
  }

  /** Parameters of the model. */
  get count(): number {
    return this.#layout.entries.reduce((sum, { size }) => sum + size, 0);
  }
}

/** Whether weights have a tensor, with or without a prefix. */
const isThere = (source: WeightFiles, { prefixes }: NameRules, tensor: string): boolean =>
  ['', ...prefixes].some((prefix) => source.shapeOf(prefix + tensor) !== undefined);

/** A tensor of published weights, to write it as it came. */
export const asStored = (source: WeightFiles, name: string, dtype: WrittenTensor['dtype']): WrittenTensor => {
  const shape = source.shapeOf(name)!;
  const values = () => {
    const floats = new Float32Array(sizeOf(shape));
    source.readInto(name, floats);
    return floats;
  };
  return { name, shape, dtype, values };
};
