/** @file Weights of 8 and 4 bits whose scales are a tensor of their own, as published models pack them. */
import type { AxisOrder } from './axes.js';
import { CheckpointError } from './checkpointErrors.js';
import { ElementOrder } from './elementOrder.js';
import { elementCount, type TensorSpec } from './safetensors.js';
import { SafetensorsFile } from './safetensorsFile.js';
import { type Elements, orderedFloats } from './storedElements.js';
import type { TensorFile } from './tensorFile.js';
import { CHUNK_BYTES } from './wholeReads.js';

/** One way of packing. */
interface Packing {
  /** The name of a tensor's scales; undefined for a tensor that is not packed so. */
  readonly scalesOf: (tensor: TensorSpec) => string | undefined;
  /** Shape of the elements, and the shapes that their scales may have, by the shape that is stored. */
  readonly shapeOf: (stored: readonly number[]) => readonly number[];
  readonly scaleShapesOf: (stored: readonly number[]) => readonly (readonly number[])[];
  readonly elementsPerByte: number;
  /** Factors by the scales as they are stored. */
  readonly factorOf: (scale: number) => number;
  /**
   * Unpacks elements.
   *
   * @param bytes from the one on that holds element `from`.
   * @param factors of all blocks.
   * @param shape of the whole tensor's elements.
   */
  readonly unpack: (
    target: Float32Array,
    bytes: Uint8Array,
    from: number,
    factors: Float32Array,
    shape: readonly number[],
  ) => void;
}

/** Values of E4M3: a sign, 4 bits of an exponent, and 3 of a fraction; without infinities, and with NaN as all ones. */
const E4M3 = Float32Array.from({ length: 256 }, (_, code) => {
  const [sign, exponent, fraction] = [code & 128 ? -1 : 1, (code >> 3) & 15, code & 7];
  if (exponent === 15 && fraction === 7) return Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -9 : (8 + fraction) * 2 ** (exponent - 10));
});

/** Values of E2M1: a sign, 2 bits of an exponent, and 1 of a fraction. */
const E2M1 = Float32Array.from({ length: 16 }, (_, code) => {
  const [sign, exponent, fraction] = [code & 8 ? -1 : 1, (code >> 1) & 3, code & 1];
  return sign * (exponent === 0 ? fraction / 2 : (2 + fraction) * 2 ** (exponent - 2));
});

/** Elements that are unpacked at once. */
const CHUNK_ELEMENTS = CHUNK_BYTES / Float32Array.BYTES_PER_ELEMENT;

/** Rows and columns of a block of FP8 weights. */
const FP8_BLOCK = 128;
/** Elements of a block of MXFP4. */
const MX_BLOCK = 32;

/**
 * Matrices of E4M3, perhaps several in a tensor, as `X` and `X_scale_inv`: with a factor for each 128 x 128 of a matrix, as
 * DeepSeek-V3's, for each matrix, or for the whole tensor.
 */
const fp8: Packing = {
  scalesOf: ({ name, dtype, shape }) =>
    dtype === 'F8_E4M3' && shape.length > 1 ? `${name}_scale_inv` : undefined,
  shapeOf: (stored) => stored,
  scaleShapesOf: (stored) => {
    const [outer, matrix] = [stored.slice(0, -2), stored.slice(-2)];
    const blocks = matrix.map((size) => Math.ceil(size / FP8_BLOCK));
    return [[...outer, ...blocks], [...outer, 1, 1], [], [1]];
  },
  elementsPerByte: 1,
  factorOf: (scale) => scale,
  unpack(target, bytes, from, factors, shape) {
    const [rows, columns] = shape.slice(-2) as [number, number];
    const matrices = elementCount(shape.slice(0, -2));
    const hasBlocks = factors.length > matrices;
    const block = hasBlocks ? FP8_BLOCK : Number.POSITIVE_INFINITY;
    const perRow = hasBlocks ? Math.ceil(columns / FP8_BLOCK) : 1;
    const perMatrix = hasBlocks ? factors.length / matrices : Number(factors.length > 1);
    let [row, column] = [Math.floor(from / columns), from % columns];
    for (let i = 0; i < target.length; i++) {
      const first = Math.floor(row / rows) * perMatrix;
      const factor = first + Math.floor((row % rows) / block) * perRow + Math.floor(column / block);
      target[i] = E4M3[bytes[i]!]! * factors[factor]!;
      if (++column === columns) [row, column] = [row + 1, 0];
    }
  },
};

