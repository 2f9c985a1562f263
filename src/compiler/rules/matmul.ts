/** @file The rule of matrix multiplication. */
import { precisionAttr } from '../precision.js';
import { CompilerError, formatSpec, sizeOf } from '../types.js';
import { broadcastShapes } from './elementwise.js';
import { type RuleTable, spec } from './rule.js';

export const matmulRules: RuleTable = {
  /** alpha * op(a) op(b) over the last two axes; the axes in front broadcast. */
  BatchMatMul: {
    inputs: ['a', 'b'],
    attrs: (raw, [a]) => ({
      transposeA: Boolean(raw.transposeA),
      transposeB: Boolean(raw.transposeB),
      alpha: raw.alpha ?? 1,
      ...(a!.dtype === 'float32' && precisionAttr(raw)),
    }),
    infer: ([a, b], { transposeA, transposeB }) => {
      const rows = a!.shape.at(transposeA ? -1 : -2);
      const inner = a!.shape.at(transposeA ? -2 : -1);
      const innerB = b!.shape.at(transposeB ? -1 : -2);
      const columns = b!.shape.at(transposeB ? -2 : -1);
      if (rows === undefined || columns === undefined || inner !== innerB) {
        throw new CompilerError(
          `matMul of ${formatSpec(a!)}${transposeA ? ' transposed' : ''} by ${formatSpec(b!)}${transposeB ? ' transposed' : ''}: the inner dimensions are ${inner} and ${innerB}.`,
        );
      }
      const batch = broadcastShapes(a!.shape.slice(0, -2), b!.shape.slice(0, -2));
      return [spec([...batch, rows, columns], a!.dtype)];
    },
    flops: ([a], [out], { transposeA }) => 2 * sizeOf(out!.shape) * a!.shape.at(transposeA ? -2 : -1)!,
  },
};
