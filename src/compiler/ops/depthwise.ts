/** @file Convolutions of each channel by a filter of its own, and their gradients, as calls of the runtime. */
import type { Attrs, Node } from '../program/ir.js';
import type { Shape } from '../program/tensors.js';
import type { CallForm, Shaped } from '../rules/deviceForm.js';
import { type Windows, windowsOf } from '../rules/windowAttrs.js';

/** lt_depthwise of luthier.h. */
export interface Depthwise {
  readonly batch: number;
  readonly channels: number;
  readonly windows: readonly [down: Windows, across: Windows];
}

/** A call. Its first input is x, or dy, which has as many channels. */
export function depthwiseOf([image]: Shaped, attrs: Attrs): Depthwise {
  const [batch, , , channels] = image!.shape as [number, number, number, number];
  return { batch, channels, windows: windowsOf(attrs) };
}

/** With fewer channels, loops over whole rows of cells have longer vectors. */
const LEAST_CHANNELS = 8;

/** Whether a call is faster than loops: with one filter for each of enough channels. */
function pays({ inputs, attrs }: Node): boolean {
  const filter = (attrs.filterShape as Shape | undefined) ?? inputs[1]!.shape;
  return filter[3] === 1 && filter[2]! >= LEAST_CHANNELS;
}

/** The call of an operation. As many bytes as FLOPs: with loops, it waits for memory. */
export const byChannels = (name: string, rest: Partial<CallForm>): CallForm => ({
  kind: 'call',
  name,
  keeps: pays,
  part: 'loop',
  ...rest,
});
