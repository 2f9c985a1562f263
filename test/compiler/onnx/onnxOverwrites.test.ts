/** @file Outputs of ONNX programs that may lie on an input. */
import { expect, test } from 'vitest';
import type { Tensor, Tree } from '../../../src/compiler/index.js';
import { overwritesOf } from '../../../src/compiler/onnx/onnxOverwrites.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { tf } from '../support.js';

const x = { shape: [4, 4], dtype: 'float32' } as const;

/** Whether the first output may lie on the first of two matrices. */
function allows(f: (inputs: Tensor[]) => Tree<Tensor>): boolean {
  return overwritesOf(traceProgram(f, [x, x]).graph)(0, 0);
}

const step = (a: Tensor, b: Tensor): Tensor => tf.sub(tf.mul(a, 0.5), b);

test.each<[string, (inputs: Tensor[]) => Tree<Tensor>, boolean]>([
  ['what all follows from, element by element', ([a, b]) => step(a!, b!), true],
  ['what is chosen again at the end', ([a, b]) => tf.where(tf.less(tf.sum(b!), 1), step(a!, b!), a!), true],
  ['what nothing reads', ([, b]) => tf.neg(b!), true],
  ['what a later result reads, too', ([a, b]) => [step(a!, b!), tf.neg(a!)], false],
  ['what a product reads', ([a, b]) => tf.add(tf.matMul(a!, b!), b!), false],
  ['what a reduction reads', ([a, b]) => step(b!, tf.mul(b!, tf.sum(a!))), false],
  ['what a transpose reads', ([a, b]) => step(tf.transpose(a!), b!), false],
  ['an output', ([a, b]) => [step(a!, b!), a!], false],
  ['the output itself', ([a]) => a!, false],
])('%s', (_name, f, expected) => {
  expect(allows(f)).toBe(expected);
});
