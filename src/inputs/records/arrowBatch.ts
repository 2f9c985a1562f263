/** @file Record batches of Arrow: each length, offset and index is checked before a library reads values by them. */
import { isUtf8 } from 'node:buffer';
import { type Batch, batchType, Column, type DataType, type Field, Type } from '@uwdata/flechette';
import type { BatchShape } from './arrowMessages.js';
import {
  type ArrayClass,
  bytesOf,
  checkListViews,
  checkOffsets,
  checkTexts,
  MOST_ROWS,
  type NumberArray,
  typed,
} from './arrowNumbers.js';
import { unpackedBytes } from './unpackedBytes.js';

const OPTIONS = { useBigInt: true, useBigIntTimestamp: true, useDecimalInt: true, useMap: true } as const;
const ZSTD = 1;
/** Bytes of a view; those of its text are in it where they are at most 12. */
const [VIEW_BYTES, INLINE_BYTES] = [16, 12];

type Types = DataType & {
  readonly bitWidth: number;
  readonly precision: number;
  readonly stride: number;
  readonly unit: number;
  readonly mode: number;
  readonly typeIds: readonly number[];
  readonly id: number;
  readonly values: ArrayClass;
  readonly offsets: ArrayClass;
  readonly indices: Types & { readonly values: ArrayClass };
  readonly children: readonly Field[];
  readonly dictionary: DataType;
};
type AnyBatch = Batch<unknown> & { setDictionary(column: Column<unknown>): AnyBatch };
type BatchClass = new (parts: Record<string, unknown>) => AnyBatch;

/** Bytes of a value of each type whose values have a length. */
function widthOf(type: Types): number | undefined {
  switch (type.typeId) {
    case Type.Int:
    case Type.Time:
    case Type.Decimal:
      return type.bitWidth / 8;
    case Type.Float:
      return [2, 4, 8][type.precision];
    case Type.Date:
      return type.unit === 0 ? 4 : 8;
    case Type.Timestamp:
    case Type.Duration:
      return 8;
    case Type.Interval:
      return [4, 8, 16][type.unit];
    case Type.FixedSizeBinary:
      return type.stride;
    default:
      return undefined;
  }
}

const childrenOf = (type: DataType): readonly Types[] =>
  ((type as Types).children ?? []).map((field) => field.type as Types);

/** The columns of a record batch, or the values of a dictionary. */
export class BatchReader {
  readonly #shape: BatchShape;
  readonly #body: Buffer;
  readonly #dictionaries: ReadonlyMap<number, Column<unknown>>;
  #node = 0;
  #buffer = 0;
  #variadic = 0;

  constructor(shape: BatchShape, body: Buffer, dictionaries: ReadonlyMap<number, Column<unknown>>) {
    this.#shape = shape;
    this.#body = body;
    this.#dictionaries = dictionaries;
  }

