/** @file Shares: where a thread reads what it has written itself, there is no barrier. */
import { expect, test } from 'vitest';
import { ops } from '../../../../src/compiler/index.js';
import { f32, i32, kindOf, planOf, tf } from '../plans.js';

const [B, N, S, H] = [2, 3, 8, 4];
const swap = (x: any) => tf.transpose(x, [0, 2, 1, 3]);

/** What runs in each stretch between two barriers, where `axis` is that of the cache's tokens. */
function epochs(axis: 1 | 2, queries: number): string[] {
  const byHead = axis === 2;
  const attend = (cache: any, tokens: any, at: any, q: any) => {
    const keys = ops.updateSlice(cache, tokens, at, axis);
    const heads = byHead ? swap(keys) : keys;
    return ops.attention(q, heads, heads, { scale: 1, causal: true, logitCap: 0 });
  };
  const of = (time: number) => (byHead ? f32(B, N, time, H) : f32(B, time, N, H));
  const { plan } = planOf(attend, of(S), of(queries), i32(), f32(B, queries, N, H));
  const names: string[] = [];
  for (const step of plan.steps) {
    const name = step.kind === 'call' ? kindOf(step.stage.units[0]!) : step.kind;
    names[step.epoch] = names[step.epoch] === undefined ? name : `${names[step.epoch]}, ${name}`;
  }
  return names;
}

test('threads attend to the heads whose keys they have written', () => {
  expect(epochs(2, 1)).toEqual(['updateSlice, attention']);
  expect(epochs(2, 4)).toEqual(['updateSlice, attention']);
});

test('threads wait where heads are not contiguous, and where queries are divided as well', () => {
  expect(epochs(1, 1)).toEqual(['updateSlice', 'attention']);
  expect(epochs(2, 5)).toEqual(['updateSlice', 'attention']);
});
