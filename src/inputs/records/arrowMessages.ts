/** @file Messages of Arrow's IPC format: their descriptions, checked before anything is read by them. */
import { FlatTable } from './flatbuffer.js';

/** Kinds of messages. */
export const [SCHEMA, DICTIONARY, RECORDS] = [1, 2, 3];

/** Format versions: since the fourth buffers have no page, and since the fifth unions have no bits of validity. */
const [FOURTH, FIFTH] = [3, 4];

/** A record batch's description. */
export interface BatchShape {
  readonly length: number;
  /** Number of values and of nulls of each column, and of those inside. */
  readonly nodes: readonly (readonly [length: number, nullCount: number])[];
  /** Where the buffers are in the body. */
  readonly buffers: readonly (readonly [offset: number, length: number])[];
  /** How many buffers columns of views have. */
  readonly variadic: readonly number[];
  /** Its number, or none. */
  readonly codec: number | undefined;
  /** Whether unions have bits of validity. */
  readonly hasUnionBits: boolean;
}

/** A message's description. */
export interface Description {
  readonly kind: number;
  readonly bodyBytes: number;
  readonly batch?: BatchShape;
  /** Of a dictionary. */
  readonly id?: number;
  /** Whether its values come behind those before. */
  readonly isDelta?: boolean;
}

/** A message of a file. */
export interface Message extends Description {
  readonly start: number;
  /** Where its body begins. */
  readonly bodyAt: number;
  readonly end: number;
}

/** Reads a message's description. @throws Error for one that is damaged */
export function describeMessage(bytes: Buffer): Description {
  const message = FlatTable.root(bytes);
  const [version, kind, bodyBytes] = [message.int16(0), message.uint8(1), message.int64(3)];
  const head = message.table(2);
  if (head === undefined) return { kind: 0, bodyBytes };
  if (kind === SCHEMA) {
    checkSchema(head);
    return { kind, bodyBytes };
  }
  if (kind === RECORDS) return { kind, bodyBytes, batch: batchOf(head, version) };
  if (kind !== DICTIONARY) return { kind, bodyBytes };
  const values = head.table(1);
  if (values === undefined) throw new Error('a dictionary has no values');
  return {
    kind,
    bodyBytes,
    batch: batchOf(values, version),
    id: head.int64(0),
    isDelta: head.uint8(2) !== 0,
  };
}

function batchOf(table: FlatTable, version: number): BatchShape {
  const compression = table.table(3);
  if (compression !== undefined && compression.uint8(1) !== 0)
    throw new Error('its compression is not one of buffers');
  return {
    length: table.int64(0),
    nodes: table.pairs(1),
    buffers: table.pairs(2, version < FOURTH ? 24 : 16),
    codec: compression?.uint8(0),
    variadic: table.int64s(4),
    hasUnionBits: version < FIFTH,
  };
}

/** Goes through all that a library reads of a schema. @throws Error for parts that are missing */
function checkSchema(schema: FlatTable): void {
  if (schema.int16(0) !== 0)
    throw new Error('its numbers have the high byte first. Write them with the low one first');
  for (const field of schema.tables(1)) checkField(field);
  checkPairs(schema, 2);
}

function checkField(field: FlatTable): void {
  field.checkText(0);
  field.uint8(1);
  field.uint8(2);
  const type = field.table(3);
  if (type === undefined) throw new Error('a column has no type');
  // Units, widths and the like, and the time zone of timestamps or the numbers of a union's types.
  for (const slot of [0, 1, 2]) type.checkScalar(slot, 4);
  if (field.uint8(2) === TIMESTAMP) type.checkText(1);
  if (field.uint8(2) === UNION) type.int32s(1);
  const dictionary = field.table(4);
  dictionary?.int64(0);
  const index = dictionary?.table(1);
  for (const slot of [0, 1]) index?.checkScalar(slot, 4);
  for (const child of field.tables(5)) checkField(child);
  checkPairs(field, 6);
}

const [TIMESTAMP, UNION] = [10, 14];

/** Names and texts beside a schema or column. */
function checkPairs(table: FlatTable, slot: number): void {
  for (const pair of table.tables(slot)) for (const text of [0, 1]) pair.checkText(text);
}
