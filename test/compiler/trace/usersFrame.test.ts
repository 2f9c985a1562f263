/** @file An error in a layer shows what is wrong, in which layer, and then the line of the user's that is to be mended. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { describeError } from '../../../src/cli/commandLine/runCommand.js';
import { evalShape, ops, runEagerly, tf, valueAndGrad, withScope } from '../../../src/compiler/index.js';
import { build, deepCopy, sub } from '../../../src/hparams/index.js';
import { BaseLayer, GELU, runInContext } from '../../../src/layers/index.js';
import { floats } from '../support.js';

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
    inLayer(({ x }) => tf.engine().runKernel('MatrixBandPart', { input: x })),
    "CompilerError: The compiler has no rule for the operation 'MatrixBandPart' (in layer 'net/mine'). Write it with operations that have one " +
      '(src/compiler/rules), or add a rule there and its lowering in src/compiler/onnx.',
  ],
  [
    'an operation without a gradient',
    gradientOf(inLayer(({ x, w }) => tf.mul(tf.sparse.sparseSegmentSum(x, [0, 1], [0, 0]), tf.sum(w)))),
    "CompilerError: The operation 'SparseSegmentSum' has no gradient: compute what is differentiated without it, or give it one with " +
      "tf.customGrad. (in the gradient of layer 'net/mine')",
  ],
])('%s', (_, f, message) => {
  const [first, second] = shown(f);
  expect(first).toBe(message);
  expect(second).toMatch(/^ {4}at (.* \()?test\/compiler\/trace\/usersFrame\.test\.ts:\d+:\d+\)?$/);
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
  expect(second).toMatch(/^ {4}at .*Mine\.fprop \(test\/compiler\/trace\/usersFrame\.test\.ts:\d+:\d+\)$/);
});

class Calls extends BaseLayer.with({ activationTpl: sub(GELU) }) {
  activation!: GELU;
  override setup(): void {
    this.activation = this.createChild('activation', this.hp.activationTpl);
  }
  fprop(): tf.Tensor {
    return this.activation.fprop(undefined as never);
  }
}

test("in a layer of the library that the user's calls", () => {
  const layer = build(Calls.config());
  const [, second] = shown(() => runInContext({ theta: {} }, () => layer.fprop()));
  expect(second).toMatch(/^ {4}at .*Calls\.fprop \(test\/compiler\/trace\/usersFrame\.test\.ts:\d+:\d+\)$/);
});

class Part extends BaseLayer.with({}) {
  fprop(f: (x: any) => any, x: any): any {
    return f(x);
  }
}

class Stack extends BaseLayer.with({ partTpl: sub(Part) }) {
  parts!: Part[];
  override setup(): void {
    const { partTpl } = this.hp;
    this.parts = this.createChildren('x_layers', [deepCopy(partTpl), deepCopy(partTpl)]);
  }
  fprop(f: (x: any) => any, x: any): any {
    return this.parts.reduce((y, part) => part.fprop(f, y), x);
  }
}

/** The first two lines for a mistake in a layer of a stack, whose gradient is taken: traced, then eagerly. */
async function inStack(f: (x: any) => any): Promise<string[][]> {
  const stack = build(Stack.config());
  const loss = ({ x }: any) => tf.sum(runInContext({ theta: {} }, () => stack.fprop(f, x))) as tf.Tensor;
  const gradient = ({ x }: any) =>
    valueAndGrad((params: any) => ({ value: loss(params), aux: {} }), { x }).grads;
  const x = { shape: [2, 3], dtype: 'float32' as const, data: Float32Array.of(1, 2, 3, 4, 5, 6) };
  const eagerly = await runEagerly(gradient, { x }).then(
    () => {
      throw new Error('it works');
    },
    (error) => describeError(error).text.split('\n').slice(0, 2),
  );
  return [shown(gradient), eagerly];
}

test.each<[string, (x: any) => any, string, string]>([
  [
    'wrong shapes',
    (x) => tf.matMul(x, tf.zeros([7, 3])),
    "CompilerError: matMul: expected inner dimensions that are equal, got 3 and 7 of float32[2,3] and float32[7,3]. (in layer 'x_layers_0')",
    'LayerError: x_layers_0 (Part): fprop: Error in matMul: inner shapes (3) and (7) of Tensors with shapes 2,3 and 7,3 and ' +
      'transposeA=false and transposeB=false must match.',
  ],
  [
    'an undefined tensor',
    (x) => tf.add(x, undefined as never),
    "LayerError: x_layers_0 (Part): fprop: Argument 'b' passed to 'add' must be a Tensor or TensorLike, but got 'null'",
    "LayerError: x_layers_0 (Part): fprop: Argument 'b' passed to 'add' must be a Tensor or TensorLike, but got 'null'",
  ],
  [
    'a property of nothing',
    (x) => x.foo.bar,
    "LayerError: x_layers_0 (Part): fprop: Cannot read properties of undefined (reading 'bar')",
    "LayerError: x_layers_0 (Part): fprop: Cannot read properties of undefined (reading 'bar')",
  ],
  [
    'no gradient, in the layer that is differentiated first',
    (x) => tf.sparse.sparseSegmentSum(x, [0, 1], [0, 1]),
    "CompilerError: The operation 'SparseSegmentSum' has no gradient: compute what is differentiated without it, or give it one with " +
      "tf.customGrad. (in the gradient of layer 'x_layers_1')",
    "CompilerError: The operation 'SparseSegmentSum' has no gradient: compute what is differentiated without it, or give it one with " +
      "tf.customGrad. (in the gradient of layer 'x_layers_1')",
  ],
  [
    'a gradient that fails',
    tf.customGrad((x: any) => ({
      value: tf.mul(x, 2) as tf.Tensor,
      gradFunc: (dy: tf.Tensor) => tf.reshape(dy, [5]),
    })) as (x: any) => any,
    "Error: Size(6) must match the product of shape 5 (in the gradient of layer 'x_layers_1')",
    "Error: Size(6) must match the product of shape 5 (in the gradient of layer 'x_layers_1')",
  ],
])('in a layer of a stack, traced and eager: %s', async (_, f, traced, eager) => {
  const lines = await inStack(f);
  expect(lines.map(([message]) => message)).toEqual([traced, eager]);
  for (const [, place] of lines)
    expect(place).toMatch(/^ {4}at (.* \()?test\/compiler\/trace\/usersFrame\.test\.ts:\d+:\d+\)?$/);
});

test('the gradient of topk over one element', () => {
  const gradient = gradientOf(({ x, w }) => tf.mul(tf.topk(x, 1).values, tf.sum(w)));
  const { x } = evalShape(gradient, { ...inputs, x: floats([2, 1]) }) as Record<string, object>;
  expect(x).toEqual({ shape: [2, 1], dtype: 'float32' });
});
