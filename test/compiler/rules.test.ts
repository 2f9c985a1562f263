/** @file Every operation's rule and lowering: compiled results and gradients against tfjs's cpu backend. */
import { getKernel } from '@tensorflow/tfjs-core';
import { describe, expect, test, vi } from 'vitest';
import { allDecompositions, COMPLEX_KERNELS } from '../../src/compiler/decompositions/decomposition.js';
import {
  compile,
  type Engine,
  evalShape,
  type HostArray,
  type HostTensor,
  type Tree,
} from '../../src/compiler/index.js';
import { opNames, ruleOf } from '../../src/compiler/rules/index.js';
import { traceProgram } from '../../src/compiler/trace/tracedProgram.js';
import { runs } from '../faults/campaign.js';
import { type Case, program } from './cases/case.js';
import { caseTable as table } from './cases/index.js';
import { engines } from './engines.js';
import { compiledResults, expectClose, leavesOf, repeatedly, tf, weightedSum } from './support.js';

test('every operation has cases here', () => {
  expect(Object.keys(table).sort()).toEqual(
    [...opNames(), ...allDecompositions().keys(), ...COMPLEX_KERNELS].sort(),
  );
});

test.each(Object.entries(table))('cases of %s use it', (op, cases) => {
  if (leavesNoNode(op)) {
    expectCallsOf(op, cases);
    return;
  }
  for (const [i, c] of cases.entries()) {
    const recorded = traceProgram(program(c, c.f), [...c.inputs]).graph.nodes.map((node) => node.op);
    expect(recorded, `case ${i}`).toContain(op);
  }
});

const leavesNoNode = (op: string): boolean => allDecompositions().has(op) || COMPLEX_KERNELS.includes(op);

/** Expects each case to call a kernel that leaves no node of its own. */
function expectCallsOf(op: string, cases: readonly Case[]): void {
  for (const [i, c] of cases.entries()) {
    // Registered at the first trace.
    traceProgram(program(c, c.f), [...c.inputs]);
    const called = vi.spyOn(getKernel(op, 'luthier-trace'), 'kernelFunc');
    traceProgram(program(c, c.f), [...c.inputs]);
    expect(called, `case ${i}`).toHaveBeenCalled();
    called.mockRestore();
  }
}

/** Outputs and gradients of all cases; as one program, which is compiled once. */
async function runAll(cases: readonly Case[], engine: Engine): Promise<HostTensor[][]> {
  const all = (lists: any[][]) =>
    cases.map((c, i) => program(c, engine === 'eager' ? (c.oracle ?? c.f) : c.f)(lists[i]!));
  const inputs = cases.map((c) => [...c.inputs]);
  const executable = await compile(all as any, inputs, { engine, numThreads: 1 });
  const results = (await repeatedly(executable, inputs)) as unknown as Tree<HostTensor>[];
  await executable.dispose();
  return results.map(leavesOf);
}

/** The cases of this many operations are one program: a C compiler takes longer to start, ONNX Runtime to optimize. */
const TOGETHER: Partial<Record<Engine, number>> = { native: 16, onnx: 4 };
const ops = Object.keys(table);
const made = new Map<string, Promise<ReadonlyMap<string, HostTensor[][]>>>();

/** Results of an operation's cases, which are made with those of the operations beside it. */
async function resultsOf(op: string, engine: Engine): Promise<HostTensor[][]> {
  const together = TOGETHER[engine] ?? 1;
  const first = ops.indexOf(op) - (ops.indexOf(op) % together);
  const key = `${engine} ${first}`;
  if (!made.has(key)) made.set(key, runTogether(ops.slice(first, first + together), engine));
  return (await made.get(key)!).get(op)!;
}

async function runTogether(some: readonly string[], engine: Engine): Promise<Map<string, HostTensor[][]>> {
  const results = await runAll(
    some.flatMap((op) => table[op]!),
    engine,
  );
  return new Map(some.map((op) => [op, results.splice(0, table[op]!.length)]));
}

