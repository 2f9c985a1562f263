/** @file Keys of constants, expansions and merged operations: calls that differ in one input share nothing in a program. */
import { describe, expect, it } from 'vitest';
import { ops, type Tensor, tf } from '../../src/compiler/index.js';
import { OnnxBuilder } from '../../src/compiler/onnx/builder.js';
import { loweringOf } from '../../src/compiler/onnx/lowerToOnnx.js';
import {
  eliminateCommonSubexpressions,
  eliminateDeadCode,
  expandComposites,
  mergeProducts,
} from '../../src/compiler/passes/index.js';
import { simplifyBodies } from '../../src/compiler/passes/simplifyBodies.js';
import { checkIndices } from '../../src/compiler/program/indexChecks.js';
import type { Graph } from '../../src/compiler/program/ir.js';
import { traceProgram } from '../../src/compiler/trace/tracedProgram.js';
import { expectComparison, expectKey, expectUnmixed } from '../keys.js';
import { GraphBuilder } from './passes/support.js';

const specs = { x: { shape: [400], dtype: 'float32' } } as const;
/** The leading numbers of x in a shape. */
const shaped = ({ x }: { x: Tensor }, ...shape: number[]): any =>
  tf.reshape(tf.slice(x, [0], [shape.reduce((size, dim) => size * dim, 1)]), shape);
const expanded = (graph: Graph): Graph => expandComposites(graph, () => false);

describe('constants', () => {
  it.each([false, true])('resized images; gradients: %s', (isGradient) => {
    expectUnmixed(
      'tables of resizing',
      { method: 'Bilinear', size: 4, newSize: 6, alignCorners: false, halfPixelCenters: false },
      { method: 'NearestNeighbor', size: 5, newSize: 7, alignCorners: true, halfPixelCenters: true },
      ({ method, size, newSize, alignCorners, halfPixelCenters }, given) => {
        const image = shaped(given, 1, size, size, 1);
        const resize = (x: any): any =>
          (tf.image as any)[`resize${method}`](x, [newSize, newSize], alignCorners, halfPixelCenters);
        return isGradient ? tf.grad(resize)(image) : resize(image);
      },
      specs,
    );
  });

  it('turned images', () => {
    expectUnmixed(
      'cells of rotation',
      { height: 5, width: 4, radians: 0.7, center: 0.5 },
      { height: 4, width: 5, radians: 0.8, center: [0.25, 0.5] },
      ({ height, width, radians, center }, given) =>
        tf.image.rotateWithOffset(shaped(given, 1, height, width, 1), radians, 0, center),
      specs,
    );
  });

  it('positions of maxima, cut boxes', () => {
    expectUnmixed(
      'beginnings of windows',
      { height: 1, width: 1, channels: 2 },
      { height: 2, width: 2, channels: 3 },
      ({ height, width, channels }, given) =>
        tf.maxPoolWithArgmax(shaped(given, 1, 6, 6, channels), 2, [height, width], 'valid').indexes!,
      specs,
    );
    expectUnmixed(
      'counts',
      { size: 3 },
      { size: 4 },
      ({ size }, given) =>
        tf.image.cropAndResize(shaped(given, 1, 6, 6, 1), shaped(given, 1, 4), tf.zeros([1], 'int32'), [
          size,
          size,
        ]),
      specs,
    );
  });

  it('of ONNX models: values and types', () => {
    const builder = new OnnxBuilder(loweringOf);
    const [ints, doubles] = [
      (list: number[]) => builder.ints(list),
      (list: number[]) => builder.doubles(Float64Array.from(list)),
    ];
    expectKey('ONNX lists', { values: [1, 23] }, { values: [12, 3] }, ({ values }) => [
      ints(values),
      doubles(values),
    ]);
    expectKey(
      'ONNX scalars',
      { value: 1, type: 'float32' },
      { value: -0, type: 'int32' },
      ({ value, type }) => builder.scalar(value, type),
    );
    expect(builder.scalar(-0)).not.toBe(builder.scalar(0));
    expectKey('ONNX words', { value: 1, type: 'int64' }, { value: 2, type: 'uint32' }, ({ value, type }) =>
      builder.word(value, type),
    );
    expect(
      new Set([builder.double(1), builder.double(2), builder.word(1, 'int64'), builder.scalar(1)]).size,
    ).toBe(4);
    expectKey(
      'ONNX rounded operands',
      { input: 'a', storage: 'bfloat16' },
      { input: 'b', storage: 'float16' },
      ({ input, storage }) => builder.rounded(input, storage),
    );
  });
});

