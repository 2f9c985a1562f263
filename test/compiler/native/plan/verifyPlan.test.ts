/** @file Verification of packed operands: steps may write the rest of an operand's buffer, and none the operand. */
import { expect, test } from 'vitest';
import type { LoopUnit } from '../../../../src/compiler/native/plan/units.js';
import { verifyPlan } from '../../../../src/compiler/native/plan/verifyPlan.js';
import { f32, planOf, tf } from '../plans.js';

/** Two products by `once`, which lies in the result beside the values made of the first of them. */
const beside = (x: any, y: any): any => {
  const once = tf.sin(y);
  const first = tf.cos(tf.matMul(x, once));
  const second = tf.matMul(tf.sin(tf.matMul(first, tf.transpose(first))), once);
  return [tf.concat([once, first], 0), second];
};

test('between two products by one operand a step may write beside it', () => {
  const { plan } = planOf(beside, f32(2, 2), f32(2, 3));
  const [packing] = plan.steps.flatMap((step) => (step.kind === 'pack' ? step.packings : []));
  expect(packing!.unit.b).toMatchObject({ offset: 0, buffer: { size: 12 } });
  /** The plan where the step behind the first product writes from another element on. */
  const writingFrom = (offset: number) => ({
    ...plan,
    steps: plan.steps.map((step, at): any => {
      if (at !== 3 || step.kind !== 'loop') return step;
      const unit = step.stage.units[0] as LoopUnit;
      const nodes = unit.nodes.map((node) => ({ ...node, write: { ...node.write, offset } }));
      expect(nodes.map(({ write }) => write.buffer)).toEqual([packing!.unit.b.buffer]);
      return { ...step, stage: { ...step.stage, units: [{ ...unit, nodes }] } };
    }),
  });
  expect(writingFrom(6)).toEqual(plan);
  verifyPlan(plan, new Set());
  for (const offset of [0, 3, 5])
    expect(() => verifyPlan(writingFrom(offset), new Set())).toThrow(
      'The native engine planned a loop step wrong: it writes what was packed before.',
    );
});