describe.each(engines)('%s', (_, { engine, available }) => {
  test.skipIf(!available).each(Object.entries(table))('%s', async (op, cases) => {
    const [actual, expected] = [await resultsOf(op, engine), await resultsOf(op, 'eager')];
    for (const [i, { inputs, tolerance, differentiable }] of cases.entries()) {
      expect(actual[i]!.length).toBe(expected[i]!.length);
      const shapes = inputs.map((x) => `${x.dtype}[${x.shape}]`).join(' ');
      actual[i]!.forEach((tensor, k) => {
        const what = differentiable > 0 ? `output or gradient ${k}` : `output ${k}`;
        expectClose(tensor, expected[i]![k]!, tolerance, `case ${i} on ${shapes}, ${what}`);
      });
    }
  });
});

/** Whose programs of one case each are ready at once; that the engines agree is tested above. */
const quick = { engine: 'onnx', numThreads: 1 } as const;

/** Gradients as central differences of the compiled program, one for each element of each differentiated input. */
async function differences({ inputs, f, differentiable }: Case): Promise<HostTensor[]> {
  const executable = await compile((xs: any[]) => weightedSum([f(...xs)].flat()), [...inputs], quick);
  const arrays = inputs.map((x) => x.data.slice());
  const call = executable.bind({ inputs: arrays });
  const valueAt = async (data: HostArray, i: number, x: number): Promise<number> => {
    const before = data[i]!;
    data[i] = x;
    const result = (await call.run()) as HostTensor;
    data[i] = before;
    return result.data[0]!;
  };
  const gradients = [];
  for (const [k, x] of inputs.slice(0, differentiable).entries()) {
    const gradient = new Float32Array(x.data.length);
    for (let i = 0; i < gradient.length; i++) {
      const [low, high] = [x.data[i]! - STEP, x.data[i]! + STEP];
      const rise = (await valueAt(arrays[k]!, i, high)) - (await valueAt(arrays[k]!, i, low));
      gradient[i] = rise / (high - low);
    }
    gradients.push({ ...x, data: gradient });
  }
  await executable.dispose();
  return gradients;
}

/** Wide enough that rounding in float32 stays below 1e-3 of the slope. */
const STEP = 2 ** -7;

/** Operations with jumps: the gradient is that of the pieces. */
const JUMPS = ['Floor', 'Ceil', 'Round', 'Cast', 'Mod'];

const differentiableCases = Object.entries(table)
  .map(([op, cases]) => [op, cases.filter((c) => c.differentiable > 0)] as const)
  .filter(([op, cases]) => cases.length > 0 && !op.endsWith('Grad') && !JUMPS.includes(op));

/** Cases of an operation: each takes two calls for each number. */
const differing = runs(Number.MAX_SAFE_INTEGER, 2);

test.each(differentiableCases)('gradient of %s against finite differences', async (_, cases) => {
  for (const [i, c] of cases.slice(0, differing).entries()) {
    const expected = await differences(c);
    const results = await compiledResults(program(c, c.f), [...c.inputs], quick);
    const actual = results.slice(-expected.length);
    actual.forEach((gradient, k) => {
      const what = `case ${i} on ${c.inputs.map((x) => `[${x.shape}]`).join(' ')}, gradient ${k}`;
      expectClose(gradient, expected[k]!, { relative: 5e-3, absolute: 2e-3 }, what);
    });
  }
});

test('constant folding agrees with the lowering', async () => {
  for (const [op, cases] of Object.entries(table)) {
    if (leavesNoNode(op) || ruleOf(op).fold === undefined) continue;
    for (const [i, { inputs, f, tolerance }] of cases.slice(0, 4).entries()) {
      const constants = () =>
        [f(...inputs.map((x) => tf.tensor(x.data as Float32Array, [...x.shape], x.dtype)))].flat();
      const folded = await compiledResults(constants, [], quick);
      const computed = await compiledResults((tensors) => [f(...tensors)].flat(), [...inputs], quick);
      folded.forEach((tensor, k) => {
        expectClose(tensor, computed[k]!, tolerance, `${op}, case ${i}, output ${k}`);
      });
    }
  }
});

test('shapes are inferred as they are computed', async () => {
  const { inputs, f } = table.Concat![0]!;
  const specs = evalShape((...xs) => f(...xs) as any, ...inputs);
  expect(specs).toEqual({ shape: [3, 3], dtype: 'float32' });
  const executable = await compile((xs: any[]) => f(...xs) as any, [...inputs]);
  expect(executable.outputs).toEqual(specs);
  await executable.dispose();
});
