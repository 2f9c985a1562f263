/** @file RecordInput: batches of features of records, for tables of numbers and classes that fit into memory. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { newHostArray, sizeOf } from '../compiler/tensors.js';
import { instance } from '../hparams/index.js';
import type { Batch, BatchSpecs } from './batch.js';
import type { DataFile, DataIdentity } from './dataIdentity.js';
import { BaseFeature, type FeatureSpec } from './features.js';
import { InputError } from './inputErrors.js';
import type { JsonValue } from './jsonValue.js';
import { permutation, streamKey } from './random.js';
import { BaseRecordSource, type PlacedRecord } from './recordSources.js';
import { RowInput } from './rowInput.js';

/** Purpose of the random stream of the split under its seed. */
const SPLIT = 2 ** 43;

/** Weight of each row of a batch: 1, or 0 for padding. */
const WEIGHTS = 'weights';

/** A feature of all records of the split, behind one another. */
interface Column {
  readonly spec: FeatureSpec;
  readonly values: Float32Array | Int32Array;
}

/** The records of the split, read on first use. */
interface Table {
  readonly numRows: number;
  readonly columns: Readonly<Record<string, Column>>;
  readonly files: readonly DataFile[];
  /** Number of records and digest of their features. */
  readonly contents: string;
}

/**
 * Records of CSV or JSON Lines files, or made in code. A batch has a tensor for each feature, [batchSize, …], and
 * `weights`, [batchSize], which is 0 for padding. A random share of the records is held out for validation.
 */
export class RecordInput extends RowInput.with({
  source: instance(BaseRecordSource, null).describe('Where the records come from.'),
  features: z
    .record(z.string(), instance(BaseFeature, null))
    .refine((features) => Object.keys(features).length > 0, { error: 'expected at least one feature' })
    .refine((features) => !Object.hasOwn(features, WEIGHTS), { error: `'${WEIGHTS}' is the weight of a row` })
    .describe("A batch's tensors by name."),
  split: z.enum(['train', 'validation', 'all']).default('train').describe('The split to read.'),
  validationFraction: z.number().min(0).lt(1).default(0.1).describe('Share of the records to hold out.'),
  splitSeed: z.int().min(0).default(0).describe('Seed of the choice of the records to hold out.'),
}) {
  #table: Table | undefined;

  protected override get numRows(): number {
    return this.#load().numRows;
  }

  override batchSpecs(): BatchSpecs {
    const { batchSize, features } = this.hp;
    const specs = Object.entries(features).map(([name, feature]) => {
      const { shape, dtype } = feature.spec();
      return [name, { shape: [batchSize, ...shape], dtype }] as const;
    });
    return { ...Object.fromEntries(specs), [WEIGHTS]: { shape: [batchSize], dtype: 'float32' } };
  }

  protected override emptyBatch(): Batch {
    const specs = Object.entries(this.batchSpecs()) as [string, FeatureSpec][];
    return Object.fromEntries(
      specs.map(([name, { shape, dtype }]) => [
        name,
        { shape, dtype, data: newHostArray(dtype, sizeOf(shape)) },
      ]),
    );
  }

  protected override fillRow(row: number, batch: Batch, b: number): void {
    const data = (name: string) => batch[name]!.data as Float32Array | Int32Array;
    for (const [name, { spec, values }] of Object.entries(this.#load().columns)) {
      const size = sizeOf(spec.shape);
      data(name).set(values.subarray(row * size, (row + 1) * size), b * size);
    }
    data(WEIGHTS)[b] = 1;
  }

  override dataIdentity(): DataIdentity {
    const { files, contents } = this.#load();
    return { files, contents };
  }

  override knownIdentity(): DataIdentity | null {
    return null;
  }

  protected override identity(): { readonly [name: string]: JsonValue } {
    return { data: this.#load().contents };
  }

  /** @throws InputError with the input's name and the record's place */
  #load(): Table {
    if (this.#table !== undefined) return this.#table;
    try {
      const { records, files } = this.hp.source.read();
      const wanted = this.#split(records);
      if (wanted.length === 0) {
        const { split, validationFraction } = this.hp;
        throw new InputError(
          records.length === 0
            ? 'there are no records.'
            : `split '${split}' is empty: validationFraction ${validationFraction} of ${records.length} records.`,
        );
      }
      const columns = this.#columnsOf(wanted);
      const contents = contentsOf(wanted.length, columns);
      this.#table = { numRows: wanted.length, columns, files, contents };
      return this.#table;
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      throw new InputError(`${this.constructor.name} '${this.name}': ${error.message}`, { cause: error });
    }
  }

  /** The records of the split, in their order. */
  #split<T>(records: readonly T[]): readonly T[] {
    const { split, validationFraction, splitSeed } = this.hp;
    if (split === 'all') return records;
    const order = permutation(streamKey(splitSeed, SPLIT), records.length);
    const held = new Set(order.subarray(0, Math.round(validationFraction * records.length)));
    return records.filter((_, i) => held.has(i) === (split === 'validation'));
  }

  #columnsOf(records: readonly PlacedRecord[]): Record<string, Column> {
    const columns = Object.entries(this.hp.features).map(([name, feature]) => {
      const spec = feature.spec();
      const size = sizeOf(spec.shape);
      const values = newHostArray(spec.dtype, records.length * size) as Column['values'];
      for (const [i, { record, place }] of records.entries()) {
        try {
          values.set(feature.valuesOf(record), i * size);
        } catch (error) {
          if (!(error instanceof InputError)) throw error;
          throw new InputError(`${place}: feature '${name}', ${error.message}`, { cause: error });
        }
      }
      return [name, { spec, values }] as const;
    });
    return Object.fromEntries(columns);
  }
}

function contentsOf(count: number, columns: Readonly<Record<string, Column>>): string {
  const hash = createHash('sha256');
  for (const [name, { spec, values }] of Object.entries(columns)) {
    hash.update(JSON.stringify([name, spec]));
    hash.update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  }
  return `${count} record${count === 1 ? '' : 's'} (sha256 ${hash.digest('hex').slice(0, 16)})`;
}
