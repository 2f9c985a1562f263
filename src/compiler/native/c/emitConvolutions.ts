/** @file C calls of the runtime for convolutions: by Winograd's transforms, or of each channel on its own. */

import { type Depthwise, depthwiseOf } from '../../ops/depthwise.js';
import { type Convolution, convolutionOf } from '../../ops/winograd.js';
import type { Windows } from '../../rules/windowAttrs.js';
import type { CallUnit } from '../plan/units.js';
import type { View } from '../plan/views.js';
import type { Needs } from './cFunctions.js';
import { callPrecision } from './cNames.js';

type PointerOf = (view: View) => string;

const SHARE = 'frame->thread, frame->threads';

/** A function of any number of threads by shares, which threads take over from each other. */
const inShares = (name: string, args: string): string =>
  `LT_EACH(share, LT_SHARES) ${name}(${args}, (int)share, LT_SHARES);`;

const descriptor = (s: Convolution): string =>
  `{${[s.batch, s.height, s.width, s.channels, s.down, s.across, s.filters, s.above, s.before].join(', ')}}`;

const image = (view: View, pointer: PointerOf): string =>
  `(lt_image){${pointer(view)}, ${view.strides.slice(0, 3).join(', ')}}`;

/** A filter [3, 3, C, M]; `turned`, as the gradient by the input reads it. */
function filter({ strides, ...view }: View, turned: boolean, pointer: PointerOf): string {
  const [row, column, channel, last] = strides as [number, number, number, number];
  const data = `(const float *)${pointer({ strides, ...view })}`;
  return turned
    ? `(lt_filter){${data} + ${2 * (row + column)}, ${-row}, ${-column}, ${last}, ${channel}}`
    : `(lt_filter){${data}, ${row}, ${column}, ${channel}, ${last}}`;
}

/** A convolution, or the gradient of one by its input. */
export function convolution(
  { op, inputs, outputs, attrs }: CallUnit,
  pointer: PointerOf,
  needs: Needs,
  place: () => string,
): string[] {
  const shape = descriptor(convolutionOf(op, inputs, attrs));
  needs.work.add(`lt_winograd_scratch_bytes(&(const lt_convolution)${shape})`);
  needs.workspace.add(`lt_winograd_filter_bytes(&(const lt_convolution)${shape})`);
  const p = callPrecision({ attrs });
  const workspace = place();
  const taps = filter(inputs[1]!, op === 'Conv2DBackpropInput', pointer);
  const images = [image(inputs[0]!, pointer), taps, workspace, image(outputs[0]!, pointer)];
  return [
    `const lt_convolution s = ${shape};`,
    `lt_winograd_filters(${p}, &s, ${taps}, ${workspace}, frame->work, ${SHARE});`,
    'lt_barrier();',
    inShares('lt_winograd', `${p}, &s, ${images.join(', ')}, frame->work`),
  ];
}

/** The gradient of a convolution by its filter. */
export function filterGradient(
  { op, inputs, outputs, attrs }: CallUnit,
  pointer: PointerOf,
  needs: Needs,
  place: () => string,
): string[] {
  const shape = descriptor(convolutionOf(op, inputs, attrs));
  needs.workspace.add(`lt_winograd_sums_bytes(&(const lt_convolution)${shape})`);
  needs.work.add(`lt_winograd_gradient_scratch_bytes(&(const lt_convolution)${shape})`);
  const p = callPrecision({ attrs });
  const images = inputs.map((view) => image(view, pointer)).join(', ');
  const sums = place();
  return [
    `const lt_convolution s = ${shape};`,
    inShares('lt_winograd_sums', `${p}, &s, ${images}, ${sums}, frame->work`),
    'lt_barrier();',
    `lt_winograd_gradient(${p}, &s, ${images}, ${sums}, (float *)${pointer(outputs[0]!)}, ${SHARE});`,
  ];
}

const axis = (w: Windows): string =>
  `{${[w.size, w.count, w.taps, w.stride, w.dilation, w.before].join(', ')}}`;

const channelwise = ({ batch, channels, windows }: Depthwise): string =>
  `{${[batch, channels, ...windows.map(axis)].join(', ')}}`;

/** A convolution of each channel on its own, or the gradient of one by its input. */
export function depthwise(
  { op, inputs, outputs, attrs }: CallUnit,
  pointer: PointerOf,
  needs: Needs,
): string[] {
  const shape = channelwise(depthwiseOf(inputs, attrs));
  needs.work.add(`lt_depthwise_scratch_bytes(&(const lt_depthwise)${shape})`);
  const [from, to] = [image(inputs[0]!, pointer), image(outputs[0]!, pointer)];
  const call = op === 'DepthwiseConv2dNative' ? 'lt_depthwise_forward' : 'lt_depthwise_backward';
  return [
    `const lt_depthwise s = ${shape};`,
    inShares(call, `&s, ${from}, (const float *)${pointer(inputs[1]!)}, ${to}, frame->work`),
  ];
}

/** The gradient of such a convolution by its filter. */
export function depthwiseFilter(
  { inputs, outputs, attrs }: CallUnit,
  pointer: PointerOf,
  needs: Needs,
  place: () => string,
): string[] {
  const shape = channelwise(depthwiseOf(inputs, attrs));
  needs.workspace.add(`lt_depthwise_sums_bytes(&(const lt_depthwise)${shape})`);
  const images = inputs.map((view) => image(view, pointer)).join(', ');
  const sums = place();
  return [
    `const lt_depthwise s = ${shape};`,
    inShares('lt_depthwise_sums', `&s, ${images}, ${sums}`),
    'lt_barrier();',
    `lt_depthwise_filter(&s, ${sums}, (float *)${pointer(outputs[0]!)}, ${SHARE});`,
  ];
}
