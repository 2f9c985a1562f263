/** @file What a pass may not leave behind. */
import { expect, test } from 'vitest';
import { layOut } from '../../../src/compiler/native/plan/layout.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { verify, verifyNoEmpties } from '../../../src/compiler/passes/verify.js';
import { type Attrs, type Graph, type Node, newValue, type Value } from '../../../src/compiler/program/ir.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { differentiated, programInputs } from '../programs.js';

const x = newValue({ shape: [2, 3], dtype: 'float32' }, { name: 'x' });

const node = (op: string, inputs: Value[], shape: number[], attrs: Attrs = {}): Node => ({
  op,
  inputs,
  outputs: [newValue({ shape, dtype: 'float32' })],
  attrs,
  scope: 'lm/x',
});

const graph = (...nodes: Node[]): Graph => ({ inputs: [x], outputs: nodes.at(-1)!.outputs, nodes });

const square = node('Square', [x], [2, 3]);

test.each([
  [
    'another shape than the rule gives',
    graph(node('Sum', [x], [3], { axes: [1], keepDims: false })),
    "A pass left Sum of 'lm/x' wrong: from float32[2,3], expected float32[2], got float32[3].",
  ],
  [
    'an attribute out of range',
    graph(node('Slice', [x], [2, 3], { begin: [1, 0], size: [2, 3] })),
    'slice: expected a part of float32[2,3], got begin [1,0] and size [2,3].',
  ],
  [
    'a value that is read before it is made',
    graph(node('Neg', square.outputs as Value[], [2, 3]), square),
    "A pass left Neg of 'lm/x' wrong: it reads float32[2,3] before that is made.",
  ],
  [
    'a constant of another length',
    graph(
      node('Add', [x, newValue({ shape: [3], dtype: 'float32' }, { data: new Float32Array(2) })], [2, 3]),
    ),
    "A pass left Add of 'lm/x' wrong: a constant float32[3] is a Float32Array of 2.",
  ],
])('%s is told', (_, broken, message) => {
  expect(() => verify(broken)).toThrow(message);
});

test('an optimized program is valid', () => {
  const steps = ['gram', 'attention', 'layerNorm', 'conv2d', 'crossEntropy', 'gather'].map((op, i) => ({
    op,
    a: i,
    b: i,
    n: i,
  }));
  const traced = traceProgram(differentiated(steps) as any, programInputs as any).graph;
  expect(() => verify(optimize(traced))).not.toThrow();
});

test.each([
  ['checked', verifyNoEmpties],
  ['lowered to machine code', layOut],
])('an empty tensor that is left when a graph is %s', (_, check) => {
  const rows = newValue({ shape: [0, 3], dtype: 'float32' }, { name: 'rows' });
  const joined = node('Concat', [x, rows], [2, 3], { axis: 0 });
  expect(() => check(graph(square))).not.toThrow();
  expect(() => check(graph(square, joined))).toThrow(
    "A pass left Concat of 'lm/x' wrong: it reads or makes float32[0,3], which is empty.",
  );
});
