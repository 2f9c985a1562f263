/** @file Slots in 16 or 8 bits: storage of a rule's float32 slots, for rules of any kind. */
import { ops, sizeOf, type Tensor, tf } from '../../compiler/index.js';
import type { NamedTensors } from './rule.js';
import { asFloats } from './slotStorage.js';
import type { SlotSpec, SlotSpecs } from './slots.js';

/** Types in which slots are stored, from the widest. */
export const SLOT_DTYPES = ['float32', 'bfloat16', 'int8'] as const;

/** How an optimizer's slots are stored. */
export interface SlotCompression {
  readonly slotDtype: (typeof SLOT_DTYPES)[number];
  readonly slotRounding: 'nearest' | 'stochastic';
}

/** Elements that share a scale, as in bitsandbytes. */
const BLOCK = 256;

/** Slots with fewer elements stay as they are in 8 bits, as in bitsandbytes: they save nothing. */
const LEAST = 4096;

/** Codes on one side of 0: the largest stands for the scale. */
const CODES = 127;

/** Decades below the scale that codes reach. */
const DECADES = 6;

/**
 * The lines of which the least, at a part of the scale, is its code: the dynamic map of Dettmers et al. (8-bit Optimizers via
 * Block-wise Quantization, 2022), in which the decade below the scale has 64 codes, the next one 32 …; those below the last
 * one share a code. Between two codes it is a line, so that stochastic rounding of a code is that of the value.
 */
const LINES: readonly ops.Line[] = Array.from({ length: DECADES + 1 }, (_, i) => {
  const codes = 2 ** i;
  const slope = i === 0 ? 10 ** DECADES : (codes * 10 ** (DECADES - i)) / 0.9;
  return { slope, at0: i === 0 ? 0 : codes - 1 - codes / 9 };
});

/** The lines of twice a function: squares have codes on one side of 0 alone, and twice as many of them. */
const twice = (lines: readonly ops.Line[]): ops.Line[] =>
  lines.map(({ slope, at0 }) => ({ slope: 2 * slope, at0: 2 * at0 }));

/** The lines of the inverse function, of which the greatest counts where the least did. */
const inverse = (lines: readonly ops.Line[]): ops.Line[] =>
  lines.map(({ slope, at0 }) => ({ slope: 1 / slope, at0: -at0 / slope }));

/** From the part of the scale to the code, and back, of values that have a sign or of roots of squares. */
const MAPS = {
  signed: { toCode: LINES, toPart: inverse(LINES) },
  squares: { toCode: twice(LINES), toPart: inverse(twice(LINES)) },
};

/** Blocks whose largest element is smaller become zeros: the inverse of their scale would be infinite. */
const LEAST_SCALE = 1e-37;

const isCompressed = (spec: SlotSpec): boolean =>
  spec.values !== undefined && (spec.dtype ?? 'float32') === 'float32';

const isInCodes = (spec: SlotSpec): boolean => isCompressed(spec) && sizeOf(spec.shape) >= LEAST;

const namesOf = (name: string, { values }: SlotSpec) => ({
  codes: `${name}${values === 'squares' ? 'Uint8' : 'Int8'}`,
  scale: `${name}Scale`,
});

const blocksOf = ({ shape }: SlotSpec): number => Math.ceil(sizeOf(shape) / BLOCK);

/** The slots of a variable as buffers hold them. @param specs those of the rule */
export function compressedSpecs(specs: SlotSpecs, { slotDtype }: SlotCompression): SlotSpecs {
  return Object.fromEntries(
    Object.entries(specs).flatMap(([name, spec]): [string, SlotSpec][] => {
      const { shape, values } = spec;
      // None that begins as the parameters has `values`.
      const fill = typeof spec.fill === 'number' ? spec.fill : 0;
      if (slotDtype === 'bfloat16' && isCompressed(spec)) return [[name, { ...spec, dtype: 'bfloat16' }]];
      if (slotDtype !== 'int8' || !isInCodes(spec)) return [[name, spec]];
      const { codes, scale } = namesOf(name, spec);
      const isSquare = values === 'squares';
      const filled = fill === 0 ? 0 : isSquare ? 2 * CODES : CODES * Math.sign(fill);
      return [
        [codes, { shape, dtype: isSquare ? 'uint8' : 'int8', fill: filled }],
        [scale, { shape: [blocksOf(spec)], fill: isSquare ? Math.sqrt(fill) : Math.abs(fill) }],
      ];
    }),
  );
}

/** The slots that a rule sees, from those of buffers: both flat, of stacked variables one behind the other. */
export function decompressed(
  stored: NamedTensors,
  specs: SlotSpecs,
  { slotDtype }: SlotCompression,
): Record<string, Tensor> {
  return Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => {
      if (slotDtype !== 'int8' || !isInCodes(spec)) return [name, stored[name]!];
      const { codes, scale } = namesOf(name, spec);
      return [name, fromCodes(stored[codes]!, stored[scale]!, spec)];
    }),
  );
}