describe('checks of indices', () => {
  const inputs = {
    x: { shape: [9, 2], dtype: 'float32' },
    a: { shape: [4], dtype: 'int32' },
    b: { shape: [4], dtype: 'int32' },
  } as const;
  const rowsOf = ({ x }: any, limit: number): any => tf.slice(x, [0, 0], [limit, 2]);

  it('of inputs: each input, limit and part of it has one', () => {
    expectComparison(
      'checks of inputs',
      { input: 'a', limit: 5, positions: 2 },
      { input: 'b', limit: 6, positions: 3 },
      (one, two) => {
        const program = traceProgram(
          (given: any) =>
            [one, two].map(({ input, limit, positions }) =>
              tf.gather(rowsOf(given, limit), tf.slice(given[input], [0], [positions])),
            ),
          inputs,
        );
        return checkIndices(program.graph).checks.length === 1;
      },
    );
  });

  it('of computed ones: each has its own', () => {
    expectComparison(
      'checks of computed indices',
      { indices: 'a', limit: 5 },
      { indices: 'b', limit: 6 },
      (one, two) => {
        const program = traceProgram((given: any) => {
          const computed = { a: tf.add(given.a, given.b), b: tf.mul(given.a, given.b) };
          return [one, two].map(({ indices, limit }) =>
            ops.softmaxCrossEntropy(tf.zeros([4, limit]), (computed as any)[indices]),
          );
        }, inputs);
        return checkIndices(program.graph).graph.nodes.filter(({ op }) => op === 'Range').length === 1;
      },
    );
  });
});

describe('operations', () => {
  it('are expanded by all that says how', () => {
    expectUnmixed(
      'expansions',
      { op: 'avgPool', attributes: 2, operands: 2 },
      { op: 'maxPool', attributes: 3, operands: 3 },
      ({ op, attributes, operands }, given) =>
        (tf as any)[op](shaped(given, 1, 6, 6, operands), attributes, 1, 'valid'),
      specs,
      expanded,
    );
    // JSON has neither infinities nor a sign of zero.
    for (const scale of [Number.POSITIVE_INFINITY, -0])
      expectUnmixed(
        'expansions',
        { op: 'attention', attributes: Number.NaN, operands: 3 },
        { op: 'gelu', attributes: scale, operands: 4 },
        ({ op, attributes, operands }, given) => {
          const x = shaped(given, 1, operands, 2, 5);
          return op === 'gelu'
            ? ops.gelu(x)
            : ops.attention(x, x, x, { causal: false, scale: attributes, logitCap: 0 });
        },
        specs,
        expanded,
      );
  });

  it('are merged where all is the same', () => {
    expectUnmixed(
      'equal operations',
      { op: 'maximum', operands: 1, attributes: 0 },
      { op: 'minimum', operands: 2, attributes: 1 },
      ({ op, operands, attributes }, given) => {
        const x = shaped(given, 6, 6);
        return (tf as any)[op](
          tf.sum(x, attributes),
          tf.sum(tf.exp(shaped(given, 6, 6, operands)), [1, 2].slice(0, operands)),
        );
      },
      specs,
      eliminateCommonSubexpressions,
    );
  });

  it.each(['transposeA', 'transposeB', 'alpha', 'precision'] as const)(
    'products of another %s are no one product',
    (name) => {
      const attrs = { transposeA: false, transposeB: false, alpha: 1 };
      const others = { transposeA: true, transposeB: true, alpha: 2, precision: 'bfloat16' };
      const products = (second: object): number => {
        const g = new GraphBuilder();
        const product = (own: object) => {
          const all = { ...attrs, ...own };
          const operands = [all.transposeA ? [2, 8] : [8, 2], all.transposeB ? [8, 2] : [2, 8]];
          return g.node(
            'BatchMatMul',
            operands.map((shape) => g.input(shape)),
            all,
          );
        };
        const graph = g.graph(g.node('Add', [product({}), product(second)]));
        return eliminateDeadCode(mergeProducts(graph)).nodes.filter(({ op }) => op === 'BatchMatMul').length;
      };
      expect([products({}), products({ [name]: others[name] })]).toEqual([1, 2]);
    },
  );

  it('rows of a loop and the whole array stay two inputs', () => {
    const { graph } = traceProgram(
      ({ x }: any) =>
        ops.scan(
          (sum: any, row: any) => [tf.add(sum, tf.mul(row, tf.sum(x))), []] as any,
          tf.zeros([2]),
          x,
        )[0] as any,
      { x: { shape: [3, 2], dtype: 'float32' } },
    );
    const [loop] = simplifyBodies(graph).nodes.filter(({ bodies }) => bodies);
    expect(loop!.inputs.filter((input) => input === graph.inputs[0])).toHaveLength(2);
  });
});
