/** @file Barriers: threads meet between steps wherever one has part in what another wrote, and no more often. */
import { describe, expect, it } from 'vitest';
import { ops, valueAndGrad } from '../../../../src/compiler/index.js';
import { lowerToC } from '../../../../src/compiler/native/c/lowerToC.js';
import type { Plan } from '../../../../src/compiler/native/plan/threadSteps.js';
import { verifyPlan } from '../../../../src/compiler/native/plan/verifyPlan.js';
import { optimize } from '../../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../../src/compiler/trace/tracedProgram.js';
import { f32, i32, kindOf, planOf, type Traced, tf } from '../plans.js';

type Specs = ReturnType<typeof f32>[];

/** What runs in each stretch between two barriers. */
function stretches({ steps }: Plan): string[] {
  const names: string[][] = [];
  for (const step of steps) {
    const name = step.kind === 'call' ? kindOf(step.stage.units[0]!) : step.kind;
    names[step.epoch] = [...(names[step.epoch] ?? []), name];
  }
  return names.map((all) => all.join(', '));
}

const image = f32(2, 16, 16, 16);
const filter = f32(3, 3, 16, 16);
const convolve = (x: any, w: any): any => tf.conv2d(x, w, 1, 'same');
const perceptron: Traced = (x, v, w) => {
  const { value, grads } = valueAndGrad(
    ([a, b]: any) => ({ value: tf.mean(tf.square(tf.matMul(tf.relu(tf.matMul(x, a)), b))), aux: [] as any }),
    [v, w] as any,
  );
  return [value, ...(grads as any)];
};
const inTurn = (x: any, y: any): any => tf.matMul(x, y, true, false);

const programs: [string, string[], string, Traced, Specs][] = [
  [
    'convolutions that do not depend on each other share the workspace',
    ['convolution', 'convolution'],
    'it fills the workspace that others read',
    (x, v, w) => [convolve(x, v), convolve(x, w)],
    [image, filter, filter],
  ],
  [
    'so do a convolution and products of other matrices',
    ['convolution', 'products'],
    'it fills the workspace that others read',
    (x, w, a, b) => [inTurn(a, b), convolve(x, w)],
    [image, filter, f32(64, 64), f32(64, 64)],
  ],
  [
    'a product of few rows waits for its operand',
    ['pack', 'narrow'],
    'it multiplies what others pack',
    (x, w) => tf.matMul(x, w),
    [f32(4, 64), f32(64, 512)],
  ],
  [
    'a loop over other rows waits for what it reads',
    ['loop', 'loop'],
    'it reads what others write',
    (x) => tf.softmax(tf.transpose(tf.softmax(x))),
    [f32(40, 30)],
  ],
  [
    'attention of many queries waits for keys',
    ['updateSlice', 'attention'],
    'it reads what others write',
    (cache, rows, at, q) => {
      const keys = tf.transpose(ops.updateSlice(cache, rows, at, 2), [0, 2, 1, 3]);
      return ops.attention(q, keys, keys, { scale: 1, causal: true, logitCap: 0 });
    },
    [f32(2, 3, 8, 4), f32(2, 3, 5, 4), i32(), f32(2, 5, 3, 4)],
  ],
];

describe('the plan', () => {
  it.each(programs)('%s', (_, expected, hazard, f, specs) => {
    const { plan } = planOf(f, ...specs);
    expect(stretches(plan)).toEqual(expected);
    for (let barrier = 1; barrier < expected.length; barrier++) {
      const steps = plan.steps.map((step) => ({
        ...step,
        epoch: step.epoch - Number(step.epoch >= barrier),
      }));
      expect(() => verifyPlan({ ...plan, steps }, new Set())).toThrow(
        `wrong: ${hazard}, without a barrier between.`,
      );
    }
  });

  it('each barrier of a training step has its reason', () => {
    const { plan } = planOf(perceptron, f32(512, 32), f32(32, 48), f32(48, 16));
    expect(stretches(plan)).toEqual(['pack', 'chain', 'finish, products', 'loop']);
    for (const barrier of [1, 2, 3]) {
      const steps = plan.steps.map((step) => ({
        ...step,
        epoch: step.epoch - Number(step.epoch >= barrier),
      }));
      expect(() => verifyPlan({ ...plan, steps }, new Set())).toThrow('without a barrier between.');
    }
  });
});

describe('the program', () => {
  const sourceOf = (f: Traced, specs: Specs): string => {
    const { graph } = traceProgram((inputs: any[]) => [f(...inputs)].flat(), specs);
    return (lowerToC(optimize(graph)) as { readonly source: string }).source;
  };

  it.each(programs)('waits where the plan does: %s', (_, expected, __, f, specs) => {
    const table = /lt_step steps\[\] = \{(.*?)\};/s.exec(sourceOf(f, specs))![1]!;
    const waits = [...table.matchAll(/\{step\d+, \d+, (\d)\}/g)].map(([, waits]) => waits);
    expect(waits).toEqual(['0', ...expected.slice(1).map(() => '1')]);
  });

  it('parts the passes of a convolution and of its gradients', () => {
    const f: Traced = (x, w, u, v) => {
      const gradients = (of: any, ...xs: any[]) =>
        tf.grads((a: any, b: any) => tf.sum(tf.square(of(a, b))) as any)(xs) as any[];
      return [
        ...gradients(convolve, x, w),
        ...gradients((a: any, b: any) => tf.depthwiseConv2d(a, b, 2, 'same'), u, v),
      ];
    };
    const source = sourceOf(f, [image, filter, f32(2, 9, 9, 8), f32(3, 3, 8, 1)]);
    const bodies = source
      .split('LT_FUNCTION')
      .map((body) =>
        [...body.split('\n}')[0]!.matchAll(/lt_(winograd\w*|depthwise\w*|barrier)\(/g)].map(([, name]) =>
          name!.replace(/_scratch.*|_sums_bytes/, ''),
        ),
      );
    const called = bodies.filter((names) => names.length > 1).map((names) => names.join(' '));
    expect(new Set(called)).toEqual(
      new Set([
        'winograd_filters barrier winograd',
        'winograd_sums barrier winograd_gradient',
        'depthwise_sums barrier depthwise_filter',
      ]),
    );
  });
});
