/** @file Arrow files of either IPC format, decoded record batch by record batch. */
import { type Column, type DataType, type Field, Type, tableFromIPC } from '@uwdata/flechette';
import { InputError } from '../inputErrors.js';
import { BatchReader } from './arrowBatch.js';
import { Dictionaries } from './arrowDictionaries.js';
import {
  type BatchShape,
  DICTIONARY,
  describeMessage,
  type Message,
  RECORDS,
  SCHEMA,
} from './arrowMessages.js';
import { MOST_ROWS } from './arrowNumbers.js';
import {
  type Block,
  type ColumnFile,
  columnsIn,
  decoded,
  plainValue,
  repeated,
  type ValueKind,
} from './columnFile.js';
import { millisecondsOf, scaled, type TimeUnit } from './decimals.js';
import { FlatTable } from './flatbuffer.js';
import type { DataRecord } from './recordTable.js';
import type { WatchedFile } from './watchedFile.js';

/** Magic of the file format; its messages follow as in the stream format. */
const MAGIC = 'ARROW1\0\0';
/** Prefix of messages since format 0.15, before the length of their description. */
const CONTINUATION = 0xffffffff;
/** Finds a file's messages and reads its schema. */
export function openArrow(file: WatchedFile, wanted: readonly string[] | null): ColumnFile {
  const messages = [...messagesOf(file)];
  const [schema] = messages;
  if (schema?.kind !== SCHEMA)
    throw new InputError(
      `${file.path} is not an Arrow file: expected a schema at its first byte${file.size === 0 ? '; it is empty' : ''}.`,
    );
  const place = (what: string) => () => `${file.path}: ${what}`;
  const fields = decoded(place('the schema'), () => fieldsOf(file, schema));
  const has = new Map(fields.map(({ name, type }) => [name, kindOf(type)]));
  const columns = columnsIn(file, has, wanted);
  const dictionaries = new Dictionaries(file, messages, fields);
  const blocks: Block[] = [];
  let numDictionaries = 0;
  for (const { kind, batch, start, bodyAt, end } of messages) {
    if (kind === DICTIONARY) numDictionaries++;
    if (kind !== RECORDS || batch === undefined) continue;
    const at = place(`record batch ${blocks.length}, from byte ${start} on`);
    decoded(at, () => checkLength(batch, fields));
    const before = numDictionaries;
    const read = (): DataRecord[] => {
      const found = decoded(at, () => dictionaries.first(before));
      const reader = new BatchReader(batch, file.read(bodyAt, end), found);
      return recordsOf(batch.length, readColumns(fields, columns, reader, at));
    };
    blocks.push({ numRecords: batch.length, size: end - start, read });
  }
  return { file, format: 'Arrow 3', columns, blocks };
}

/** @throws Error for two columns of one name */
function fieldsOf(file: WatchedFile, { start, end }: Message): readonly Field[] {
  const { fields } = tableFromIPC([file.read(start, end)]).schema;
  checkNames(fields, '');
  return fields;
}

function checkNames(fields: readonly Field[], before: string): void {
  const twice = repeated(fields.map(({ name }) => name));
  if (twice !== undefined)
    throw new Error(`two columns are called '${before}${twice}'. Give each its own name`);
  for (const { name, type } of fields) {
    const { typeId, children = [] } = type as DataType & { readonly children?: readonly Field[] };
    // Children of other types are identified by their number.
    if (typeId === Type.Struct) checkNames(children, `${before}${name}.`);
  }
}

/** Compares the number of records with those of values in each column, by the description alone. @throws Error where they differ */
function checkLength({ length, nodes }: BatchShape, fields: readonly Field[]): void {
  if (!(length >= 0 && length <= MOST_ROWS))
    throw new Error(`it has ${length} records; expected 0 to ${MOST_ROWS}`);
  let at = 0;
  for (const { name, type } of fields) {
    const [count] = nodes[at] ?? [0];
    if (count !== length)
      throw new Error(`it has ${length} records, and ${count} values in column '${name}'`);
    at += numNodes(type);
  }
}

function numNodes(type: DataType): number {
  const { children = [] } = type as { readonly children?: readonly Field[] };
  return children.reduce((sum, child) => sum + numNodes(child.type), 1);
}

type NamedColumn = readonly [name: string, column: Column<unknown>, convert: Convert];

function readColumns(
  fields: readonly Field[],
  wanted: ReadonlyMap<string, ValueKind>,
  reader: BatchReader,
  place: () => string,
): NamedColumn[] {
  const found = new Map<string, NamedColumn>();
  for (const { name, type } of fields) {
    if (!wanted.has(name)) reader.skip(type);
    else
      decoded(
        () => `${place()}, column '${name}'`,
        () => found.set(name, [name, reader.read(type), converterOf(type)]),
      );
  }
  return [...wanted.keys()].map((name) => found.get(name)!);
}

function recordsOf(count: number, columns: readonly NamedColumn[]): DataRecord[] {
  return Array.from({ length: count }, (_, i) =>
    Object.fromEntries(columns.map(([name, column, convert]) => [name, convert(column.at(i))])),
  );
}

type Convert = (value: unknown) => unknown;

const UNITS: readonly TimeUnit[] = ['seconds', 'milliseconds', 'microseconds', 'nanoseconds'];

/**
 * Converts the library's value of a column to a record's: by `plainValue`, with special cases for nested types and
 * times.
 */
function converterOf(type: DataType): Convert {
  const convert = valueConverter(type);
  return (value) => (value === null || value === undefined ? null : convert(value));
}

