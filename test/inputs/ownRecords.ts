/** @file A source of records that a test sets. */
import { z } from 'zod';
import { type DataRecord, IterableSource } from '../../src/inputs/index.js';

/** Records by the name that the config has. */
export class OwnRecords extends IterableSource.with({ name: z.string() }) {
  static readonly records = new Map<string, readonly DataRecord[]>();

  protected override records(): Iterable<DataRecord> {
    return OwnRecords.records.get(this.hp.name)!;
  }
}
