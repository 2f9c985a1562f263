/** @file Arrow files of either IPC format, decoded record batch by record batch. */
import {
  CompressionType,
  type DataType,
  type Field,
  setCompressionCodec,
  type Table,
  Type,
  tableFromIPC,
} from '@uwdata/flechette';
import { compressors } from 'hyparquet-compressors';
import { InputError } from '../inputErrors.js';
import { type Block, type ColumnFile, columnsIn, decoded, plainValue, type ValueKind } from './columnFile.js';
import { millisecondsOf, scaled, type TimeUnit } from './decimals.js';
import type { DataRecord } from './recordTable.js';
import type { WatchedFile } from './watchedFile.js';

/** What the file format begins with; its messages follow as in the stream format. */
const MAGIC = 'ARROW1\0\0';
/** What messages begin with since format 0.15, before the length of their description. */
const CONTINUATION = 0xffffffff;
/** Kinds of messages. */
const [SCHEMA, DICTIONARY, RECORDS] = [1, 2, 3];

setCompressionCodec(CompressionType.ZSTD, {
  encode: (bytes) => bytes,
  // Copied to where numbers of 8 bytes can begin.
  decode: (bytes, length = 0) => compressors.ZSTD!(bytes, length).slice(),
});
const noLz4 = (): never => {
  throw new Error("it is compressed with LZ4. Store it with compression='zstd', or 'uncompressed'");
};
setCompressionCodec(CompressionType.LZ4_FRAME, { encode: noLz4, decode: noLz4 });

/** A message of a file. */
interface Message {
  readonly start: number;
  readonly end: number;
  readonly kind: number;
  /** Records of a batch of them. */
  readonly numRecords: number;
}

/** Finds a file's messages and reads its schema. */
export function openArrow(file: WatchedFile, wanted: readonly string[] | null): ColumnFile {
  const messages = [...messagesOf(file)];
  const [schema] = messages;
  if (schema?.kind !== SCHEMA)
    throw new InputError(
      `${file.path} is no Arrow file: expected a schema at its first byte${file.size === 0 ? '; it is empty' : ''}.`,
    );
  const bytesOf = ({ start, end }: Message): Uint8Array => file.read(start, end);
  const place = (what: string) => () => `${file.path}: ${what}`;
  const types = decoded(place('the schema'), () => tableFromIPC([bytesOf(schema)]).schema.fields);
  const has = new Map(types.map(({ name, type }) => [name, kindOf(type)]));
  const columns = columnsIn(file, has, wanted);
  const names = [...columns.keys()];
  const blocks = messages.flatMap((message, m): Block[] => {
    if (message.kind !== RECORDS) return [];
    const { numRecords, start, end } = message;
    const read = (): DataRecord[] =>
      decoded(place(`the record batch from byte ${start} on`), () => {
        const before = messages.slice(1, m).filter(({ kind }) => kind === DICTIONARY);
        const parts = [schema, ...before, message].map(bytesOf);
        const exact = { useBigInt: true, useBigIntTimestamp: true, useDecimalInt: true };
        return recordsOf(tableFromIPC(parts, { ...exact, useMap: true }).select(names));
      });
    return [{ numRecords, size: end - start, read }];
  });
  return { file, format: 'Arrow 2', columns, blocks };
}

function recordsOf(table: Table): DataRecord[] {
  const columns = table.names.map((name) => {
    const column = table.getChild(name);
    return [String(name), column, converterOf(column.type as DataType)] as const;
  });
  return Array.from({ length: table.numRows }, (_, i) =>
    Object.fromEntries(columns.map(([name, column, convert]) => [name, convert(column.at(i))])),
  );
}

type Convert = (value: unknown) => unknown;

const UNITS: readonly TimeUnit[] = ['seconds', 'milliseconds', 'microseconds', 'nanoseconds'];

/** What makes a record's value of one that the library gives: `plainValue`, but for what these types are made of. */
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
      `${file.path} is no whole Arrow file: expected 'ARROW1' as its last 6 bytes. It may have been cut off.`,
    );
  let start = hasMagic ? MAGIC.length : 0;
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
    if (length === 0) return;
    const from = start + (isMarked ? 8 : 4);
    if (length < 16 || from + length > size) cutOff();
    const { kind, numRecords, bodyBytes } = decoded(
      () => `${file.path}: the message from byte ${start} on`,
      () => describe(file.read(from, from + length)),
    );
    const end = from + length + bodyBytes;
    if (bodyBytes < 0 || end > size) cutOff();
    yield { start, end, kind, numRecords };
    start = end;
  }
}

/** What a message's description says, a flatbuffer: table Message { version, header_type, header, bodyLength }. */
function describe(bytes: Buffer): { kind: number; numRecords: number; bodyBytes: number } {
  const fieldOf = (table: number, slot: number): number => {
    const shape = table - bytes.readInt32LE(table);
    const at = 4 + 2 * slot;
    const offset = at < bytes.readUInt16LE(shape) ? bytes.readUInt16LE(shape + at) : 0;
    return offset === 0 ? 0 : table + offset;
  };
  const message = bytes.readUInt32LE(0);
  const [kindAt, headerAt, bodyAt] = [fieldOf(message, 1), fieldOf(message, 2), fieldOf(message, 3)];
  const kind = kindAt === 0 ? 0 : bytes.readUInt8(kindAt);
  // A RecordBatch's first field is its number of records.
  const lengthAt = kind === RECORDS ? fieldOf(headerAt + bytes.readUInt32LE(headerAt), 0) : 0;
  const long = (at: number): number => (at === 0 ? 0 : Number(bytes.readBigInt64LE(at)));
  return { kind, numRecords: long(lengthAt), bodyBytes: long(bodyAt) };
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