function valueConverter(type: DataType): Convert {
  switch (type.typeId) {
    case Type.Decimal:
      return (value) => scaled(value as bigint, type.scale);
    case Type.Timestamp:
    case Type.Time:
    case Type.Duration:
      return millisecondsOf(UNITS[type.unit]!) as Convert;
    case Type.Dictionary:
      return converterOf(type.dictionary);
    case Type.RunEndEncoded:
      return converterOf(type.children[1].type);
    case Type.List:
    case Type.LargeList:
    case Type.ListView:
    case Type.LargeListView:
    case Type.FixedSizeList: {
      const convert = converterOf(type.children[0]!.type);
      return (value) => Array.from(value as ArrayLike<unknown>, convert);
    }
    case Type.Struct: {
      const fields = type.children.map((field) => [field.name, converterOf(field.type)] as const);
      return (value) =>
        Object.fromEntries(
          fields.map(([name, convert]) => [name, convert((value as Record<string, unknown>)[name])]),
        );
    }
    case Type.Map: {
      const [, item] = (type.children[0]!.type as { readonly children: readonly Field[] }).children;
      const convert = converterOf(item!.type);
      return (value) =>
        Object.fromEntries(
          [...(value as Map<unknown, unknown>)].map(([key, v]) => [String(key), convert(v)]),
        );
    }
    case Type.Union:
      if (hasScaled(type))
        throw new Error('it has a union with decimals or times. Store them in columns of their own');
      return plainValue;
    default:
      return plainValue;
  }
}

/** Whether there are decimals or times in a type. */
function hasScaled(type: DataType): boolean {
  const scaledTypes: readonly number[] = [Type.Decimal, Type.Timestamp, Type.Time, Type.Duration];
  const children = (type as { readonly children?: readonly Field[] }).children ?? [];
  return scaledTypes.includes(type.typeId) || children.some((field) => hasScaled(field.type));
}

/** The messages of a file up to its end or its mark of the end. @throws InputError for one that is cut off */
function* messagesOf(file: WatchedFile): Generator<Message> {
  const { size } = file;
  const hasMagic = file.read(0, Math.min(size, MAGIC.length)).toString('latin1') === MAGIC;
  if (hasMagic && file.read(Math.max(0, size - 6), size).toString('latin1') !== MAGIC.slice(0, 6))
    throw new InputError(
      `${file.path} is not a complete Arrow file: expected 'ARROW1' as its last 6 bytes. It may have been cut off.`,
    );
  let start = hasMagic ? MAGIC.length : 0;
  let numBatches = 0;
  while (start < size) {
    const cutOff = (): never => {
      throw new InputError(
        `${file.path}, byte ${start}: expected a message of Arrow's IPC format that ends within the file's ${size} bytes. It may have been cut off.`,
      );
    };
    const head = file.read(start, Math.min(size, start + 8));
    if (head.length < 8) cutOff();
    const isMarked = head.readUInt32LE(0) === CONTINUATION;
    const length = head.readInt32LE(isMarked ? 4 : 0);
    if (length === 0) {
      const end = start + (isMarked ? 8 : 4);
      if (!hasMagic && end < size)
        throw new InputError(
          `${file.path}, byte ${start}: its end mark, and ${size - end} bytes after it: the file is damaged.`,
        );
      break;
    }
    const from = start + (isMarked ? 8 : 4);
    if (length < 16 || from + length > size) cutOff();
    const description = decoded(
      () => `${file.path}: the message from byte ${start} on`,
      () => describeMessage(file.read(from, from + length)),
    );
    const bodyAt = from + length;
    const end = bodyAt + description.bodyBytes;
    if (description.bodyBytes < 0 || end > size) cutOff();
    if (description.kind === RECORDS) numBatches++;
    yield { ...description, start, bodyAt, end };
    start = end;
  }
  if (!hasMagic) return;
  const stated = decoded(
    () => `${file.path}: the footer`,
    () => batchesOfFooter(file),
  );
  if (stated !== numBatches)
    throw new InputError(
      `${file.path} has ${numBatches} record batches, and its footer says ${stated}: the file is damaged.`,
    );
}

/** Behind the footer: its length, and the magic. */
const TAIL_BYTES = 10;

function batchesOfFooter(file: WatchedFile): number {
  const at = file.size - TAIL_BYTES;
  const length = file.read(at, at + 4).readUInt32LE(0);
  if (length > at) throw new Error(`it has ${length} bytes in a file of ${file.size}`);
  return FlatTable.root(file.read(at - length, at)).count(3, 24);
}

const KINDS: Readonly<Record<number, ValueKind>> = {
  [Type.Null]: 'nulls',
  [Type.Bool]: 'booleans',
  [Type.Utf8]: 'text',
  [Type.LargeUtf8]: 'text',
  [Type.Utf8View]: 'text',
  [Type.Binary]: 'bytes',
  [Type.LargeBinary]: 'bytes',
  [Type.BinaryView]: 'bytes',
  [Type.FixedSizeBinary]: 'bytes',
  [Type.List]: 'lists',
  [Type.LargeList]: 'lists',
  [Type.ListView]: 'lists',
  [Type.LargeListView]: 'lists',
  [Type.FixedSizeList]: 'lists',
  [Type.Map]: 'maps',
  [Type.Struct]: 'structs',
};

function kindOf(type: DataType): ValueKind {
  if (type.typeId === Type.Dictionary) return kindOf(type.dictionary);
  if (type.typeId === Type.RunEndEncoded) return kindOf(type.children[1].type);
  return KINDS[type.typeId] ?? 'numbers';
}