/**
 * OCP's MXFP4 (Microscaling Formats, 2023), as gpt-oss has it: `X_blocks` [..., blocks, 16], bytes of two E2M1 each, the lower
 * bits first; `X_scales` [..., blocks], exponents of 2, biased by 127.
 */
const mxfp4: Packing = {
  scalesOf: ({ name, dtype, shape }) =>
    dtype === 'U8' && name.endsWith('_blocks') && shape.length > 1 && shape.at(-1) === MX_BLOCK / 2
      ? name.replace(/_blocks$/, '_scales')
      : undefined,
  shapeOf: (stored) => [...stored.slice(0, -2), stored.at(-2)! * MX_BLOCK],
  scaleShapesOf: (stored) => [stored.slice(0, -1)],
  elementsPerByte: 2,
  factorOf: (scale) => (scale === 255 ? Number.NaN : 2 ** (scale - 127)),
  unpack(target, bytes, from, factors) {
    const odd = from % 2;
    let block = Math.floor(from / MX_BLOCK);
    let left = MX_BLOCK - (from % MX_BLOCK);
    for (let i = 0; i < target.length; i++) {
      const byte = bytes[(i + odd) >> 1]!;
      target[i] = E2M1[(i + odd) % 2 === 0 ? byte & 15 : byte >> 4]! * factors[block]!;
      if (--left === 0) [block, left] = [block + 1, MX_BLOCK];
    }
  },
};

/** A tensor of a file. */
interface Stored {
  readonly file: SafetensorsFile;
  readonly name: string;
}

/** A tensor with scales, perhaps in another file, that reads as its elements. */
export class PackedTensor {
  readonly shape: readonly number[];

  private constructor(
    private readonly packing: Packing,
    private readonly values: Stored,
    readonly scales: Stored,
  ) {
    const stored = values.file.place(values.name)!.shape;
    this.shape = packing.shapeOf(stored);
    const shapes = packing.scaleShapesOf(stored).map((shape) => `[${shape.join(', ')}]`);
    const found = `[${scales.file.place(scales.name)!.shape.join(', ')}]`;
    if (shapes.includes(found)) return;
    const [expected, ...others] = new Set(shapes);
    throw new CheckpointError(
      'mismatch',
      scales.file.path,
      `tensor '${scales.name}': expected ${[`${expected}, a scale for each block of '${values.name}'`, ...others].join(', or ')}, found ${found}`,
    );
  }

  /**
   * The tensor, if it is packed and its scales are there.
   *
   * @throws CheckpointError for scales that are not those of its blocks
   */
  static of(
    name: string,
    file: TensorFile,
    fileOf: (name: string) => TensorFile | undefined,
  ): PackedTensor | undefined {
    if (!(file instanceof SafetensorsFile)) return undefined;
    for (const packing of [fp8, mxfp4]) {
      const scales = packing.scalesOf(file.place(name)!);
      const scalesFile = scales === undefined ? undefined : fileOf(scales);
      if (scalesFile instanceof SafetensorsFile)
        return new PackedTensor(packing, { file, name }, { file: scalesFile, name: scales! });
    }
    return undefined;
  }

  /** As SafetensorsFile.elements. */
  elements(order?: AxisOrder): Elements {
    const factors = this.#factors();
    return orderedFloats(elementCount(this.shape), ElementOrder.of(order), (target, from) =>
      this.#unpack(target, from, factors),
    );
  }

  #unpack(target: Float32Array, from: number, factors: Float32Array): void {
    const { file, name } = this.values;
    const { unpack, elementsPerByte } = this.packing;
    for (let done = 0; done < target.length; done += CHUNK_ELEMENTS) {
      const piece = target.subarray(done, done + CHUNK_ELEMENTS);
      const [start, end] = [from + done, from + done + piece.length];
      const first = Math.floor(start / elementsPerByte);
      const bytes = new Uint8Array(Math.ceil(end / elementsPerByte) - first);
      file.readBytes(name, bytes, first);
      unpack(piece, bytes, start, factors, this.shape);
    }
  }

  /** Whether elements and scales are those of another tensor. */
  isEqual(other: PackedTensor): boolean {
    const equal = (a: Stored, b: Stored): boolean => a.file.isEqual(a.name, b.file, b.name);
    return equal(this.values, other.values) && equal(this.scales, other.scales);
  }

  #factors(): Float32Array {
    const { file, name } = this.scales;
    const scales = new Float32Array(elementCount(file.place(name)!.shape));
    file.readFloats(name, scales);
    return scales.map(this.packing.factorOf);
  }
}
