/** @file Convolutions that the runtime computes by Winograd's transforms: 3x3 filters with stride 1. */
import type { Attrs, Node } from '../program/ir.js';
import type { Shape } from '../program/tensors.js';
import type { CallForm, Shaped } from '../rules/deviceForm.js';
import { windowsOf } from '../rules/windowAttrs.js';

/** Windows of y [batch, down, across, filters] over x [batch, height, width, channels]: lt_convolution of luthier.h. */
export interface Convolution {
  readonly batch: number;
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  readonly down: number;
  readonly across: number;
  readonly filters: number;
  readonly above: number;
  readonly before: number;
}

/** Each operation as a convolution of its first input, or as the gradient of one by the filter. */
const CONVOLUTIONS: Readonly<Record<string, (inputs: Shaped, attrs: Attrs) => Convolution>> = {
  Conv2D: ([x, filter], attrs) => over(x!.shape, filter!.shape[3]!, attrs),
  Conv2DBackpropFilter: ([x, dy], attrs) => over(x!.shape, dy!.shape[3]!, attrs),
  Conv2DBackpropInput: ([dy, filter], attrs) => {
    const x = attrs.inputShape as Shape;
    const [batch, height, width, channels] = dy!.shape as [number, number, number, number];
    const { above, before } = over(x, channels, attrs);
    // The taps are turned, so their last cell counts from the other side.
    const padding = { above: 2 - above, before: 2 - before };
    return {
      batch,
      height,
      width,
      channels,
      down: x[1]!,
      across: x[2]!,
      filters: filter!.shape[2]!,
      ...padding,
    };
  },
};

function over(x: Shape, filters: number, attrs: Attrs): Convolution {
  const [batch, height, width, channels] = x as [number, number, number, number];
  const [down, across] = windowsOf(attrs);
  const counts = { down: down.count, across: across.count };
  return { batch, height, width, channels, ...counts, filters, above: down.before, before: across.before };
}

/** A call of one of these operations as a convolution. */
export const convolutionOf = (op: string, inputs: Shaped, attrs: Attrs): Convolution =>
  CONVOLUTIONS[op]!(inputs, attrs);

/** Results along each side of a tile. */
const TILE = 4;

/** With fewer channels or filters, transforms take longer than they save. */
const LEAST_DEPTH = 16;

/** With fewer tiles, so does the filter's transform. */
const LEAST_TILES = 24;

/** Most computed results for each that is wanted; tiles at the end of an axis reach beyond it. */
const MOST_WASTE = 2;

/** Whether a convolution, or a gradient of one, is faster by transforms. */
function paysTransforms({ op, inputs, attrs }: Node): boolean {
  const isPlain = windowsOf(attrs).every(
    ({ taps, stride, dilation }) => taps === 3 && stride === 1 && dilation === 1,
  );
  if (!isPlain) return false;
  const { batch, channels, filters, down, across } = convolutionOf(op, inputs, attrs);
  const tiles = batch * Math.ceil(down / TILE) * Math.ceil(across / TILE);
  return (
    Math.min(channels, filters) >= LEAST_DEPTH &&
    tiles >= LEAST_TILES &&
    tiles * TILE * TILE <= MOST_WASTE * batch * down * across
  );
}

/** The call of an operation; its FLOPs are those of plain sums, of which transforms save three quarters. */
export const byTransforms = (op: string, name: string, rest: Partial<CallForm>): CallForm => ({
  kind: 'call',
  name,
  keeps: paysTransforms,
  part: 'product',
  work: (inputs, attrs) => {
    const { batch, down, across, channels, filters } = convolutionOf(op, inputs, attrs);
    return 2 * 9 * batch * down * across * channels * filters;
  },
  ...rest,
});
