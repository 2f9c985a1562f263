/** @file Windows over an axis by pads and slices: from cells to the taps that read them, and back. */

import type { Shape } from '../program/tensors.js';
import { defineOperation } from '../rules/index.js';
import { expects, isWithin, spec } from '../rules/operation.js';
import type { Windows } from '../rules/windowAttrs.js';
import * as tf from '../tfjs/tfjs.js';
import { callComposite } from './composite.js';

/** `count` cells along an axis, from `begin` on in steps of `step`. */
export function cellsFrom(
  x: tf.Tensor,
  axis: number,
  { begin, step, count }: { readonly begin: number; readonly step: number; readonly count: number },
): tf.Tensor {
  const starts = x.shape.map((_, i) => (i === axis ? begin : 0));
  if (step === 1) {
    return tf.slice(
      x,
      starts,
      x.shape.map((dim, i) => (i === axis ? count : dim)),
    );
  }
  const ends = x.shape.map((dim, i) => (i === axis ? begin + (count - 1) * step + 1 : dim));
  return tf.stridedSlice(
    x,
    starts,
    ends,
    x.shape.map((_, i) => (i === axis ? step : 1)),
  );
}

/** Padding cells that the last window reaches behind the axis. */
export const behind = ({ size, count, taps, stride, dilation, before }: Windows): number =>
  Math.max(0, (count - 1) * stride + (taps - 1) * dilation + 1 - before - size);

/** Number of non-padding cells of each window. */
export function cellCounts({ size, count, taps, stride, dilation, before }: Windows): number[] {
  return Array.from({ length: count }, (_, i) => {
    const places = Array.from({ length: taps }, (_, tap) => i * stride + tap * dilation - before);
    return places.filter((place) => place >= 0 && place < size).length;
  });
}

/** Windows of one cell each, for an axis that is not being reduced. */
export const still = (size: number): Windows => ({
  size,
  count: size,
  taps: 1,
  stride: 1,
  dilation: 1,
  before: 0,
});

/** Where each of several tensors holds the maximum of all, and none before it does. */
export function firstOf(values: readonly tf.Tensor[], max: tf.Tensor): tf.Tensor[] {
  let found: tf.Tensor | null = null;
  return values.map((value) => {
    const isMax = tf.equal(value, max);
    const isFirst = found === null ? isMax : tf.logicalAnd(isMax, tf.logicalNot(found));
    found = found === null ? isMax : tf.logicalOr(found, isMax);
    return isFirst;
  });
}

/** x [B, H, W, C], padded with `value` wherever windows reach. */
export function padded(x: tf.Tensor, [height, width]: readonly [Windows, Windows], value: number): tf.Tensor {
  const pads = [height, width].map((axis): [number, number] => [axis.before, behind(axis)]);
  return padBy(x, pads, value);
}

function padBy(x: tf.Tensor, pads: readonly [number, number][], value = 0): tf.Tensor {
  if (pads.flat().every((pad) => pad === 0)) return x;
  return tf.pad(x, [[0, 0], ...pads, [0, 0]], value);
}

/** out[..., i, t * C + c] = x[..., begin + i * stride + t * step, c]; lowerings with strides need no copy. */
defineOperation('SlidingWindows', {
  inputs: ['x'],
  attrs: ({ begin, count, stride, taps, step }) => ({ begin, count, stride, taps, step }),
  infer: ([x], attrs) => {
    const { begin, count, stride, taps, step } = attrs as Readonly<Record<string, number>>;
    const size = x!.shape.at(-2) ?? 0;
    const last = begin! + (count! - 1) * stride! + (taps! - 1) * step!;
    const fits = [begin, last].every((cell) => isWithin(cell, 0, size - 1));
    expects(
      fits && isWithin(count, 1) && isWithin(taps, 1),
      `windows within ${size} cells`,
      `cells ${begin} to ${last}`,
    );
    return [spec([...x!.shape.slice(0, -2), count!, taps! * x!.shape.at(-1)!], x!.dtype)];
  },
  device: { kind: 'view', keeps: ({ attrs }) => attrs.step === 1 },
  decompose: ([x], attrs) => {
    const { begin, count, stride, taps, step } = attrs as Readonly<Record<string, number>>;
    const cells = Array.from({ length: taps! }, (_, t) =>
      cellsFrom(x!, x!.rank - 2, { begin: begin! + t * step!, step: stride!, count: count! }),
    );
    return [tf.concat(cells, -1)];
  },
});