  /** The next column's values. @throws Error where they contradict the batch's header */
  read(type: DataType): Column<unknown> {
    const batch = this.#visit(type as Types);
    if (batch.length === this.#shape.length) return new Column([batch], type);
    throw new Error(`it has ${batch.length} values, and the batch ${this.#shape.length} records`);
  }

  /** Goes past the next column. */
  skip(type: DataType): void {
    const { typeId } = type;
    this.#node++;
    const own = type as Types;
    if (typeId === Type.Utf8View || typeId === Type.BinaryView)
      this.#buffer += 2 + (this.#shape.variadic[this.#variadic++] ?? 0);
    else if (typeId === Type.Union)
      this.#buffer += (this.#shape.hasUnionBits ? 1 : 0) + (own.mode === 0 ? 1 : 2);
    else this.#buffer += NUM_BUFFERS[typeId] ?? 2;
    if (typeId !== Type.Dictionary) for (const child of childrenOf(type)) this.skip(child);
  }

  #visit(type: Types): AnyBatch {
    const [length, nullCount] = this.#shape.nodes[this.#node++] ?? [-1, 0];
    if (!(length >= 0 && length <= MOST_ROWS && nullCount >= 0 && nullCount <= length))
      throw new Error(`it has ${length} values, and ${nullCount} of them nulls`);
    const make = (parts: Record<string, unknown>): AnyBatch =>
      new (batchType(type, OPTIONS) as unknown as BatchClass)({ length, nullCount, type, ...parts });
    const { typeId } = type;
    if (typeId === Type.Null) return make({ nullCount: length });
    if (typeId === Type.Union) return make(this.#union(type, length));
    if (typeId === Type.RunEndEncoded) return make({ children: this.#runs(type, length) });
    const validity = this.#validity(length, nullCount);
    const isValid = (i: number): boolean => nullCount === 0 || ((validity[i >> 3]! >> (i & 7)) & 1) === 1;
    const width = widthOf(type);
    if (width !== undefined) return make({ validity, values: this.#fixed(type, width, length) });
    switch (typeId) {
      case Type.Bool:
        return make({ validity, values: this.#bytes(Math.ceil(length / 8)) });
      case Type.Utf8:
      case Type.LargeUtf8:
      case Type.Binary:
      case Type.LargeBinary: {
        const offsets = this.#offsets(type, length);
        const values = this.#bytes(0);
        checkOffsets(offsets, length, values.length);
        if (typeId === Type.Utf8 || typeId === Type.LargeUtf8) checkTexts(offsets, length, values, isValid);
        return make({ validity, offsets, values });
      }
      case Type.Utf8View:
      case Type.BinaryView:
        return make({ validity, ...this.#views(typeId === Type.Utf8View, length, isValid) });
      case Type.List:
      case Type.LargeList:
      case Type.Map: {
        const offsets = this.#offsets(type, length);
        const child = this.#visit(childrenOf(type)[0]!);
        checkOffsets(offsets, length, child.length);
        return make({ validity, offsets, children: [child] });
      }
      case Type.ListView:
      case Type.LargeListView: {
        const [offsets, sizes] = [this.#numbers(type.offsets, length), this.#numbers(type.offsets, length)];
        const child = this.#visit(childrenOf(type)[0]!);
        checkListViews(offsets, sizes, child.length, isValid);
        return make({ validity, offsets, sizes, children: [child] });
      }
      case Type.FixedSizeList: {
        const child = this.#visit(childrenOf(type)[0]!);
        if (!(type.stride >= 0 && length * type.stride <= child.length))
          throw new Error(`${length} lists of ${type.stride} values have ${child.length} in all`);
        return make({ validity, children: [child] });
      }
      case Type.Struct:
        return make({ validity, children: this.#inner(type, length) });
      case Type.Dictionary: {
        const indices = this.#fixed(type.indices, type.indices.bitWidth / 8, length, type.indices.values);
        const dictionary = this.#dictionaries.get(type.id);
        if (dictionary === undefined) throw new Error(`its dictionary ${type.id} is not there`);
        for (let i = 0; i < length; i++)
          if (isValid(i) && !(indices[i]! >= 0 && indices[i]! < dictionary.length))
            throw new Error(`value ${i} is number ${indices[i]} of a dictionary of ${dictionary.length}`);
        return make({ validity, values: indices }).setDictionary(dictionary);
      }
      default:
        throw new Error(`type ${typeId} is not known`);
    }
  }

  /** Columns inside, each of at least so many values. */
  #inner(type: Types, length: number): AnyBatch[] {
    return childrenOf(type).map((child) => {
      const batch = this.#visit(child);
      if (batch.length < length)
        throw new Error(`a column inside has ${batch.length} values, and ${length} are there`);
      return batch;
    });
  }

  #union(type: Types, length: number): Record<string, unknown> {
    if (this.#shape.hasUnionBits) this.#bytes(0);
    const typeIds = this.#numbers(Int8Array as unknown as ArrayClass, length);
    const isSparse = type.mode === 0;
    const offsets = isSparse ? null : this.#numbers(type.offsets, length);
    const children = isSparse
      ? this.#inner(type, length)
      : childrenOf(type).map((child) => this.#visit(child));
    for (let i = 0; i < length; i++) {
      const child = children[type.typeIds.indexOf(Number(typeIds[i]))];
      const at = offsets === null ? i : Number(offsets[i]);
      if (child === undefined || !(at >= 0 && at < child.length))
        throw new Error(`value ${i} is number ${at} of type ${typeIds[i]}, which is not there`);
    }
    return { typeIds, offsets, children };
  }

  #runs(type: Types, length: number): AnyBatch[] {
    const [ends, values] = childrenOf(type).map((child) => this.#visit(child)) as [AnyBatch, AnyBatch];
    let before = 0;
    for (let i = 0; i < ends.length; i++) {
      const end = Number(ends.at(i) ?? -1);
      if (end <= before) throw new Error(`run ${i} ends at ${end}, and the one before at ${before}`);
      before = end;
    }
    if (before < length || values.length < ends.length)
      throw new Error(`its ${ends.length} runs of ${values.length} values end at ${before} of ${length}`);
    return [ends, values];
  }

  #views(isText: boolean, length: number, isValid: (i: number) => boolean): Record<string, unknown> {
    const values = this.#bytes(VIEW_BYTES * length);
    const count = this.#shape.variadic[this.#variadic++] ?? -1;
    if (!(count >= 0 && this.#buffer + count <= this.#shape.buffers.length))
      throw new Error(`it has ${count} buffers of ${this.#shape.buffers.length - this.#buffer}`);
    const data = Array.from({ length: count }, () => this.#bytes(0));
    const view = new DataView(values.buffer, values.byteOffset, values.length);
    for (let i = 0; i < length; i++) {
      if (!isValid(i)) continue;
      const at = VIEW_BYTES * i;
      const size = view.getInt32(at, true);
      const isInline = size <= INLINE_BYTES;
      const from = isInline ? at + 4 : view.getInt32(at + 12, true);
      const bytes = isInline ? values : data[view.getInt32(at + 8, true)];
      if (bytes === undefined || !(size >= 0 && from >= 0 && from + size <= bytes.length))
        throw new Error(`value ${i} has ${size} bytes from byte ${from} of a buffer on, which are not there`);
      if (isText && !isUtf8(bytes.subarray(from, from + size))) throw new Error(`text ${i} is not UTF-8`);
    }
    return { values, data };
  }

  /** Bits of values that are no nulls, where there are nulls. */
  #validity(length: number, nullCount: number): Uint8Array {
    const bits = this.#bytes(nullCount === 0 ? 0 : Math.ceil(length / 8));
    if (bits.length < length / 8) return bits;
    let valid = 0;
    for (let i = 0; i < length; i++) valid += (bits[i >> 3]! >> (i & 7)) & 1;
    if (length - valid === nullCount) return bits;
    throw new Error(`it has ${length - valid} nulls; it says ${nullCount}`);
  }

  #fixed(type: Types, width: number, length: number, ArrayType = type.values): NumberArray {
    if (!(width >= 0)) throw new Error(`its values have ${width} bytes each`);
    const bytes = this.#bytes(width * length);
    return typed(bytes, ArrayType ?? (Uint8Array as unknown as ArrayClass));
  }

  #numbers(ArrayType: ArrayClass, length: number): NumberArray {
    return typed(this.#bytes(bytesOf(ArrayType) * length), ArrayType);
  }

  /** Where values begin and end: none where there are no values. */
  #offsets(type: Types, length: number): NumberArray {
    return this.#numbers(type.offsets, length === 0 ? 0 : length + 1);
  }

  /** The next buffer. @throws Error where it has less than so many bytes, or they are not in the body */
  #bytes(least: number): Uint8Array {
    const [offset, length] = this.#shape.buffers[this.#buffer++] ?? [-1, 0];
    if (!(offset >= 0 && length >= 0 && offset + length <= this.#body.length))
      throw new Error(
        `a buffer of ${length} bytes at byte ${offset} is not in the batch's ${this.#body.length} bytes`,
      );
    const stored = this.#body.subarray(offset, offset + length);
    const bytes = this.#shape.codec === undefined || length === 0 ? stored : this.#unpacked(stored);
    if (bytes.length >= least) return bytes;
    throw new Error(`a buffer has ${bytes.length} bytes; its values take ${least}`);
  }

  /** A compressed buffer begins with its length. */
  #unpacked(stored: Buffer): Uint8Array {
    if (this.#shape.codec !== ZSTD)
      throw new Error("it is compressed with LZ4. Store it with compression='zstd', or 'uncompressed'");
    if (stored.length < 8) throw new Error('a compressed buffer is cut off');
    const length = Number(stored.readBigInt64LE(0));
    if (length === -1) return stored.subarray(8);
    if (length < 0) throw new Error(`a compressed buffer says that it has ${length} bytes`);
    return unpackedBytes('ZSTD', stored.subarray(8), length);
  }
}

/** Buffers of types that have others than two, without those of their children. */
const NUM_BUFFERS: Readonly<Record<number, number>> = {
  [Type.Null]: 0,
  [Type.RunEndEncoded]: 0,
  [Type.Struct]: 1,
  [Type.FixedSizeList]: 1,
  [Type.Utf8]: 3,
  [Type.LargeUtf8]: 3,
  [Type.Binary]: 3,
  [Type.LargeBinary]: 3,
  [Type.ListView]: 3,
  [Type.LargeListView]: 3,
};
