/** @file C calls of the runtime for products by weights of few bits. */
import type { CallUnit } from '../plan/units.js';
import { storageBytes, type View } from '../plan/views.js';
import type { Needs } from './cFunctions.js';
import { typeName } from './cNames.js';

/** Rows by the channels of a weight; threads divide these. */
export function quantizedProduct(
  { inputs, outputs, attrs }: CallUnit,
  pointer: (view: View) => string,
  needs: Needs,
): string[] {
  const [x, codes, scales] = inputs as [View, View, View];
  const out = outputs[0]!;
  const [rows, depth] = x.shape as [number, number];
  const { bits, first, channels, rowBits = 0 } = attrs as Readonly<Record<string, number>>;
  const bytes = storageBytes(codes.buffer.storage);
  const numbers = [bits, typeName(scales.buffer), bytes, rowBits, depth, scales.shape[1]].join(', ');
  needs.work.add(`lt_quantized_scratch_bytes(&(const lt_quantized){NULL, NULL, ${numbers}}, ${rows})`);
  const matrix = `(lt_matrix){${pointer(x)}, ${typeName(x.buffer)}, ${x.strides[0]!}, 1}`;
  return [
    `const lt_quantized weights = {${pointer(codes)}, ${pointer(scales)}, ${numbers}};`,
    `lt_quantized_product(&weights, ${first}, ${channels}, ${matrix}, ${rows}, ${pointer(out)}, ${out.strides[0]!}, frame->work, frame->thread, frame->threads);`,
  ];
}
