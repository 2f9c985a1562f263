/** @file RecordInput: batches of features of records, for tables of numbers and classes that fit into memory. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { newHostArray, sizeOf } from '../../compiler/program/index.js';
import { builds } from '../../hparams/index.js';
import type { BaseInput } from '../baseInput.js';
import type { Batch, BatchSpecs, BatchUnit } from '../batch.js';
import { paddingOf } from '../batchRows.js';
import type { DataFile, DataIdentity } from '../dataIdentity.js';
import { ExampleInput } from '../exampleInput.js';
import { blamesExample } from '../inputErrors.js';
import type { IdVocabulary, InputState } from '../inputSource.js';
import type { JsonValue } from '../jsonValue.js';
import { type Split, splitFields, splitOf } from '../splits.js';
import type { FeatureSpec } from './features.js';
import {
  featureArrays,
  featureAt,
  features,
  recordBatch,
  recordSpecs,
  rowReader,
  writeRow,
} from './recordBatches.js';
import { BaseRecordSource } from './recordSources.js';
import { type DataRecord, type RecordTable, tableOf } from './recordTable.js';
import { ALL, openSubSplits } from './subSplits.js';

/** A feature of all records of the split, behind one another. */
interface Column {
  readonly spec: FeatureSpec;
  readonly values: Float32Array | Int32Array;
}

/** The records of the split, read on first use. */
interface Table {
  readonly numRows: number;
  readonly columns: Readonly<Record<string, Column>>;
  /** Errors of the rows that are broken. */
  readonly broken: ReadonlyMap<number, unknown>;
  readonly files: readonly DataFile[];
  /** Number of records and digest of their features. */
  readonly contents: string;
}

const isIterable = (made: unknown): boolean =>
  typeof made === 'object' && made !== null && Symbol.iterator in made;

/** Records in the config itself, in files, or of a function. */
const source = z.union([
  z.array(z.record(z.string(), z.json())),
  builds<BaseRecordSource | Iterable<DataRecord>>(
    'a source of records or an iterable of them, such as a generator (StreamInput takes async ones)',
    (made) => made instanceof BaseRecordSource || isIterable(made),
  ),
]);

/**
 * Records of files, of a function, or in the config itself. A batch has a tensor for each feature, [batchSize, …], and
 * `weights`, [batchSize], which is 0 for padding. A random share of the records is held out for validation.
 */
export class RecordInput extends ExampleInput.with({
  source: source.describe(
    'The records: a list of them, a source such as CsvSource, or a configurable function that gives an iterable.',
  ),
  splitName: z
    .string()
    .min(1)
    .default(ALL)
    .describe('The split of the source to read, or parts of splits; `split` is a share of it.'),
  features,
  ...splitFields,
}) {
  #table: Table | undefined;

  protected override get numRows(): number {
    return this.#load().numRows;
  }

  override batchSpecs(): BatchSpecs {
    return recordSpecs(this.hp.features, this.hp.batchSize);
  }

  protected override emptyBatch(): Batch {
    return paddingOf(this.batchSpecs());
  }

  protected override fillRow(row: number, batch: Batch, b: number): void {
    const { columns, broken } = this.#load();
    if (broken.has(row)) throw broken.get(row);
    const values = Object.entries(columns).map(([name, { spec, values }]) => {
      const size = sizeOf(spec.shape);
      return [name, values.subarray(row * size, (row + 1) * size)] as const;
    });
    writeRow(batch, b, Object.fromEntries(values));
  }

  /** The places of records in their files, which are opened again. */
  override async rowNames(state: InputState): Promise<readonly string[]> {
    const records = this.#open();
    try {
      const { item } = splitOf(records.numRecords, this.hp, 'records');
      return this.rowsAfter(state).map((row) => records.place(item(row)));
    } finally {
      records.close();
    }
  }

  override get batchUnit(): BatchUnit {
    return { unit: 'rows', dims: 1 };
  }

  override classNamesFor(path: string): readonly string[] | null {
    return featureAt(this.hp.features, path)[0]?.classNames ?? null;
  }

  override vocabularyFor(path: string): IdVocabulary | null {
    const [feature, array] = featureAt(this.hp.features, path);
    return feature?.vocabularyFor(array) ?? null;
  }

  override async exampleBatch(...examples: Parameters<BaseInput['exampleBatch']>): Promise<Batch> {
    return recordBatch(this.hp.features, ...examples);
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
    this.#table ??= this.named(() => {
      const records = this.#open();
      const wanted = splitOf(records.numRecords, this.hp, 'records');
      for (const feature of Object.values(this.hp.features))
        if (feature.needsRecords) feature.fit(readable(records));
      const { columns, broken } = this.#columnsOf(records, wanted);
      const contents = contentsOf(wanted.numItems, columns, [...broken.keys()]);
      records.close();
      return { numRows: wanted.numItems, columns, broken, files: records.files, contents };
    });
    return this.#table;
  }

  #open(): RecordTable {
    const { source, splitName } = this.hp;
    return source instanceof BaseRecordSource
      ? source.open(splitName)
      : openSubSplits(splitName, [ALL], 'the list', () => tableOf(source));
  }

  #columnsOf(records: RecordTable, wanted: Split): Pick<Table, 'columns' | 'broken'> {
    const columns = featureArrays(this.hp.features).map(([name, spec]) => {
      const values = newHostArray(spec.dtype, wanted.numItems * sizeOf(spec.shape)) as Column['values'];
      return [name, { spec, values }] as const;
    });
    const read = rowReader(this.hp.features);
    const broken = new Map<number, unknown>();
    for (let row = 0; row < wanted.numItems; row++) {
      try {
        const i = wanted.item(row);
        const found = read(records.read(i), () => records.place(i));
        for (const [name, { spec, values }] of columns) values.set(found[name]!, row * sizeOf(spec.shape));
      } catch (error) {
        if (this.hp.onError === 'fail' || !blamesExample(error)) throw error;
        broken.set(row, error);
      }
    }
    return { columns: Object.fromEntries(columns), broken };
  }
}

/** The readable records; errors of others are raised when their rows are made. */
function* readable(records: RecordTable): Generator<DataRecord> {
  for (let i = 0; i < records.numRecords; i++) {
    try {
      yield records.read(i);
    } catch (error) {
      if (!blamesExample(error)) throw error;
    }
  }
}

function contentsOf(
  count: number,
  columns: Readonly<Record<string, Column>>,
  broken: readonly number[],
): string {
  const hash = createHash('sha256');
  for (const [name, { spec, values }] of Object.entries(columns)) {
    hash.update(JSON.stringify([name, spec]));
    hash.update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  }
  hash.update(broken.join(' '));
  return `${count} record${count === 1 ? '' : 's'} (sha256 ${hash.digest('hex').slice(0, 16)})`;
}
