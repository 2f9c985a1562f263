/** @file Decompositions of kernels that move cells of images: blocks, mirror images, reflections at borders. */
import { cellsFrom } from '../ops/windows.js';
import { sizeOf } from '../program/tensors.js';
import { expects } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { type Decomposition, type DecompositionTable, differentiate } from './decomposition.js';

type Pads = readonly (readonly [number, number])[];

/** [B, ...cells, ...] to [blocks * B, ...cells / blocks, ...]: the cells at each place of a block become a batch. */
const spaceToBatch: Decomposition = ({ x }, { blockShape, paddings }) => {
  const blocks = blockShape as number[];
  const count = blocks.length;
  const pads = x!.shape.map((_, axis) => (paddings as [number, number][])[axis - 1] ?? [0, 0]);
  const wide = tf.pad(x!, pads as [number, number][]);
  const [batch, ...dims] = wide.shape as [number, ...number[]];
  const split = blocks.flatMap((block, i) => {
    expects(dims[i]! % block === 0, `padded sizes that blocks of [${blocks}] divide`, dims);
    return [dims[i]! / block, block];
  });
  const rest = dims.slice(count);
  const apart = tf.reshape(wide, [batch, ...split, ...rest]);
  const places = blocks.map((_, i) => 2 + 2 * i);
  const cells = blocks.map((_, i) => 1 + 2 * i);
  const order = [...places, 0, ...cells, ...rest.map((_, i) => 1 + 2 * count + i)];
  const moved = blocks.map((block, i) => dims[i]! / block);
  return tf.reshape(tf.transpose(apart, order), [batch * sizeOf(blocks), ...moved, ...rest]);
};

/** The inverse of `spaceToBatch`, without the cells in `crops`. */
const batchToSpace: Decomposition = ({ x }, { blockShape, crops }) => {
  const blocks = blockShape as number[];
  const count = blocks.length;
  const [batches, ...dims] = x!.shape as [number, ...number[]];
  expects(batches % sizeOf(blocks) === 0, `a batch that blocks of [${blocks}] divide`, batches);
  const batch = batches / sizeOf(blocks);
  const rest = dims.slice(count);
  const apart = tf.reshape(x!, [...blocks, batch, ...dims]);
  const order = [
    count,
    ...blocks.flatMap((_, i) => [count + 1 + i, i]),
    ...rest.map((_, i) => 2 * count + 1 + i),
  ];
  const whole = [batch, ...blocks.map((block, i) => dims[i]! * block), ...rest];
  const joined = tf.reshape(tf.transpose(apart, order), whole);
  const crop = (axis: number): readonly [number, number] => (crops as Pads)[axis - 1] ?? [0, 0];
  return tf.slice(
    joined,
    whole.map((_, axis) => (axis === 0 ? 0 : crop(axis)[0])),
    whole.map((dim, axis) => (axis === 0 ? dim : dim - crop(axis)[0] - crop(axis)[1])),
  );
};

/** Channels become blocks of cells. */
const depthToSpace: Decomposition = ({ x }, { blockSize, dataFormat }) => {
  const isFirst = dataFormat === 'NCHW';
  const [batch, height, width, depth] = (isFirst ? [0, 2, 3, 1] : [0, 1, 2, 3]).map(
    (axis) => x!.shape[axis]!,
  );
  const channels = depth! / blockSize ** 2;
  const [down, across] = [height! * blockSize, width! * blockSize];
  if (isFirst) {
    const apart = tf.reshape(x!, [batch!, blockSize, blockSize, channels, height!, width!]);
    return tf.reshape(tf.transpose(apart, [0, 3, 4, 1, 5, 2]), [batch!, channels, down, across]);
  }
  const apart = tf.reshape(x!, [batch!, height!, width!, blockSize, blockSize, channels]);
  return tf.reshape(tf.transpose(apart, [0, 1, 3, 2, 4, 5]), [batch!, down, across, channels]);
};

/** Pads along one axis by the cells at the border in reverse order; 'reflect' leaves out the first one. */
function mirror(
  x: tf.Tensor,
  axis: number,
  [before, behind]: readonly [number, number],
  skip: number,
): tf.Tensor {
  const size = x.shape[axis]!;
  const turned = (begin: number, count: number): tf.Tensor[] => {
    if (count === 0) return [];
    return [tf.reverse(cellsFrom(x, axis, { begin, step: 1, count }), axis)];
  };
  const parts = [...turned(skip, before), x, ...turned(size - skip - behind, behind)];
  return parts.length === 1 ? x : tf.concat(parts, axis);
}

const mirrorPad: Decomposition = ({ x }, { paddings, mode }) =>
  (paddings as Pads).reduce(
    (padded, pads, axis) => mirror(padded, axis, pads, mode === 'reflect' ? 1 : 0),
    x!,
  );

export const rearrangementDecompositions: DecompositionTable = {
  SpaceToBatchND: spaceToBatch,
  BatchToSpaceND: batchToSpace,
  DepthToSpace: depthToSpace,
  FlipLeftRight: ({ image }) => tf.reverse(image!, 2),
  MirrorPad: mirrorPad,
};

/** tfjs's drops the contribution of the mirror images. */
differentiate('MirrorPad', mirrorPad, ['x']);
/** Missing in tfjs. */
differentiate('DepthToSpace', depthToSpace, ['x']);
differentiate('FlipLeftRight', rearrangementDecompositions.FlipLeftRight!, ['image']);
