/** @file Products in C: the memory that they ask for is that which they use. */
import { expect, test } from 'vitest';
import { writeBatch } from '../../../../src/compiler/native/c/emitProducts.js';
import type { ProductUnit } from '../../../../src/compiler/native/plan/products.js';
import { f32, planOf, tf } from '../plans.js';

test('a batch of products asks for its packed operand and, behind it, the scratch of a product', () => {
  const plan = planOf((x, y) => tf.matMul(x, y), f32(3, 5, 40), f32(3, 40, 70));
  const unit = plan.units.find(({ kind }) => kind === 'product') as ProductUnit;
  const work = new Set<string>();
  const lines = writeBatch(unit, { pointers: { use: () => 0 }, needs: { work } } as never).join('\n');
  const [, packed] = /char \*const scratch = frame->work \+ (.*);/.exec(lines)!;
  expect(packed).toBe('lt_align(lt_packed_bytes(LT_FLOAT32, 40, 70))');
  expect([...work]).toEqual([`${packed} + lt_gemm_scratch_bytes(LT_FLOAT32, 64, 40)`]);
});
