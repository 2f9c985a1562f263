/** @file Batch memory of a compiled step, allocated once. */
import {
  formatSpec,
  type HostArray,
  type HostTensor,
  type IndexError,
  newHostArray,
  sizeOf,
  type TensorSpec,
  type Tree,
} from '../compiler/index.js';
import {
  arraysOf,
  type Batch,
  type BatchSpecs,
  type InputSource,
  type InputState,
  mapBatch,
  specsOf,
} from '../inputs/index.js';
import type { BaseModel } from '../models/index.js';
import { JobError } from '../runs/index.js';

/** The ids that a model reads, as its config says. */
type KnownIds = Pick<BaseModel, 'readIds' | 'labelIds'>;

/** Names of the rows of a batch, where its input gives them any. */
export type RowNames = readonly string[];

/** The names of the rows of the batch that follows a state; none where data that was read can no longer be. */
export async function rowNamesOf(input: InputSource, state: InputState): Promise<RowNames> {
  try {
    return (await input.rowNames(state)) ?? [];
  } catch {
    // The message that wants them tells of another problem.
    return [];
  }
}

/** Number or name of the example of a batch's row, in brackets, where it has one. */
function exampleOf(row: number, batch: Tree<HostTensor>, names: RowNames): string {
  const { exampleIds } = batch as { readonly exampleIds?: HostTensor };
  if (exampleIds !== undefined) return ` (example ${exampleIds.data[row]})`;
  return names[row] === undefined ? '' : ` (${names[row]})`;
}

/**
 * Error for an index out of range, with the number or the name of its example where there is one, and the field of the model's
 * config that says which ids there are.
 *
 * @param subject the input, and the step if there is one.
 */
export function badIndexError(
  subject: string,
  { input, at, problem }: IndexError,
  { readIds, labelIds }: KnownIds,
  batch: Tree<HostTensor>,
  names: RowNames = [],
): JobError {
  const array = input === '' ? 'indices' : input.replace(/^(\d+\.)?batch\./, '');
  const place = at.length === 0 ? array : `${array}[${at.join(',')}]`;
  const example = input === '' ? '' : exampleOf(at[0]!, batch, names);
  const known = [...readIds, ...labelIds].find(({ path }) => path === array);
  const setting = known === undefined ? '' : ` task.model.${known.field} is ${known.count}.`;
  const from = input === '' ? 'worked out from' : 'of';
  return new JobError(`${subject}: ${place}${example} ${from} its batch, ${problem}.${setting}`);
}

/** An id that its model reserves, at a place that is no padding. */
interface ReservedId {
  /** @param subject the input, and the step if there is one. */
  error(subject: string, names?: RowNames): JobError;
}

/** The first such id of a batch; undefined where it has none. */
export function reservedId({ readIds, labelIds }: KnownIds, batch: Tree<HostTensor>): ReservedId | undefined {
  for (const { path, count, field, reserved } of [...readIds, ...labelIds]) {
    if (reserved === undefined) continue;
    const arrays = new Map(arraysOf(batch as Batch));
    const [ids, paddings, weights] = [path, reserved.paddings, 'weights'].map((name) => arrays.get(name));
    if (ids === undefined) continue;
    const width = sizeOf(ids.shape.slice(1));
    const bad = ids.data.findIndex(
      (id, i) => id === reserved.id && paddings?.data[i] !== 1 && weights?.data[Math.floor(i / width)] !== 0,
    );
    if (bad < 0) continue;
    const row = Math.floor(bad / width);
    return {
      error: (subject, names = []) =>
        new JobError(
          `${subject}: ${path}[${row},${bad % width}]${exampleOf(row, batch, names)} of its batch, ${reserved.id} is ${reserved.what}, which stands in padding alone. ` +
            `task.model.${reserved.field} is ${reserved.id}, and task.model.${field} is ${count}: other ids from 0 to ${count - 1} are valid.`,
        ),
    };
  }
  return undefined;
}

/** Arrays with room for `batches` batches like an input's first one, into which batches are copied. */
export class BatchBuffers {
  readonly specs: BatchSpecs;
  readonly arrays: Tree<HostArray>;
  readonly #byPath = new Map<string, { spec: TensorSpec; data: HostArray }>();

  /** @param inputName named in errors. */
  constructor(
    readonly inputName: string,
    first: Batch,
    batches = 1,
  ) {
    this.specs = specsOf(first);
    this.arrays = mapBatch(first, (tensor, path) => {
      const data = newHostArray(tensor.dtype, batches * tensor.data.length);
      this.#byPath.set(path, { spec: { shape: [...tensor.shape], dtype: tensor.dtype }, data });
      return data;
    });
    this.load(first);
  }

  /** The batch at a place, counted from 0, in views of the memory. */
  batchAt(place: number): Tree<HostTensor> {
    return this.#mapAt(place, (tensor) => tensor);
  }

  /** The arrays of `batchAt`. */
  viewsAt(place: number): Tree<HostArray> {
    return this.#mapAt(place, ({ data }) => data);
  }

  /**
   * Copies a batch to a place, counted from 0. @throws JobError if names, shapes or dtypes differ from the first batch.
   */
  load(batch: Batch, place = 0): void {
    let count = 0;
    for (const [path, tensor] of arraysOf(batch)) {
      const buffer = this.#byPath.get(path);
      if (!buffer || formatSpec(buffer.spec) !== formatSpec(tensor)) {
        const expected = buffer ? formatSpec(buffer.spec) : 'no such array';
        throw new JobError(
          `Input '${this.inputName}': '${path}' of a batch is ${formatSpec(tensor)}; the first batch had ${expected}.`,
        );
      }
      buffer.data.set(tensor.data as never, place * tensor.data.length);
      count++;
    }
    if (count === this.#byPath.size) return;
    const given = new Set([...arraysOf(batch)].map(([path]) => path));
    const missing = [...this.#byPath.keys()].filter((path) => !given.has(path));
    throw new JobError(
      `Input '${this.inputName}': a batch has no '${missing.join("', '")}', as the first had.`,
    );
  }

  #mapAt<T>(place: number, leaf: (tensor: HostTensor) => T): Tree<T> {
    const at = (specs: BatchSpecs, prefix: string): Tree<T> =>
      Object.fromEntries(
        Object.entries(specs).map(([name, spec]) => {
          const held = this.#byPath.get(prefix + name);
          if (held === undefined) return [name, at(spec as BatchSpecs, `${prefix}${name}.`)];
          const size = sizeOf(held.spec.shape);
          return [name, leaf({ ...held.spec, data: held.data.subarray(place * size, (place + 1) * size) })];
        }),
      );
    return at(this.specs, '');
  }
}
