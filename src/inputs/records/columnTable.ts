/** @file Tables of files of columns: unpacked once, or in blocks that stay in memory where these are few. */

import { InputError } from '../inputErrors.js';
import type { CorpusFile } from '../text/corpusFiles.js';
import type { Block, ColumnFile, OpenColumnFile } from './columnFile.js';
import { joinTables } from './joinedTables.js';
import type { DataRecord, RecordTable } from './recordTable.js';
import { contentsDigest, unpackedTable } from './unpackedTable.js';
import { openWatched } from './watchedFile.js';

/** Bytes of values, as the files store them, of blocks that may stay in memory; at least one block does. */
const KEPT_BYTES = 16 * 2 ** 20;

/**
 * The records of files of columns. Where they are too many for memory they are unpacked into the cache, for a record in the
 * midst of a block can only be read with all others of it.
 *
 * @param wanted the columns to read; null: all.
 * @throws InputError for damaged files, absent columns and files that do not agree
 */
export function columnTable(
  files: readonly CorpusFile[],
  wanted: readonly string[] | null,
  open: OpenColumnFile,
): RecordTable {
  const opened = files.map((file) => openWatched(file, (watched) => open(watched, wanted)));
  // The schema of a file without records is often wrong, and has no effect.
  const [first, ...others] = opened.filter(({ blocks }) => blocks.some(({ numRecords }) => numRecords > 0));
  for (const other of others) checkAgreement(first!, other);
  const size = opened.reduce(
    (sum, { blocks }) => sum + blocks.reduce((all, block) => all + block.size, 0),
    0,
  );
  const kept = new KeptBlocks();
  return joinTables(
    opened.map((file) => (size > KEPT_BYTES ? unpacked(file, wanted) : undefined) ?? blockTable(file, kept)),
  );
}

const placeIn =
  ({ file }: ColumnFile) =>
  (i: number): string =>
    `${file.name}, row ${i}`;

function unpacked(file: ColumnFile, wanted: readonly string[] | null): RecordTable | undefined {
  const records = function* (): Generator<[DataRecord, number]> {
    let row = 0;
    for (const block of file.blocks) for (const record of block.read()) yield [record, row++];
  };
  return unpackedTable(file.file, [file.format, wanted], records, placeIn(file));
}

/** The records of blocks that were read last. */
class KeptBlocks {
  readonly #records = new Map<Block, readonly DataRecord[]>();
  #bytes = 0;

  /** @throws InputError as `Block.read` */
  read(block: Block): readonly DataRecord[] {
    const records = this.#records.get(block) ?? block.read();
    if (!this.#records.delete(block)) this.#bytes += block.size;
    this.#records.set(block, records);
    for (const oldest of this.#records.keys()) {
      if (this.#bytes <= KEPT_BYTES || oldest === block) break;
      this.#records.delete(oldest);
      this.#bytes -= oldest.size;
    }
    return records;
  }
}

/** The records of a file where they are. */
function blockTable(file: ColumnFile, kept: KeptBlocks): RecordTable {
  const blocks = file.blocks.map(
    (block): RecordTable => ({
      numRecords: block.numRecords,
      read: (i) => kept.read(block)[i]!,
      place: placeIn(file),
      files: [],
      digest: '',
      close() {},
    }),
  );
  const { numRecords, read } = joinTables(blocks);
  let digest: string | undefined;
  return {
    numRecords,
    read,
    place: placeIn(file),
    files: [file.file.dataFile],
    get digest() {
      digest ??= contentsDigest(numRecords, file.file);
      return digest;
    },
    close: () => file.file.close(),
  };
}

/** @throws InputError where two files have other columns, or other values in one */
function checkAgreement(first: ColumnFile, other: ColumnFile): void {
  const [path, firstPath] = [other.file.path, first.file.path];
  for (const [name, kind] of other.columns) {
    const before = first.columns.get(name);
    if (before === undefined) throw absent(firstPath, path, name);
    if (kind !== before && kind !== 'nulls' && before !== 'nulls')
      throw new InputError(
        `${path} has ${kind} in column '${name}', and ${firstPath} has ${before}. The files of a source need the same.`,
      );
  }
  const missing = [...first.columns.keys()].find((name) => !other.columns.has(name));
  if (missing !== undefined) throw absent(path, firstPath, missing);
}

const absent = (path: string, other: string, column: string): InputError =>
  new InputError(
    `${path} has no column '${column}', and ${other} has one. Name those to read in 'columns' of the source.`,
  );
