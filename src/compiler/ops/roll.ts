/** @file Rotation of a tensor along an axis, which ranks that have parts of the axis do by handing on slices. */
import { CompilerError } from '../program/tensors.js';
import { lettered } from '../rules/factors.js';
import { defineOperation } from '../rules/index.js';
import { expects, expectsAxes, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { callComposite } from './composite.js';

/** `x` from `begin` to `end` along an axis. */
function between(x: tf.Tensor, axis: number, begin: number, end: number): tf.Tensor {
  const at = x.shape.map((_, i) => (i === axis ? begin : 0));
  return tf.slice(
    x,
    at,
    x.shape.map((size, i) => (i === axis ? end - begin : size)),
  );
}

defineOperation('Roll', {
  inputs: ['x'],
  attrs: ({ axis, by }) => ({ axis, by }),
  infer: ([x], { axis, by }) => {
    expectsAxes([axis as number], x!.shape.length);
    expects(by === 1 || by === -1, '1 or -1 places', by);
    return [spec(x!.shape, x!.dtype)];
  },
  factors: ([x], [out], { axis }) => {
    const names = x!.shape.map((_, i) => (i === axis ? 'r' : `${i}`));
    return lettered([names], [names], { inputs: [x!], outputs: [out!] }, { onParts: 'r' });
  },
  decompose: ([x], { axis: along, by }) => {
    const axis = along as number;
    const size = x!.shape[axis]!;
    const cut = by === 1 ? size - 1 : 1;
    return [tf.concat([between(x!, axis, cut, size), between(x!, axis, 0, cut)], axis)];
  },
  gradient: (dy, _inputs, _outputs, { axis, by }) => [roll(dy, axis as number, -(by as number) as 1 | -1)],
});

/**
 * `x` with its slices along `axis` one place further, the last one first; by -1 the other way round.
 *
 * @param x of any shape and dtype, with at least one slice.
 */
export function roll(x: tf.Tensor, axis: number, by: 1 | -1 = 1): tf.Tensor {
  if (x.shape[axis] === undefined)
    throw new CompilerError(`roll: expected an axis of a tensor of rank ${x.rank}, got ${axis}.`);
  return x.shape[axis] < 2 ? x : callComposite('Roll', [x], { axis, by });
}
