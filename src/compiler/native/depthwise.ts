/** @file Convolutions of each channel by a filter of its own, and their gradients, as calls of the runtime. */
import type { Attrs, Node } from '../ir.js';
import { type Windows, windowsOf } from '../rules/windowAttrs.js';
import type { Shape } from '../tensors.js';
import { CALLS, type CallUnit } from './units.js';

/** lt_depthwise of luthier.h. */
export interface Depthwise {
  readonly batch: number;
  readonly channels: number;
  readonly windows: readonly [down: Windows, across: Windows];
}

const DEPTHWISE: ReadonlySet<CallUnit['kind']> = new Set(['depthwise', 'depthwiseInput', 'depthwiseFilter']);

/** A call of these kinds; undefined for others. Its first input is x, or dy, which has as many channels. */
export function depthwiseOf(
  kind: CallUnit['kind'],
  [image]: readonly { readonly shape: Shape }[],
  attrs: Attrs,
): Depthwise | undefined {
  if (!DEPTHWISE.has(kind)) return undefined;
  const [batch, , , channels] = image!.shape as [number, number, number, number];
  return { batch, channels, windows: windowsOf(attrs) };
}

/** With fewer channels, loops over whole rows of cells have longer vectors. */
const LEAST_CHANNELS = 8;

/** Whether a node becomes a call: with one filter for each of enough channels. */
export function isDepthwiseCall({ op, inputs, attrs }: Node): boolean {
  if (!DEPTHWISE.has(CALLS[op]!)) return false;
  const filter = (attrs.filterShape as Shape | undefined) ?? inputs[1]!.shape;
  return filter[3] === 1 && filter[2]! >= LEAST_CHANNELS;
}
