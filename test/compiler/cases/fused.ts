/** @file Cases of kernels that add a bias and apply an activation. */
import { floats, tf } from '../support.js';
import { type CaseTable, constant, over } from './case.js';

const ACTIVATIONS = ['linear', 'relu', 'relu6', 'elu', 'sigmoid', 'leakyrelu'] as const;

const matrices = [floats([2, 3, 4], -2, 2, 1), floats([2, 4, 5], -2, 2, 2), floats([5], -1, 1, 3)];

export const fusedCases: CaseTable = {
  _FusedMatMul: [
    ...over((a, b, bias) => tf.fused.matMul({ a, b, bias }), [matrices]),
    ...ACTIVATIONS.flatMap((activation) =>
      over(
        (a, b, bias) => tf.fused.matMul({ a, b, bias, activation, leakyreluAlpha: 0.3 }),
        [matrices],
        constant,
      ),
    ),
    ...over(
      (a, b) => tf.fused.matMul({ a, b, transposeA: true, activation: 'relu' }),
      [[floats([4, 3]), floats([4, 2])]],
      constant,
    ),
  ],
};
