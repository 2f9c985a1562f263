/** @file An error in a layer shows what is wrong, in which layer, and then the line of the user's that is to be mended. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { describeError } from '../../src/cli/runCommand.js';
import { evalShape, ops, tf, valueAndGrad, withScope } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { BaseLayer, runInContext } from '../../src/layers/index.js';
import { floats } from './support.js';

const inputs = { x: floats([2, 3]), w: floats([2, 4]) };
const inLayer = (f: (inputs: any) => any) => (inputs: any) => withScope('net/mine', () => f(inputs));
const gradientOf = (f: (inputs: any) => any) => (inputs: any) =>
  valueAndGrad((params) => ({ value: tf.sum(f(params)) as tf.Tensor, aux: {} }), inputs).grads;

/** The first lines that a person is shown, without places within the line. */
function shown(f: (inputs: any) => any): string[] {
  try {
    evalShape(f, inputs);
  } catch (error) {
    return describeError(error).text.split('\n').slice(0, 2);
  }
  throw new Error('it works');
}

class Mine extends BaseLayer.with({}) {
  fprop({ x, w }: any): tf.Tensor {
    return tf.concat([x, tf.transpose(w, [0, 0, 1])], 1);
  }
}

test.each<[string, (inputs: any) => any, string]>([
  [
    'what tfjs refuses',
    inLayer(({ x }) => tf.transpose(x, [0, 0, 1])),
    "Error: Error in transpose: rank of input 2 must match length of perm 0,0,1. (in layer 'net/mine')",
  ],
  [
    'what a rule refuses, below many calls of tfjs',
    inLayer(({ x, w }) => ops.attention(x, w, x)),
    "CompilerError: attention: expected q [B,T,N,H], k [B,S,N,H] and v [B,S,N,H], got float32[2,3], float32[2,4] and float32[2,3]. (in layer 'net/mine')",
  ],
  [
    'an operation without a rule',
    inLayer(({ x }) => tf.cumprod(x, 1)),
    "CompilerError: The compiler has no rule for the operation 'Cumprod' (in layer 'net/mine'). Write it with operations that have one " +
      '(src/compiler/rules), or add a rule there and its lowering in src/compiler/onnx.',
  ],
  [
    'an operation without a gradient',
    gradientOf(inLayer(({ x, w }) => tf.mul(tf.stridedSlice(x, [0, 0], [2, 3], [1, 2]), tf.sum(w)))),
    "CompilerError: The operation 'StridedSlice' has no gradient: compute what is differentiated without it, or give it one with " +
      "tf.customGrad. (in the gradient of layer 'net/mine')",
  ],
])('%s', (_, f, message) => {
  const [first, second] = shown(f);
  expect(first).toBe(message);
  expect(second).toMatch(/^ {4}at (.* \()?test\/compiler\/usersFrame\.test\.ts:\d+:\d+\)?$/);
  const line = readFileSync(fileURLToPath(import.meta.url), 'utf8').split('\n')[
    Number(/:(\d+):\d+\)?$/.exec(second!)![1]) - 1
  ];
  expect(line).toContain('inLayer(');
});

test("in a layer of the user's", () => {
  const layer = build(Mine.config());
  const shownOf = (f: (inputs: any) => any) =>
    shown((inputs) => runInContext({ theta: {} }, () => f(inputs)));
  const [first, second] = shownOf((inputs) => layer.fprop(inputs));
  expect(first).toBe(
    'LayerError: model (Mine): fprop: Error in transpose: rank of input 2 must match length of perm 0,0,1.',
  );
  expect(second).toMatch(/^ {4}at .*Mine\.fprop \(test\/compiler\/usersFrame\.test\.ts:\d+:\d+\)$/);
});
