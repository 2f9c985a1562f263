/** @file The examples of a task's split, without end or once, in the order of a seed. */
import { createHash } from 'node:crypto';
import { foldIn, hashString, type PrngKey } from '../../compiler/random/index.js';
import { InputError } from '../inputErrors.js';
import { KeyedPermutation, streamKey } from '../random.js';
import type { RecordTable } from '../records/recordTable.js';
import type { KeyedExample } from './pipeline.js';
import type { Task, WeightedTask } from './seqioTask.js';

/** How examples are ordered. */
export interface ExampleOrder {
  readonly seed: number;
  /** Whether each epoch has its own random order. */
  readonly shuffles: boolean;
  readonly repeats: boolean;
}

/** The examples of one task: number q is the one at place q mod n of the order of epoch ⌊q / n⌋, of n records. */
export class TaskExamples {
  readonly name: string;
  readonly task: Task;
  readonly share: number;
  readonly table: RecordTable;
  readonly #keys: { readonly order: PrngKey; readonly examples: PrngKey };
  #epoch = -1;
  #permutation: KeyedPermutation | undefined;
  #epochKey: PrngKey = [0, 0];

  constructor(
    { name, task, share }: WeightedTask,
    split: string,
    private readonly order: ExampleOrder,
  ) {
    this.name = name;
    this.task = task;
    this.share = share;
    this.table = task.open(split);
    const own = hashString(name);
    this.#keys = {
      order: foldIn(streamKey(order.seed, 'taskOrder'), own),
      examples: foldIn(streamKey(order.seed, 'taskExamples'), own),
    };
  }

  /** Number of examples until the end. */
  get size(): number {
    return this.order.repeats && this.table.numRecords > 0 ? Number.POSITIVE_INFINITY : this.table.numRecords;
  }

  /** Example number q, below `size`. @throws InputError for a record that can't be read */
  at(q: number): KeyedExample {
    const { numRecords } = this.table;
    const epoch = Math.floor(q / numRecords);
    if (epoch !== this.#epoch) this.#begin(epoch);
    const place = q - epoch * numRecords;
    const record = this.#permutation?.at(place) ?? place;
    return {
      example: this.table.read(record),
      place: () => this.table.place(record),
      key: foldIn(this.#epochKey, record),
    };
  }

  #begin(epoch: number): void {
    this.#epoch = epoch;
    this.#epochKey = foldIn(this.#keys.examples, epoch);
    if (this.order.shuffles)
      this.#permutation = new KeyedPermutation(foldIn(this.#keys.order, epoch), this.table.numRecords);
  }
}

/** Examples of the tasks of a mixture. */
export interface OpenTasks {
  readonly tasks: readonly TaskExamples[];
  /** Number and digest of their records. */
  readonly contents: string;
}

/** Opens a split of tasks. @throws InputError for one without records */
export function openTasks(weighted: readonly WeightedTask[], split: string, order: ExampleOrder): OpenTasks {
  const tasks = weighted.map((task) => new TaskExamples(task, split, order));
  const empty = tasks.find(({ table }) => table.numRecords === 0);
  if (empty !== undefined) throw new InputError(`split '${split}' of task '${empty.name}' has no records.`);
  const count = tasks.reduce((sum, { table }) => sum + table.numRecords, 0);
  const digest = digestOf(tasks.map(({ name, table }) => [name, table.numRecords, table.digest]));
  return { tasks, contents: `${count} record${count === 1 ? '' : 's'} (sha256 ${digest})` };
}

/** A short digest of a JSON value. */
export function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}
