/** @file Matrix multiplication. */
import { matmul } from '../onnx/productLowerings.js';
import { precisionAttr } from '../program/precision.js';
import { formatSpec, sizeOf, type TensorSpec } from '../program/tensors.js';
import { broadcastShapes } from './broadcasting.js';
import { lettered } from './factors.js';
import { expects, expectsOneDtype, NUMBERS, type OperationTable, spec } from './operation.js';

export const matmulRules: OperationTable = {
  /** alpha * op(a) op(b) over the last two axes; leading axes broadcast. */
  BatchMatMul: {
    inputs: ['a', 'b'],
    call: 'matMul',
    isProduct: true,
    ofEmpty: () => 0,
    attrs: (raw, [a]) => ({
      transposeA: Boolean(raw.transposeA),
      transposeB: Boolean(raw.transposeB),
      alpha: raw.alpha ?? 1,
      ...(a!.dtype === 'float32' && precisionAttr(raw)),
    }),
    infer: ([a, b], { transposeA, transposeB }) => {
      expectsOneDtype([a!, b!], NUMBERS);
      expects(a!.shape.length >= 2 && b!.shape.length >= 2, 'two tensors of rank 2 or more', [a, b]);
      const rows = a!.shape.at(transposeA ? -1 : -2)!;
      const inner = a!.shape.at(transposeA ? -2 : -1)!;
      const innerB = b!.shape.at(transposeB ? -1 : -2)!;
      const columns = b!.shape.at(transposeB ? -2 : -1)!;
      const told = (x: TensorSpec, transpose: unknown) => `${formatSpec(x)}${transpose ? ' transposed' : ''}`;
      expects(
        inner === innerB,
        'inner dimensions that are equal',
        `${inner} and ${innerB} of ${told(a!, transposeA)} and ${told(b!, transposeB)}`,
      );
      const batch = broadcastShapes(a!.shape.slice(0, -2), b!.shape.slice(0, -2));
      return [spec([...batch, rows, columns], a!.dtype)];
    },
    flops: ([a], [out], { transposeA }) => 2 * sizeOf(out!.shape) * a!.shape.at(transposeA ? -2 : -1)!,
    factors: (inputs, outputs, { transposeA, transposeB }) => {
      const batch = ({ shape }: TensorSpec) => shape.slice(2).map((_, i) => `${shape.length - i}`);
      const [a, b] = inputs as [TensorSpec, TensorSpec];
      const left = [...batch(a), ...(transposeA ? 'km' : 'mk')];
      const right = [...batch(b), ...(transposeB ? 'nk' : 'kn')];
      return lettered([left, right], [[...batch(outputs[0]!), 'm', 'n']], { inputs, outputs });
    },
    onnx: matmul,
    device: { kind: 'product' },
  },
};
