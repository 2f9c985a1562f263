/** @file Lane: every L-th example of each task, drawn by rate, preprocessed and packed, group after group. */
import { foldIn, type PrngKey } from '../../compiler/random/index.js';
import { InputError, placed } from '../inputErrors.js';
import { drawBelow, KeyedPermutation, streamKey } from '../random.js';
import { type OnError, type Skipped, SkippedExamples } from '../skippedExamples.js';
import type { BaseFeatureConverter, FeatureLengths, ReadFeature, Segment } from './featureConverter.js';
import { type KeyedExample, Pipeline } from './pipeline.js';
import type { TaskExamples } from './taskExamples.js';

/** Settings common to an input's lanes. */
export interface LaneSetting {
  readonly tasks: readonly TaskExamples[];
  /** Of each task. */
  readonly features: readonly (readonly ReadFeature[])[];
  readonly converter: BaseFeatureConverter;
  readonly lengths: FeatureLengths['lengths'];
  readonly trims: boolean;
  readonly seed: number;
  /** Whether the rows of a group come in a random order. */
  readonly shuffles: boolean;
  readonly numLanes: number;
  /** Rows of a group, about. */
  readonly groupRows: number;
  /** Examples, after preprocessing, until the end. */
  readonly maxExamples: number;
  readonly onError: OnError;
  /** Counts the examples that are left out. */
  readonly skipped: SkippedExamples;
  /** Sees each example of a group, with its number, before the group's rows are given. */
  readonly onExample?: (id: number, task: TaskExamples, made: KeyedExample) => void;
}

/** Place in a lane: rows taken of the group, examples made before it, and those drawn of each task. */
export interface LanePosition {
  readonly rows: number;
  readonly examples: number;
  readonly drawn: readonly number[];
}

/** Rows made of consecutive examples. */
interface Group {
  readonly rows: readonly Segment[][];
  /** Where the next group begins. */
  readonly examples: number;
  readonly drawn: readonly number[];
  readonly skipped: Skipped;
}

/** Whether a place is further along than another. */
export function isFurther(a: LanePosition, b: LanePosition): boolean {
  const total = ({ drawn }: LanePosition): number => drawn.reduce((sum, count) => sum + count, 0);
  return total(a) === total(b) ? a.rows > b.rows : total(a) > total(b);
}

/** A lane. A group depends on the data and on where it begins alone, so that a position resumes exactly. */
export class Lane {
  readonly #mixing: PrngKey;
  #position: LanePosition;
  #group: Group | undefined;

  constructor(
    private readonly setting: LaneSetting,
    private readonly index: number,
  ) {
    this.#mixing = foldIn(streamKey(setting.seed, 'taskMixing'), index);
    this.#position = { rows: 0, examples: 0, drawn: setting.tasks.map(() => 0) };
  }

  get position(): LanePosition {
    return this.#position;
  }

