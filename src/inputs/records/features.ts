/** @file Features: tensors made from the columns of a record. */
import { z } from 'zod';
import { Configurable, didYouMean } from '../../hparams/index.js';
import { InputError } from '../inputErrors.js';
import type { ExampleOptions, IdVocabulary } from '../inputSource.js';
import type { RecordedState } from '../recordedParts.js';
import { listed, shown } from '../shown.js';
import { type FeatureDType, float32Number, numberOf, numbersOf } from './featureValues.js';
import type { DataRecord } from './recordTable.js';

/** Shape of a record's value, without the batch, and its dtype. */
export interface FeatureSpec {
  readonly shape: readonly number[];
  readonly dtype: FeatureDType;
}

/** Specs of a feature of several arrays, by their names: a batch has them as `<feature>.<name>`. */
export type FeatureSpecs = Readonly<Record<string, FeatureSpec>>;

/** Values of a record: of the feature's array, or of each of its arrays by name. */
export type FeatureValues = ArrayLike<number> | Readonly<Record<string, ArrayLike<number>>>;

/** Base of all features. */
export abstract class BaseFeature extends Configurable.with({}) {
  static override readonly isAbstract = true;

  abstract spec(): FeatureSpec | FeatureSpecs;

  /** Names of the classes whose ids are its values; null where they have none. */
  get classNames(): readonly string[] | null {
    return null;
  }

  /** Name of the column whose text is all that it reads of a record; null where it reads anything else. */
  get textColumn(): string | null {
    return null;
  }

  /** Meaning of the ids in one of its arrays, '' being the only one; null where they have none. */
  vocabularyFor(_array: string): IdVocabulary | null {
    return null;
  }

  /** A run's record of it, such as the digest of a file or a learned vocabulary; null if its config is complete. */
  recorded(): RecordedState | null {
    return null;
  }

  /** Whether `fit` must see the records before it has values. */
  get needsRecords(): boolean {
    return false;
  }

  /** Learns from all records, those of training and validation. */
  fit(_records: Iterable<DataRecord>): void {}

  /**
   * The record's values, as many as the shape has elements. Who reads them checks that they fit the dtype.
   *
   * @param options `readsFiles`: whether a text may be the path of a file, as by default.
   * @throws InputError for a value that is missing or of another kind
   */
  abstract valuesOf(record: DataRecord, options?: Pick<ExampleOptions, 'readsFiles'>): FeatureValues;
}

/** The value of a column. @throws InputError with the columns that there are */
export function cellOf(record: DataRecord, column: string): unknown {
  if (Object.hasOwn(record, column)) return record[column];
  const names = Object.keys(record);
  throw new InputError(`no column '${column}'.${didYouMean(column, names)} It has: ${listed(names)}.`);
}

const placeOf = (column: string): string => `column '${column}'`;

const column = z.string().min(1);

/** float32 numbers, rounded where they must be: [] of one column, [columns] of a list of columns. */
export class NumberFeature extends BaseFeature.with({
  columns: z
    .union([column, z.array(column).min(1)])
    .describe('A column, whose value is a scalar, or a list of columns, whose values are a vector.'),
  missing: z
    .record(column, float32Number)
    .default({})
    .describe(
      'By column, the number for values that are missing: empty, null, NA or NaN. Elsewhere they are errors.',
    ),
}) {
  spec(): FeatureSpec {
    const { columns } = this.hp;
    return { shape: typeof columns === 'string' ? [] : [columns.length], dtype: 'float32' };
  }

  valuesOf(record: DataRecord): number[] {
    const { columns } = this.hp;
    if (typeof columns === 'string') return [this.#numberIn(record, columns)];
    return columns.map((name) => this.#numberIn(record, name));
  }

  #numberIn(record: DataRecord, name: string): number {
    const value = cellOf(record, name);
    if (!isMissing(value)) return numberOf(value, 'float32', placeOf, name);
    const { missing } = this.hp;
    if (Object.hasOwn(missing, name)) return missing[name]!;
    throw new InputError(
      `${placeOf(name)}: expected a number, got ${shown(value)}. ` +
        `For missing values, set the feature's 'missing', as in { ${JSON.stringify(name)}: 0 }`,
    );
  }
}

/** Numbers of an array in one column, nested as its shape or flat, or a typed array: [...shape]. */
export class ArrayFeature extends BaseFeature.with({
  column,
  shape: z.array(z.int().positive()).min(1).describe("Shape of a record's array."),
  dtype: z.enum(['float32', 'int32']).default('float32').describe('Type of the elements.'),
}) {
  spec(): FeatureSpec {
    const { shape, dtype } = this.hp;
    return { shape, dtype };
  }

  valuesOf(record: DataRecord): Float32Array | Int32Array {
    const { column: name, shape, dtype } = this.hp;
    return numbersOf(cellOf(record, name), shape, dtype, name);
  }
}

/** Whether a value of a table is missing: as empty text and null, and as pandas and R write it. */
function isMissing(value: unknown): boolean {
  if (typeof value === 'number') return Number.isNaN(value);
  if (typeof value === 'string') return ['', 'NA', 'NaN'].includes(value.trim());
  return value === null || value === undefined;
}

/** The id of a class, [] of int32: its place in the list of classes. */
export class ClassFeature extends BaseFeature.with({
  column,
  classes: z
    .union([
      z.int().min(2),
      z
        .array(z.string())
        .min(2)
        .refine((classes) => new Set(classes).size === classes.length, { error: 'expected each class once' }),
    ])
    .describe(
      "The column's values, as text, in the order of their ids; or the number of classes, if the values are ids from 0 on.",
    ),
}) {
  #ids!: ReadonlyMap<string, number>;

  protected override setup(): void {
    const { classes } = this.hp;
    const names =
      typeof classes === 'number' ? Array.from({ length: classes }, (_, id) => String(id)) : classes;
    this.#ids = new Map(names.map((name, id) => [name, id]));
  }

  spec(): FeatureSpec {
    return { shape: [], dtype: 'int32' };
  }

  override get classNames(): readonly string[] | null {
    const { classes } = this.hp;
    return typeof classes === 'number' ? null : classes;
  }

  valuesOf(record: DataRecord): number[] {
    const { column: name } = this.hp;
    const value = cellOf(record, name);
    const text = typeof value === 'string' ? value.trim() : String(value);
    const id = this.#ids.get(text);
    if (id !== undefined) return [id];
    const classes = [...this.#ids.keys()];
    const known = classes.length > 10 ? `${classes.slice(0, 10).join(', ')}, …` : classes.join(', ');
    throw new InputError(
      `column '${name}': ${shown(value)} is not one of the ${classes.length} classes.${didYouMean(text, classes)} They are: ${known}.`,
    );
  }
}
