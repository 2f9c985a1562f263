/** @file Convolutions over [batch, channels, height, width] by those over [batch, height, width, channels]. */
import type { RawAttrs } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { runKernel, type Variant } from './decomposition.js';

const TO_LAST = [0, 2, 3, 1];
const TO_FIRST = [0, 3, 1, 2];

const last = <T>(list: readonly T[]): T[] => TO_LAST.map((axis) => list[axis]!);

const channelsLast = (attrs: RawAttrs): RawAttrs => ({
  ...attrs,
  dataFormat: 'NHWC',
  pad: Array.isArray(attrs.pad) ? last(attrs.pad) : attrs.pad,
  ...(attrs.inputShape && { inputShape: last(attrs.inputShape) }),
});

/** @param images the inputs that have channels, and whether the result has. */
const variant =
  (kernel: string, images: readonly string[], isImage: boolean): Variant =>
  (inputs, attrs) => {
    if (attrs.dataFormat !== 'NCHW') return null;
    const moved = images.map((name) => [name, tf.transpose(inputs[name]!, TO_LAST)]);
    const result = runKernel(kernel, { ...inputs, ...Object.fromEntries(moved) }, channelsLast(attrs));
    return isImage ? tf.transpose(result, TO_FIRST) : result;
  };

export const channelsFirstVariants: Readonly<Record<string, Variant>> = Object.fromEntries(
  ['Conv2D', 'DepthwiseConv2dNative'].flatMap((kernel) => [
    [kernel, variant(kernel, ['x'], true)],
    [`${kernel}BackpropInput`, variant(`${kernel}BackpropInput`, ['dy'], true)],
    [`${kernel}BackpropFilter`, variant(`${kernel}BackpropFilter`, ['x', 'dy'], false)],
  ]),
);
