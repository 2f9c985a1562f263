/** @file C calls of the runtime for convolutions by Winograd's transforms. */
import type { CallUnit } from '../units.js';
import type { View } from '../views.js';
import { type Convolution, convolutionOf } from '../winograd.js';
import type { Needs } from './cFunctions.js';
import { precisionName } from './cNames.js';

type PointerOf = (view: View) => string;

const SHARE = 'frame->thread, frame->threads';

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
  { kind, inputs, outputs, attrs }: CallUnit,
  pointer: PointerOf,
  needs: Needs,
  place: () => string,
): string[] {
  const shape = descriptor(convolutionOf(kind, inputs, attrs)!);
  needs.work.add(`lt_winograd_scratch_bytes(&(const lt_convolution)${shape})`);
  needs.workspace.add(`lt_winograd_filter_bytes(&(const lt_convolution)${shape})`);
  const p = precisionName(attrs.precision);
  const workspace = place();
  const taps = filter(inputs[1]!, kind === 'inputGradient', pointer);
  const images = [image(inputs[0]!, pointer), taps, workspace, image(outputs[0]!, pointer)];
  return [
    `const lt_convolution s = ${shape};`,
    `lt_winograd_filters(${p}, &s, ${taps}, ${workspace}, frame->work, ${SHARE});`,
    'lt_barrier();',
    `lt_winograd(${p}, &s, ${images.join(', ')}, frame->work, ${SHARE});`,
  ];
}

/** The gradient of a convolution by its filter. Barriers keep each thread's sums until all threads have added theirs. */
export function filterGradient(
  { inputs, outputs, attrs }: CallUnit,
  pointer: PointerOf,
  needs: Needs,
): string[] {
  const shape = descriptor(convolutionOf('filterGradient', inputs, attrs)!);
  needs.work.add(`lt_winograd_gradient_scratch_bytes(&(const lt_convolution)${shape})`);
  const p = precisionName(attrs.precision);
  const images = inputs.map((view) => image(view, pointer)).join(', ');
  const first = 'frame->work - frame->thread * frame->accumulator_stride, frame->accumulator_stride';
  return [
    `const lt_convolution s = ${shape};`,
    `lt_winograd_sums(${p}, &s, ${images}, frame->work, ${SHARE});`,
    'lt_barrier();',
    `lt_winograd_gradient(${p}, &s, ${images}, ${first}, (float *)${pointer(outputs[0]!)}, ${SHARE});`,
    'lt_barrier();',
  ];
}
