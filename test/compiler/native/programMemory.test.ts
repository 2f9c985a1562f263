/** @file Memory of packed operands, by the instructions of the run. */
import { expect, test } from 'vitest';
import { type Tensor, tf, withPrecision } from '../../../src/compiler/index.js';
import { programMemory } from '../../../src/compiler/native/programMemory.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import type { Precision } from '../../../src/compiler/program/precision.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { f32 } from './plans.js';

test('a packed operand takes the bytes that the instructions of the run read', () => {
  const packed = (precision: Precision, products: 'bf16 instructions' | 'float32 instructions') => {
    const f = ({ x, w }: Record<string, Tensor>) => withPrecision(precision, () => tf.matMul(x!, w!));
    const { graph } = traceProgram(f as never, { x: f32(128, 64), w: f32(64, 256) });
    return programMemory(optimize(graph), null, undefined, products).packed;
  };
  expect(packed('bfloat16', 'bf16 instructions')).toBe(2 * 64 * 256);
  expect(packed('bfloat16', 'float32 instructions')).toBe(4 * 64 * 256);
  expect(packed('float32', 'bf16 instructions')).toBe(4 * 64 * 256);
});
