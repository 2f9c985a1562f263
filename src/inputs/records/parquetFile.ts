/** @file Parquet files, decoded row group by row group. */
import { isUtf8 } from 'node:buffer';
import {
  type FileMetaData,
  flatten,
  type ParquetParsers,
  parquetMetadata,
  parquetSchema,
  type SchemaTree,
} from 'hyparquet';
import { assembleNested } from 'hyparquet/src/assemble.js';
import { DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { getTreePath, isListLike, isMapLike } from 'hyparquet/src/schema.js';
import { FileError, InputError } from '../inputErrors.js';
import {
  type Block,
  type ColumnFile,
  columnsIn,
  decoded,
  plainValue,
  repeated,
  stated,
  type ValueKind,
} from './columnFile.js';
import { millisecondsOf, scaled, type TimeUnit } from './decimals.js';
import { parseJson } from './jsonText.js';
import { readPages } from './parquetPages.js';
import type { DataRecord } from './recordTable.js';
import { endOfStruct } from './thriftStruct.js';
import type { WatchedFile } from './watchedFile.js';

type RowGroup = FileMetaData['row_groups'][number];
type SchemaElement = SchemaTree['element'];

/** Bytes of the footer's length and of the magic behind it. */
const TAIL_BYTES = 8;
/** Most rows of a row group, as pyarrow writes them, too: they are in memory together. */
const MOST_ROWS = 2n ** 26n;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Times are milliseconds, and text must be UTF-8. */
const parsers: ParquetParsers = {
  ...DEFAULT_PARSERS,
  timestampFromMilliseconds: millisecondsOf('milliseconds'),
  timestampFromMicroseconds: millisecondsOf('microseconds'),
  timestampFromNanoseconds: millisecondsOf('nanoseconds'),
  dateFromDays: (days: number) => days * 86_400_000,
  stringFromBytes: (bytes: Uint8Array) => bytes && textOf(bytes),
  jsonFromBytes: (bytes: Uint8Array) => bytes && parseJson(textOf(bytes)),
};

function textOf(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new Error('a text is not UTF-8');
  return decoder.decode(bytes);
}

/** Reads a file's footer. */
export function openParquet(file: WatchedFile, wanted: readonly string[] | null): ColumnFile {
  const metadata = footerOf(file);
  const tree = decoded(
    () => `${file.path}: the schema`,
    () => schemaOf(metadata),
  );
  const has = new Map(tree.children.map((child) => [child.element.name, child]));
  checkGroups(file, metadata, tree);
  const columns = columnsIn(file, has, wanted);
  const blocks = metadata.row_groups.map((group, g): Block => {
    const place = `${file.path}, row group ${g}`;
    return {
      numRecords: Number(group.num_rows),
      size: Number(group.total_byte_size),
      read: () => readGroup(file, place, group, tree, columns),
    };
  });
  const kinds = [...columns].map(([name, column]) => [name, kindOf(column)] as const);
  return { file, format: 'Parquet 2', columns: new Map(kinds), blocks };
}

function footerOf(file: WatchedFile): FileMetaData {
  const { size, path } = file;
  const tail = file.read(Math.max(0, size - TAIL_BYTES), size);
  const magic = tail.subarray(4).toString('latin1');
  if (magic === 'PARE')
    throw new InputError(`${path} is an encrypted Parquet file. Store it without encryption.`);
  if (magic !== 'PAR1')
    throw new InputError(
      `${path} is not a complete Parquet file: expected 'PAR1' as its last 4 bytes, at byte ${Math.max(0, size - 4)}. It may have been cut off.`,
    );
  const length = tail.readUInt32LE(0);
  const start = size - TAIL_BYTES - length;
  if (start < 4)
    throw new InputError(
      `${path}, byte ${size - TAIL_BYTES}: a footer of ${length} bytes in a file of ${size} bytes.`,
    );
  return decoded(
    () => `${path}: the footer from byte ${start} on`,
    () => {
      const bytes = file.read(start, size);
      endOfStruct(bytes.subarray(0, length), 0);
      return parquetMetadata(bytes, { geoparquet: false });
    },
  );
}

/** The tree of columns. @throws Error where two of a group have one name, or elements are missing or left over */
function schemaOf(metadata: FileMetaData): SchemaTree {
  const tree = parquetSchema(metadata);
  if (tree.count !== metadata.schema.length)
    throw new Error(`it has ${metadata.schema.length} elements, and groups of ${tree.count}`);
  checkNames(tree);
  return tree;
}

function checkNames({ children, path }: SchemaTree): void {
  const names = children.map(({ element }) => element.name);
  const twice = repeated(names);
  if (twice !== undefined)
    throw new Error(`two columns are called '${[...path, twice].join('.')}'. Give each its own name`);
  for (const child of children) checkNames(child);
}

/** Compares the footer's two descriptions of rows and of columns. @throws FileError where these differ */
function checkGroups({ path }: WatchedFile, metadata: FileMetaData, tree: SchemaTree): void {
  const leaves = leavesOf(tree);
  let rows = 0n;
  for (const [g, group] of metadata.row_groups.entries()) {
    const damaged = (what: string): FileError =>
      new FileError(`${path}, row group ${g}${what}: the file is damaged.`);
    const { num_rows: count, columns } = group;
    if (typeof count !== 'bigint' || count < 0n || count > MOST_ROWS)
      throw damaged(` has ${stated(count)} rows; expected 0 to ${MOST_ROWS}`);
    rows += count;
    if (columns.length !== leaves.length)
      throw damaged(` has ${columns.length} columns, and the schema ${leaves.length}`);
    for (const [c, { element, path: names }] of leaves.entries()) {
      const chunk = columns[c]!.meta_data;
      const name = `, column '${names.join('.')}'`;
      if (chunk?.path_in_schema.join('.') !== names.join('.'))
        throw damaged(`${name} is called '${stated(chunk?.path_in_schema.join('.'))}' there`);
      if (chunk.type !== element.type)
        throw damaged(`${name} has type ${stated(chunk.type)}, and ${stated(element.type)} in the schema`);
      const isFlat = names.length === 1 && element.repetition_type !== 'REPEATED';
      if (isFlat ? chunk.num_values !== count : !(chunk.num_values >= count))
        throw damaged(`${name} has ${stated(chunk.num_values)} values, and the row group ${count} rows`);
    }
  }
  if (metadata.num_rows !== rows)
    throw new FileError(
      `${path} has ${rows} rows in its row groups, and ${stated(metadata.num_rows)} in its footer: the file is damaged.`,
    );
}

const leavesOf = (tree: SchemaTree): SchemaTree[] =>
  tree.children.flatMap((child) => (child.children.length === 0 ? [child] : leavesOf(child)));

function readGroup(
  file: WatchedFile,
  place: string,
  group: RowGroup,
  tree: SchemaTree,
  columns: ReadonlyMap<string, SchemaTree>,
): DataRecord[] {
  const count = Number(group.num_rows);
  const values = [...columns].map(([name, column]) => {
    const at = () => `${place}, column '${name}'`;
    const found = decoded(at, () => columnOf(file, group, tree, column));
    if (found.length === count) return [name, found] as const;
    throw new FileError(
      `${at()} has ${found.length} values, and the row group ${count} rows: the file is damaged.`,
    );
  });
  return Array.from({ length: count }, (_, i) =>
    Object.fromEntries(values.map(([name, found]) => [name, plainValue(found[i])])),
  );
}

/** A column's values in a row group. */
function columnOf(
  file: WatchedFile,
  group: RowGroup,
  tree: SchemaTree,
  column: SchemaTree,
): ArrayLike<unknown> {
  const { name } = column.element;
  const parts = new Map<string, ArrayLike<unknown>>();
  for (const { meta_data: chunk } of group.columns) {
    if (chunk === undefined || chunk.path_in_schema[0] !== name) continue;
    const start = Number(chunk.dictionary_page_offset || chunk.data_page_offset);
    const end = start + Number(chunk.total_compressed_size);
    if (!(start >= 4 && end >= start && end <= file.size))
      throw new FileError(
        `${file.path}: column '${name}' should be at bytes ${start} to ${end} of a file of ${file.size} bytes: it is damaged.`,
      );
    const bytes = file.read(start, end);
    const schemaPath = getTreePath(tree, chunk.path_in_schema);
    const { element, convert } = leafOf(schemaPath.at(-1)!.element);
    const data = readPages({
      bytes,
      numValues: Number(chunk.num_values),
      unpackedSize: Number(chunk.total_uncompressed_size),
      decoder: {
        ...chunk,
        pathInSchema: chunk.path_in_schema,
        element,
        schemaPath,
        parsers,
        utf8: false,
      },
    });
    const values = flatten(data);
    const converted =
      convert === undefined ? values : Array.from(values, (value) => mapLeaves(value, convert));
    parts.set(chunk.path_in_schema.join('.'), converted);
  }
  if (column.children.length > 0) assembleNested(parts as never, column, parsers);
  return parts.get(name) ?? [];
}

/** A leaf of the schema as the library reads it, and further conversion of its values. */
interface Leaf {
  readonly element: SchemaElement;
  readonly convert?: (value: never) => unknown;
}

/**
 * The library gives decimals as products with a power of ten, which are not exact, and times in their units; and it does not
 * know dates and JSON where the file has the newer of two ways alone to say so.
 */
function leafOf(element: SchemaElement): Leaf {
  const { logical_type: logical, converted_type: old, ...rest } = element;
  if (logical?.type === 'DECIMAL' || old === 'DECIMAL') {
    const scale = (logical?.type === 'DECIMAL' ? logical.scale : element.scale) ?? 0;
    return {
      element: rest,
      convert: (value: Uint8Array | bigint | number) => scaled(integerOf(value), scale),
    };
  }
  const unit = logical?.type === 'TIME' ? TIME_UNITS[logical.unit] : TIME_UNITS[old ?? ''];
  if (unit !== undefined) return { element: rest, convert: millisecondsOf(unit) };
  if (logical?.type === 'DATE' || logical?.type === 'JSON')
    return { element: { ...element, converted_type: logical.type } };
  return { element };
}

const TIME_UNITS: Readonly<Record<string, TimeUnit>> = {
  MILLIS: 'milliseconds',
  MICROS: 'microseconds',
  NANOS: 'nanoseconds',
  TIME_MILLIS: 'milliseconds',
  TIME_MICROS: 'microseconds',
};

/** An integer of 32 or 64 bits, or of bytes in two's complement, the high one first. */
function integerOf(value: Uint8Array | bigint | number): bigint | number {
  if (!(value instanceof Uint8Array)) return value;
  if (value.length === 0) return 0;
  return BigInt.asIntN(8 * value.length, BigInt(`0x${Buffer.from(value).toString('hex')}`));
}

/** Values of nested lists, of which null is missing. */
function mapLeaves(value: unknown, convert: (value: never) => unknown): unknown {
  if (Array.isArray(value)) return value.map((inner) => mapLeaves(inner, convert));
  return value === null || value === undefined ? null : convert(value as never);
}

function kindOf(column: SchemaTree): ValueKind {
  const { type, repetition_type, logical_type, converted_type } = column.element;
  if (column.children.length > 0)
    return isListLike(column) ? 'lists' : isMapLike(column) ? 'maps' : 'structs';
  if (repetition_type === 'REPEATED') return 'lists';
  const logical = logical_type?.type ?? converted_type;
  if (logical === 'NULL') return 'nulls';
  if (logical === 'JSON') return 'JSON';
  if (logical === 'STRING' || logical === 'UTF8' || logical === 'UUID') return 'text';
  if (logical === 'DECIMAL' || logical === 'FLOAT16') return 'numbers';
  if (type === 'BOOLEAN') return 'booleans';
  return type === 'BYTE_ARRAY' || type === 'FIXED_LEN_BYTE_ARRAY' ? 'bytes' : 'numbers';
}
