/** @file Weights of 8 and 4 bits whose scales are a tensor of their own, as published models pack them. */
import { type AxisOrder, placeElements, sameAxes } from './axes.js';
import { CheckpointError } from './checkpointErrors.js';
import { elementCount, type TensorSpec } from './safetensors.js';
import { CHUNK_BYTES, type SafetensorsFile } from './safetensorsFile.js';

/** One way of packing. */
interface Packing {
  /** The name of a tensor's scales; undefined for a tensor that is not packed so. */
  readonly scalesOf: (tensor: TensorSpec) => string | undefined;
  /** Shape of the elements, and of their scales, by the shape that is stored. */
  readonly shapeOf: (stored: readonly number[]) => readonly number[];
  readonly scaleShapeOf: (stored: readonly number[]) => readonly number[];
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

/** Rows and columns of a block of FP8 weights. */
const FP8_BLOCK = 128;
/** Elements of a block of MXFP4. */
const MX_BLOCK = 32;

/** Matrices of E4M3 with a factor for each 128 x 128 of them, as DeepSeek-V3's: `X` and `X_scale_inv`. */
const fp8: Packing = {
  scalesOf: ({ name, dtype, shape }) =>
    dtype === 'F8_E4M3' && shape.length === 2 ? `${name}_scale_inv` : undefined,
  shapeOf: (stored) => stored,
  scaleShapeOf: (stored) => stored.map((size) => Math.ceil(size / FP8_BLOCK)),
  elementsPerByte: 1,
  factorOf: (scale) => scale,
  unpack(target, bytes, from, factors, [, columns]) {
    const perRow = Math.ceil(columns! / FP8_BLOCK);
    let [row, column] = [Math.floor(from / columns!), from % columns!];
    for (let i = 0; i < target.length; i++) {
      const block = Math.floor(row / FP8_BLOCK) * perRow + Math.floor(column / FP8_BLOCK);
      target[i] = E4M3[bytes[i]!]! * factors[block]!;
      if (++column === columns!) [row, column] = [row + 1, 0];
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
  scaleShapeOf: (stored) => stored.slice(0, -1),
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
    const [expected, found] = [packing.scaleShapeOf(stored), scales.file.place(scales.name)!.shape];
    if (`${expected}` === `${found}`) return;
    const shapes = [expected, found].map((shape) => `[${shape.join(', ')}]`);
    throw new CheckpointError(
      'mismatch',
      scales.file.path,
      `tensor '${scales.name}': expected ${shapes[0]}, a scale for each block of '${values.name}', found ${shapes[1]}`,
    );
  }

  /**
   * The tensor, if it is packed and its scales are there.
   *
   * @throws CheckpointError for scales that are not those of its blocks
   */
  static of(
    name: string,
    file: SafetensorsFile,
    fileOf: (name: string) => SafetensorsFile | undefined,
  ): PackedTensor | undefined {
    for (const packing of [fp8, mxfp4]) {
      const scales = packing.scalesOf(file.place(name)!);
      const scalesFile = scales === undefined ? undefined : fileOf(scales);
      if (scalesFile) return new PackedTensor(packing, { file, name }, { file: scalesFile, name: scales! });
    }
    return undefined;
  }

  /** As SafetensorsFile.readFloats. */
  readFloats(target: Float32Array, order?: AxisOrder): void {
    const { file, name } = this.values;
    const { unpack, elementsPerByte } = this.packing;
    const [factors, total] = [this.#factors(), elementCount(this.shape)];
    const read = (from: number, count: number): Float32Array => {
      const first = Math.floor(from / elementsPerByte);
      const bytes = new Uint8Array(Math.ceil((from + count) / elementsPerByte) - first);
      file.readBytes(name, bytes, first);
      const elements = new Float32Array(count);
      unpack(elements, bytes, from, factors, this.shape);
      return elements;
    };
    placeElements(
      target,
      order ?? sameAxes(total),
      total,
      CHUNK_BYTES / Float32Array.BYTES_PER_ELEMENT,
      read,
    );
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
