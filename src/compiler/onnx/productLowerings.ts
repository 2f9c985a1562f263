/** @file ONNX lowerings of matrix products. */
import type { Node } from '../program/ir.js';
import { operandStorage, precisionOf } from '../program/precision.js';
import { type Lowering, MICROSOFT, type OnnxBuilder } from './builder.js';

/** ONNX's own product, of transposed operands, with the factor behind it. */
const plainMatmul: Lowering = ({ attrs, inputs }, names, b) => {
  const transposed = names.map((name, i) => {
    if (!(i === 0 ? attrs.transposeA : attrs.transposeB)) return name;
    const axes = inputs[i]!.shape.map((_, axis) => axis);
    return b.emit('Transpose', [name], {
      attrs: { perm: [...axes.slice(0, -2), axes.at(-1)!, axes.at(-2)!] },
    });
  });
  const product = b.emit('MatMul', transposed);
  return [attrs.alpha === 1 ? product : b.emit('Mul', [product, b.scalar(attrs.alpha as number)])];
};

/** ONNX multiplies in float32; operands are rounded first. */
function operands({ attrs }: Node, names: readonly string[], b: OnnxBuilder): readonly string[] {
  const storage = operandStorage(precisionOf(attrs));
  return storage === undefined ? names : names.map((name) => b.rounded(name, storage));
}

export const matmul: Lowering = (node, names, b) => {
  const { transposeA, transposeB, alpha } = node.attrs;
  const inputs = operands(node, names, b);
  if (!transposeA && !transposeB && alpha === 1) return [b.emit('MatMul', inputs)];
  // FusedMatMul is ONNX Runtime's, and requires float32. Integers never have a factor.
  if (b.isPortable || node.outputs[0]!.dtype !== 'float32') return plainMatmul(node, inputs, b);
  const fused = { transA: Number(transposeA), transB: Number(transposeB), alpha: { float: alpha as number } };
  return [b.emit('FusedMatMul', inputs, { domain: MICROSOFT, attrs: fused })];
};

/** ONNX's Gemm starts from its third operand. */
export const matMulAdd: Lowering = (node, names, b) => {
  const { transposeA, transposeB, alpha } = node.attrs;
  const inputs = [...operands(node, names.slice(0, 2), b), names[2]!];
  return [
    b.emit('Gemm', inputs, {
      attrs: { transA: Number(transposeA), transB: Number(transposeB), alpha: { float: alpha as number } },
    }),
  ];
};
