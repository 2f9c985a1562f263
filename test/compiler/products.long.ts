/**
 * @file Every product of random programs in bfloat16, against a plain loop over the very operands that the engine
 * multiplied: whole programs can only be compared up to operands whose last bit decides how they are rounded.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGraph } from '../../src/compiler/engines/engine.js';
import { type HostTensor, sizeOf } from '../../src/compiler/index.js';
import { compileOnnx } from '../../src/compiler/onnx/onnxSession.js';
import { expandComposites, optimize } from '../../src/compiler/passes/index.js';
import type { Backend } from '../../src/compiler/program/backend.js';
import type { Graph, Node } from '../../src/compiler/program/ir.js';
import { roundOperand } from '../../src/compiler/program/precision.js';
import { newHostArray } from '../../src/compiler/program/tensors.js';
import { traceProgram } from '../../src/compiler/trace/tracedProgram.js';
import { tries } from '../faults/campaign.js';
import { engines } from './engines.js';
import { differentiated, programInputs, type Step, stepsArbitrary } from './programs.js';
import { leavesOf } from './support.js';

/** Each draws so many programs. */
const SEEDS = tries(20, 6);

const backends: Readonly<Record<string, (graph: Graph) => Promise<Backend>>> = {
  onnx: (graph) => compileOnnx(graph, { numThreads: 1 }),
  native: (graph) => compileGraph(graph, { engine: 'native', numThreads: 1 }),
};

/** A matrix of a batch that broadcasts, read by row and column. */
function reader({ shape, data }: HostTensor, transpose: boolean, batch: readonly number[]) {
  const [rows, columns] = shape.slice(-2) as [number, number];
  const own = shape.slice(0, -2);
  return (index: number, i: number, j: number): number => {
    let [rest, at, stride] = [index, 0, 1];
    for (let axis = 1; axis <= batch.length; axis++) {
      const place = rest % batch.at(-axis)!;
      rest = Math.floor(rest / batch.at(-axis)!);
      const dim = own.at(-axis) ?? 1;
      if (axis <= own.length) at += (dim === 1 ? 0 : place) * stride;
      stride *= dim;
    }
    return data[at * rows * columns + (transpose ? j * columns + i : i * columns + j)]!;
  };
}

/** The largest error of a product, relative to the sum of its terms' sizes. */
function error({ attrs }: Node, a: HostTensor, b: HostTensor, out: HostTensor): number {
  const { transposeA, transposeB, alpha } = attrs as {
    transposeA: boolean;
    transposeB: boolean;
    alpha: number;
  };
  const [m, n] = out.shape.slice(-2) as [number, number];
  const k = a.shape.at(transposeA ? -2 : -1)!;
  const batch = out.shape.slice(0, -2);
  const [left, right] = [reader(a, transposeA, batch), reader(b, transposeB, batch)];
  let worst = 0;
  for (let at = 0; at < out.data.length; at++) {
    const [index, i, j] = [Math.floor(at / (m * n)), Math.floor(at / n) % m, at % n];
    let [sum, size] = [0, 1e-30];
    for (let l = 0; l < k; l++) {
      const term = alpha * left(index, i, l) * right(index, l, j);
      sum += term;
      size += Math.abs(term);
    }
    worst = Math.max(worst, Math.abs(out.data[at]! - sum) / size);
  }
  return worst;
}

/** Traced programs with every product's operands and result as outputs, and no others. */
function exposed(programs: readonly (readonly Step[])[]): { graph: Graph; products: readonly Node[] } {
  const all = (inputs: any) => programs.map((steps) => differentiated(steps, 'bfloat16')(inputs));
  const { graph } = traceProgram(all, programInputs as any);
  const expanded = optimize(expandComposites(optimize(graph), ({ op }) => !op.startsWith('Attention')));
  const products = expanded.nodes.filter(({ op }) => op === 'BatchMatMul');
  const outputs = products.flatMap((node) => [...node.inputs, ...node.outputs]);
  return { graph: { ...expanded, outputs }, products };
}

describe.each(engines)('%s', (_, { engine, available }) => {
  test.skipIf(!available)('sums products of rounded operands in float32', async () => {
    const inputs = leavesOf(programInputs as any).map(({ data }) => data);
    let count = 0;
    for (let seed = 0; seed < SEEDS; seed++) {
      const { graph, products } = exposed(fc.sample(stepsArbitrary, { numRuns: 20, seed }));
      // Programs of so many operations may hold none.
      if (products.length === 0) continue;
      const backend = await backends[engine]!(graph);
      const outputs = graph.outputs.map(({ dtype, shape }) => newHostArray(dtype, sizeOf(shape)));
      await backend.bind({ inputs, outputs })();
      await backend.dispose();
      products.forEach((node, i) => {
        const [a, b, out] = graph.outputs
          .slice(3 * i, 3 * i + 3)
          .map(
            (value, o): HostTensor => ({ shape: value.shape, dtype: value.dtype, data: outputs[3 * i + o]! }),
          );
        const rounds = node.attrs.precision === 'bfloat16';
        const operand = (x: HostTensor) =>
          rounds ? { ...x, data: roundOperand(x.data as Float32Array, 'bfloat16') } : x;
        expect(error(node, operand(a!), operand(b!), out!), `product ${i} of seed ${seed}`).toBeLessThan(
          1e-5,
        );
        if (rounds) count++;
      });
    }
    expect(count).toBeGreaterThan(2.5 * SEEDS);
  });
});