/**
 * The slots of buffers, from those that a rule gives.
 *
 * @param key int32 [2], of the noise of stochastic rounding.
 */
export function compressed(
  slots: NamedTensors,
  specs: SlotSpecs,
  { slotDtype, slotRounding }: SlotCompression,
  key: () => Tensor,
): Record<string, Tensor> {
  const noises = new Map<number, Tensor>();
  // One number for an element, whatever slots it has.
  const noise = (size: number): Tensor => {
    const found = noises.get(size) ?? (ops.randomUniform(key(), [size]) as Tensor);
    noises.set(size, found);
    return found;
  };
  return Object.fromEntries(
    Object.entries(specs).flatMap(([name, spec]): [string, Tensor][] => {
      const slot = slots[name]!;
      const given = slotRounding === 'stochastic' ? noise : undefined;
      if (slotDtype === 'bfloat16' && isCompressed(spec)) return [[name, dithered(slot, given)]];
      if (slotDtype !== 'int8' || !isInCodes(spec)) return [[name, slot]];
      const found = toCodes(slot, spec, given);
      const { codes, scale } = namesOf(name, spec);
      return [
        [codes, found.codes],
        [scale, found.scale],
      ];
    }),
  );
}

/** Adds noise as wide as the distance of two bfloat16 numbers, so that the nearest one is either by its distance. */
function dithered(slot: Tensor, noise: ((size: number) => Tensor) | undefined): Tensor {
  if (noise === undefined) return slot;
  const part = tf.mul(tf.sub(noise(slot.size), 0.5), 2 ** -7);
  return tf.add(slot, tf.mul(part, ops.powerOfTwo(slot)));
}

/** [variables, size] as [blocks, 256], with zeros behind each variable. */
function inBlocks(flat: Tensor, spec: SlotSpec): Tensor {
  const [size, padded] = [sizeOf(spec.shape), blocksOf(spec) * BLOCK];
  const rows = tf.reshape(flat, [flat.size / size, size]);
  const whole =
    padded === size
      ? rows
      : tf.pad(rows, [
          [0, 0],
          [0, padded - size],
        ]);
  return tf.reshape(whole, [whole.size / BLOCK, BLOCK]);
}

/** The elements of [blocks, 256], flat. */
function ofBlocks(blocks: Tensor, spec: SlotSpec): Tensor {
  const [size, padded] = [sizeOf(spec.shape), blocksOf(spec) * BLOCK];
  if (padded === size) return tf.reshape(blocks, [blocks.size]);
  const variables = blocks.size / padded;
  const rows = tf.slice(tf.reshape(blocks, [variables, padded]), [0, 0], [variables, size]);
  return tf.reshape(rows, [rows.size]);
}

/** Sizes with the signs of other numbers. */
const withSign = (sizes: Tensor, of: Tensor): Tensor => tf.where(tf.less(of, 0), tf.neg(sizes), sizes);

function fromCodes(codes: Tensor, scale: Tensor, spec: SlotSpec): Tensor {
  const isSquare = spec.values === 'squares';
  const floats = inBlocks(asFloats(codes, isSquare ? 'uint8' : 'int8'), spec);
  const scales = tf.expandDims(scale, 1);
  if (isSquare) return ofBlocks(tf.square(tf.mul(ops.maxAffine(floats, MAPS.squares.toPart), scales)), spec);
  const parts = ops.maxAffine(tf.abs(floats), MAPS.signed.toPart);
  return ofBlocks(withSign(tf.mul(parts, scales), floats), spec);
}

function toCodes(
  slot: Tensor,
  spec: SlotSpec,
  noise: ((size: number) => Tensor) | undefined,
): { codes: Tensor; scale: Tensor } {
  const isSquare = spec.values === 'squares';
  const blocks = inBlocks(slot, spec);
  const sizes = isSquare ? tf.sqrt(blocks) : tf.abs(blocks);
  const scale = tf.max(sizes, 1);
  const divisor = tf.where(tf.greater(scale, LEAST_SCALE), scale, tf.onesLike(scale));
  const parts = tf.mul(sizes, tf.expandDims(tf.reciprocal(divisor), 1));
  const exact = ops.minAffine(parts, MAPS[isSquare ? 'squares' : 'signed'].toCode);
  const whole =
    noise === undefined ? exact : tf.floor(tf.add(exact, tf.reshape(noise(blocks.size), [...blocks.shape])));
  const signed = isSquare ? whole : withSign(whole, blocks);
  const codes = ops.nearestInteger(signed, isSquare ? [0, 2 * CODES] : [-CODES, CODES]) as Tensor;
  return { codes: ofBlocks(codes, spec), scale };
}
