/**
 * @file Gradients of gradients of every operation, against finite differences of gradients: what engines share, such as
 * a wrong gradient of tfjs, agreement between them does not show.
 */
import { describe, expect, test } from 'vitest';
import {
  compile,
  type Engine,
  evalShape,
  type HostTensor,
  prngKey,
  type Tensor,
  uniform,
  valueAndGrad,
  withScope,
} from '../../src/compiler/index.js';
import { oneIn, runs, seed } from '../faults/campaign.js';
import { expectAgreement } from './agreement.js';
import { SECOND } from './campaign.js';
import type { Case } from './cases/case.js';
import { caseTable } from './cases/index.js';
import { engines } from './engines.js';
import { leavesOf, repeatedly, tf, weightedSum, withGradient } from './support.js';

/** Operations with jumps: the gradient is that of the pieces. */
const JUMPS = ['Floor', 'Ceil', 'Round', 'Cast', 'Mod', 'Sign', 'Step'];

const cases = Object.entries(caseTable)
  .map(([op, cases]) => [op, cases.filter((c) => c.differentiable > 0)] as const)
  .filter(([op, cases]) => cases.length > 0 && !JUMPS.includes(op));

/** Products of outputs, so that gradients depend on the point even where the operation is linear. */
const curved =
  (f: Case['f']) =>
  (...xs: any[]): Tensor[] =>
    [f(...xs)].flat().map((y) => tf.square(tf.cast(y, 'float32')) as Tensor);

/** A number of the gradients, and its gradients. */
function second({ f, differentiable }: Case): (inputs: any[]) => Tensor[] {
  const slopes = (...inputs: Tensor[]): Tensor => {
    const { grads } = withGradient(curved(f), differentiable)(inputs) as unknown as { grads: Tensor[] };
    return weightedSum(grads);
  };
  return (inputs) => {
    const rest = inputs.slice(differentiable);
    const { value, grads } = valueAndGrad(
      (xs: Tensor[]) => ({ value: slopes(...xs, ...rest), aux: {} }),
      inputs.slice(0, differentiable),
    );
    return [value, ...grads];
  };
}

const STEP = 2 ** -7;

/** The differentiable inputs moved along a direction, by steps. */
const moved = ({ inputs, differentiable }: Case, direction: readonly Float32Array[], steps: number) =>
  inputs.map((x, i) =>
    i < differentiable ? { ...x, data: x.data.map((v, k) => v + steps * STEP * direction[i]![k]!) } : x,
  ) as HostTensor[];

/** Whether the gradient is the same everywhere, as that of a product of one factor is. */
function isStraight(c: Case): boolean {
  try {
    evalShape(second(c) as any, [...c.inputs]);
    return false;
  } catch (error) {
    if (/does not depend on/.test((error as Error).message)) return true;
    throw error;
  }
}

async function check(op: string, cases: readonly Case[], engine: Engine): Promise<void> {
  const f = (lists: any[][]) =>
    cases.map((c, i) => second(engine === 'eager' && c.oracle ? { ...c, f: c.oracle } : c)(lists[i]!));
  const directions = cases.map(({ inputs }, i) =>
    inputs.map((x, k) => Float32Array.from(uniform(prngKey(7 * i + k), x.data.length), (u) => 2 * u - 1)),
  );
  const at = (steps: number) => cases.map((c, i) => moved(c, directions[i]!, steps));
  const executable = await compile(f as any, at(0), { engine, numThreads: 1 });
  const results = async (steps: number) =>
    ((await repeatedly(executable, at(steps))) as HostTensor[][]).map((outputs) => leavesOf(outputs));
  const [low, middle, high] = [await results(-1), await results(0), await results(1)];
  await executable.dispose();
  for (const [i, { inputs }] of cases.entries()) {
    const [value, ...grads] = middle![i]!;
    const rise = grads.reduce(
      (sum, { data }, k) => sum + directions[i]![k]!.reduce((dot, u, j) => dot + u * data[j]!, 0),
      0,
    );
    const expected = (high![i]![0]!.data[0]! - low![i]![0]!.data[0]!) / (2 * STEP);
    const tolerance = 1e-2 * Math.abs(expected) + 2e-3 * (1 + Math.abs(value!.data[0]!));
    const what = `${op}, case ${i} on ${inputs.map((x) => `[${x.shape}]`).join(' ')}: ${rise} for ${expected}`;
    expect(Math.abs(rise - expected) <= tolerance, what).toBe(true);
  }
}

/** Operations whose gradients have none: what they take from a window is a choice. */
const WITHOUT: Readonly<Record<string, string>> = {
  MaxPool: 'MaxPoolGrad',
  MaxPool3D: 'MaxPoolGrad',
  MaxPool3DGrad: 'MaxPoolGrad',
  MaxPoolGrad: 'MaxPoolGrad',
  MaxPoolWithArgmax: 'MaxPoolGrad',
  Dilation2D: 'Dilation2DBackpropFilter',
  Dilation2DBackpropFilter: 'Dilation2DBackpropFilter',
  Dilation2DBackpropInput: 'Dilation2DBackpropFilter',
};

async function checkRefusal([c]: readonly Case[], engine: Engine, gradient: string): Promise<void> {
  const layer = withScope.bind(null, 'net/pool');
  const f = (...xs: Tensor[]) => layer(() => c!.f(...xs)) as Tensor;
  await expect(compile(second({ ...c!, f }) as any, [...c!.inputs], { engine })).rejects.toThrow(
    `The operation '${gradient}' has no gradient itself: compute what is differentiated without it, or give it one ` +
      "with tf.customGrad. (in the gradient of layer 'net/pool')",
  );
}

/** With SHORT=1, one operation of two is tried, on one engine. */
const halves = (['onnx', 'eager'] satisfies Engine[]).map((engine, half) => ({
  engine,
  own: oneIn(4, cases, seed + half),
}));

describe.each(halves)('$engine', ({ engine, own }) => {
  test.each(own)('second gradient of %s', (op, cases) =>
    WITHOUT[op] === undefined
      ? check(
          op,
          cases.filter((c) => !isStraight(c)),
          engine,
        )
      : checkRefusal(cases, engine, WITHOUT[op]),
  );
});

test.each(engines)('random programs, %s', async (_, { engine, available }) => {
  if (!available) return;
  const programs = engine === 'native' ? runs(25) : runs(250, 10);
  await expectAgreement({ engine, programs, seed: 20260102, order: 2 }, SECOND);
});