/** Some taps of windows: the first at `begin`, the others `step` apart; windows are `stride` apart. */
export interface Taps {
  readonly begin: number;
  readonly step: number;
  readonly taps: number;
  readonly stride: number;
  readonly count: number;
}

/** All taps of windows over an axis of padded cells. */
export const allTaps = ({ taps, stride, dilation, count }: Windows): Taps => ({
  begin: 0,
  step: dilation,
  taps,
  stride,
  count,
});

/** The cells that one tap reads, for each window. */
export const tapCells = (
  x: tf.Tensor,
  axis: number,
  { begin, step, stride, count }: Taps,
  tap: number,
): tf.Tensor => cellsFrom(x, axis, { begin: begin + tap * step, step: stride, count });

/** [B, windows down, windows across, taps down * taps across * C] from x [B, H, W, C], taps in row-major order. */
export function gatherWindows(x: tf.Tensor, height: Taps, width: Taps): tf.Tensor {
  const rows = Array.from({ length: height.taps }, (_, tap) => {
    const cells = tapCells(x, 1, height, tap);
    return width.taps === 1
      ? tapCells(cells, 2, width, 0)
      : callComposite('SlidingWindows', [cells], { ...width });
  });
  return rows.length === 1 ? rows[0]! : tf.concat(rows, -1);
}

/**
 * One of the `stride` phases of cells, at `phase + q * stride`: tap `first - t * every` of window `q + shift + t *
 * step` reads cell q.
 */
export interface Phase {
  readonly phase: number;
  /** Taps that read these cells, in window order. */
  readonly taps: readonly { readonly tap: number; readonly shift: number }[];
}

/** The taps and windows that read each phase of cells. */
export function phasesOf({ taps, stride, dilation, before }: Windows): Phase[] {
  return Array.from({ length: stride }, (_, phase) => ({
    phase,
    taps: Array.from({ length: taps }, (_, tap) => ({
      tap,
      shift: (phase + before - tap * dilation) / stride,
    }))
      .filter(({ shift }) => Number.isInteger(shift))
      .reverse(),
  }));
}

/** Cells per phase. */
export const cellsOfPhase = ({ size, stride }: Windows): number => Math.ceil(size / stride);

/** Padding of values by window, so that every cell finds a window at every shift. */
export function paddingByWindow(axis: Windows): [before: number, behind: number] {
  const shifts = phasesOf(axis).flatMap(({ taps }) => taps.map(({ shift }) => shift));
  const last = cellsOfPhase(axis) - 1 + Math.max(...shifts);
  return [Math.max(0, -Math.min(...shifts)), Math.max(0, last + 1 - axis.count)];
}

/** Interleaves phases along an axis. */
export function interleave(phases: readonly tf.Tensor[], axis: number, size: number): tf.Tensor {
  const [first] = phases;
  if (phases.length === 1) return first!;
  const shape = first!.shape.map((dim, i) => (i === axis ? dim * phases.length : dim));
  const cells = tf.reshape(tf.stack([...phases], axis + 1), shape);
  return shape[axis] === size ? cells : cellsFrom(cells, axis, { begin: 0, step: 1, count: size });
}

/** Pads values by window for reading with `Taps`. */
export const padByWindow = (x: tf.Tensor, axes: readonly [Windows, Windows]): tf.Tensor =>
  padBy(x, axes.map(paddingByWindow));

/**
 * Sums the contributions of taps to their cells: the transpose of reading.
 *
 * @param parts for each tap, values by window along `axis`, of shape [B, H, W, C] but for that axis.
 * @returns the same shape, with cells along the axis.
 */
export function scatterTaps(parts: readonly tf.Tensor[], axis: 1 | 2, windows: Windows): tf.Tensor {
  const count = cellsOfPhase(windows);
  const pads = paddingByWindow(windows);
  const spread = new Map<tf.Tensor, tf.Tensor>();
  const shifted = (part: tf.Tensor, shift: number): tf.Tensor => {
    const wide = spread.get(part) ?? padBy(part, axis === 1 ? [pads, [0, 0]] : [[0, 0], pads]);
    spread.set(part, wide);
    return cellsFrom(wide, axis, { begin: pads[0] + shift, step: 1, count });
  };
  const phases = phasesOf(windows).map(({ taps }) => {
    const terms = taps.map(({ tap, shift }) => shifted(parts[tap]!, shift));
    const shape: Shape = parts[0]!.shape.map((dim, i) => (i === axis ? count : dim));
    return terms.length === 0 ? tf.zeros([...shape]) : terms.reduce((sum, term) => tf.add(sum, term));
  });
  return interleave(phases, axis, windows.size);
}
