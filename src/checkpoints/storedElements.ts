/** @file Elements of a tensor in a file, in the order and the type of a variable, any stretch of them at a time. */
import { type FlatArray, type NarrowType, narrow, type Words } from '../compiler/index.js';
import { bytesOf } from './durableFile.js';
import type { ElementOrder } from './elementOrder.js';
import { asFloats, FloatRangeError, floatBytes } from './floats.js';
import { elementCount, type SafetensorsDtype, type TensorSpec } from './safetensors.js';

/** Elements of a variable that a tensor gives. */
export interface Elements {
  /** How many to take at once, at most `most`, where it is to be fast. */
  stretch(most: number): number;
  /**
   * Fills `target` with the elements from `from` on.
   *
   * @param storage of `target`, where it is not float32; floats are rounded to the nearest even.
   * @throws CheckpointError where the file can't be read, and of kind `mismatch` for elements that float32 can't hold
   */
  fill(target: FlatArray, from: number, storage?: NarrowType): void;
  /** Lets the system take back the memory of elements that were read. */
  release(): void;
}

/** The bytes of a tensor. */
export interface TensorBytes {
  /** Reads bytes from byte `at` on. */
  readonly read: (target: Uint8Array, at: number) => void;
  /** All of them in memory without being read, where they are there and aligned to the tensor's elements. */
  readonly mapped: Uint8Array | undefined;
  readonly forget: () => void;
}

/** Elements that are converted at once. */
const PIECE = 1 << 18;

/** Types whose elements are those of a file bit by bit. */
const SAME: Partial<Record<SafetensorsDtype, 'float32' | NarrowType>> = {
  ...{ F32: 'float32', BF16: 'bfloat16', F16: 'float16' },
};

const WORDS = { 1: Uint8Array, 2: Uint16Array, 4: Int32Array, 8: BigInt64Array } as const;

/** Elements of a dtype that can be read as float32. */
export class StoredElements implements Elements {
  readonly #Words: (typeof WORDS)[keyof typeof WORDS];
  /** All words of the tensor, once they are needed. */
  #words: Words | undefined;

  /** @param misfit the error of a problem with the tensor */
  constructor(
    private readonly tensor: TensorSpec,
    private readonly bytes: TensorBytes,
    private readonly order: ElementOrder | undefined,
    private readonly misfit: (problem: string) => Error,
  ) {
    this.#Words = WORDS[floatBytes(tensor.dtype) as keyof typeof WORDS];
  }

  stretch(most: number): number {
    return this.order?.stretch(most) ?? most;
  }

  fill(target: FlatArray, from: number, storage?: NarrowType): void {
    const Words = this.#Words;
    if (SAME[this.tensor.dtype] === (storage ?? 'float32')) {
      this.#read(new Words(target.buffer as ArrayBuffer, target.byteOffset, target.length), from);
      return;
    }
    const most = this.stretch(PIECE);
    for (let done = 0; done < target.length; done += most) {
      const words = new Words(Math.min(most, target.length - done));
      this.#read(words, from + done);
      const floats = this.#floats(words, from + done);
      target.set(storage === undefined ? floats : narrow(floats, storage), done);
    }
  }

  release(): void {
    this.#words = undefined;
    this.bytes.forget();
  }

  #read(target: Words, from: number): void {
    if (this.order === undefined) this.bytes.read(bytesOf(target), from * target.BYTES_PER_ELEMENT);
    else this.order.gather(target, from, (this.#words ??= this.#all()));
  }

  #all(): Words {
    const { mapped, read } = this.bytes;
    const count = elementCount(this.tensor.shape);
    if (mapped) return new this.#Words(mapped.buffer as ArrayBuffer, mapped.byteOffset, count);
    const words = new this.#Words(count);
    read(bytesOf(words), 0);
    return words;
  }

  #floats(words: Words, from: number): Float32Array {
    const { dtype } = this.tensor;
    try {
      return asFloats(dtype, words.buffer as ArrayBuffer, words.length);
    } catch (error) {
      if (!(error instanceof FloatRangeError)) throw error;
      const element = from + error.index;
      const place = this.order?.placeOf(element) ?? element;
      throw this.misfit(`element ${place} of ${dtype}: ${error.message}`);
    }
  }
}

/** Elements that are computed as float32. @param stretch as in Elements */
const floatElements = (
  fill: (target: Float32Array, from: number) => void,
  stretch: Elements['stretch'] = (most) => most,
): Elements => ({
  stretch,
  fill(target, from, storage) {
    if (storage === undefined) {
      fill(target as Float32Array, from);
      return;
    }
    const floats = new Float32Array(target.length);
    fill(floats, from);
    target.set(narrow(floats, storage));
  },
  release: () => {},
});

/**
 * Elements that are unpacked as float32, in another order where there is one: all of them are unpacked then.
 *
 * @param count of the whole tensor.
 */
export function orderedFloats(
  count: number,
  order: ElementOrder | undefined,
  unpack: (target: Float32Array, from: number) => void,
): Elements {
  if (order === undefined) return floatElements(unpack);
  let all: Float32Array | undefined;
  const elements = floatElements(
    (target, from) => {
      if (all === undefined) {
        all = new Float32Array(count);
        unpack(all, 0);
      }
      order.gather(target, from, all);
    },
    (most) => order.stretch(most),
  );
  const release = (): void => {
    all = undefined;
  };
  return { ...elements, release };
}