  set position(position: LanePosition) {
    if (String(position.drawn) !== String(this.#position.drawn)) this.#group = undefined;
    this.#position = position;
  }

  /** The next row; undefined at the end. @throws InputError with the place of the example */
  next(): Segment[] | undefined {
    for (;;) {
      this.#group ??= this.#makeGroup();
      const { rows, skipped, ...end } = this.#group;
      // Once a group, even where a run is resumed within it.
      if (this.#position.rows === 0) this.setting.skipped.add(skipped);
      const row = rows[this.#position.rows];
      if (row !== undefined) {
        this.#position = { ...this.#position, rows: this.#position.rows + 1 };
        return row;
      }
      if (String(end.drawn) === String(this.#position.drawn)) return undefined;
      this.#position = { rows: 0, ...end };
      this.#group = undefined;
    }
  }

  #makeGroup(): Group {
    const { tasks, features, converter, lengths, trims, groupRows, maxExamples, onError, onExample } =
      this.setting;
    const { examples: before } = this.#position;
    const drawn = [...this.#position.drawn];
    const segments: Segment[] = [];
    const skipped = new SkippedExamples();
    const attempt = <T>(make: () => T, examples = 1) => skipped.attempt(onError, make, examples);
    const capacity = converter.capacity(lengths);
    const sizes = capacity.map(() => 0);
    const pipelines = tasks.map((taskExamples, t) => {
      const { task } = taskExamples;
      const given = { features: task.hp.features, lengths };
      const emit = (made: KeyedExample): void => {
        const { example, place } = made;
        const id = before + segments.length;
        if (id >= maxExamples) return;
        const segment = attempt(() =>
          placed(place, () => converter.segmentOf(example, id, features[t]!, trims)),
        );
        if (segment === undefined) return;
        segments.push(segment);
        onExample?.(id, taskExamples, made);
        for (let i = 0; i < sizes.length; i++) sizes[i]! += segment.sizes[i]!;
      };
      return new Pipeline(task.stages, given, emit, attempt, task.firstStage);
    });
    const isFull = (): boolean =>
      before + segments.length >= maxExamples ||
      converter.numRows(segments.length, sizes, capacity) >= groupRows;
    for (let draws = 0; !isFull(); draws++) {
      const t = this.#draw(drawn);
      if (t === undefined) break;
      if (converter.numRows(segments.length, sizes, capacity) === 0) this.#checkYield(draws, skipped);
      const example = attempt(() => tasks[t]!.at(this.#numberOf(drawn[t]!)));
      if (example !== undefined) pipelines[t]!.push(example);
      drawn[t]! += 1;
    }
    for (const pipeline of pipelines) pipeline.flush();
    return {
      rows: this.#ordered(converter.rowsOf(segments, lengths)),
      examples: before + segments.length,
      drawn,
      skipped: skipped.take(),
    };
  }

  /** The number of this lane's n-th example of a task. */
  #numberOf(n: number): number {
    return n * this.setting.numLanes + this.index;
  }

  /** The task of the next example, of those that have one, by their shares; undefined at the end of all. */
  #draw(drawn: readonly number[]): number | undefined {
    const { tasks } = this.setting;
    let [count, total] = [0, 0];
    let last: number | undefined;
    for (let t = 0; t < tasks.length; t++) {
      count += drawn[t]!;
      if (!this.#hasLeft(t, drawn[t]!)) continue;
      total += tasks[t]!.share;
      last = t;
    }
    if (tasks.length === 1) return last;
    let at = (drawBelow(this.#mixing, count, 2 ** 53) / 2 ** 53) * total;
    for (let t = 0; t < tasks.length; t++)
      if (this.#hasLeft(t, drawn[t]!) && (at -= tasks[t]!.share) < 0) return t;
    return last;
  }

  #hasLeft(t: number, drawn: number): boolean {
    return this.#numberOf(drawn) < this.setting.tasks[t]!.size;
  }

  /** @throws InputError where as many examples as two epochs have gave nothing: endless data would never give any */
  #checkYield(draws: number, skipped: SkippedExamples): void {
    const records = this.setting.tasks.reduce((sum, { table }) => sum + table.numRecords, 0);
    const enough = 2 * records + 2;
    skipped.check(skipped.count, enough);
    if (draws < enough) return;
    throw new InputError(`none of ${records} records gives an example: the preprocessors keep nothing.`);
  }

  #ordered(rows: Segment[][]): Segment[][] {
    const { seed, shuffles, converter } = this.setting;
    if (!shuffles || !converter.hp.pack || converter.hp.packing === 'next fit') return rows;
    const { drawn } = this.#position;
    const count = drawn.reduce((sum, n) => sum + n, 0);
    const order = new KeyedPermutation(
      foldIn(foldIn(streamKey(seed, 'packedRows'), this.index), count),
      rows.length,
    );
    return rows.map((_, i) => rows[order.at(i)]!);
  }
}
