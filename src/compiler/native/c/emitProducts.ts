/** @file C of products that are separate steps: packing, and multiplying packed operands. */

import { PRECISION_NAMES } from '../../program/precision.js';
import { type Matrix, operandKey, type ProductUnit, type Side, sumPartsOf } from '../plan/products.js';
import { storageBytes } from '../plan/views.js';
import type { Needs } from './cFunctions.js';
import { byteOffset, precisionName, typeName } from './cNames.js';
import { literal } from './expressions.js';
import { type Pointers, placeOf } from './pointers.js';

/** Context for writing a step's products. */
export interface ProductContext {
  readonly pointers: Pointers;
  readonly needs: Needs;
  readonly packingIndex: (unit: ProductUnit) => number;
  /** Whether a product's packed right operand persists between runs. */
  readonly isKept: (unit: ProductUnit) => boolean;
}

/** LT_BLOCK_ROWS of luthier.h: up to this many rows, the next product can reuse the packed left operand. */
const MAX_SHARED_ROWS = 128;

/** Whether blocks of this many rows leave the left operand packed for the next product. */
export const sharesLeft = (x: ProductUnit, y: ProductUnit, rows: number): boolean =>
  rows <= MAX_SHARED_ROWS &&
  x.a.buffer === y.a.buffer &&
  x.a.offset === y.a.offset &&
  x.a.rs === y.a.rs &&
  x.a.cs === y.a.cs &&
  x.m === y.m &&
  x.k === y.k &&
  x.precision === y.precision;

/** Pointer to a product's packed right operand. */
export const packedOperand = (unit: ProductUnit, { pointers, packingIndex }: ProductContext): string =>
  pointers.use({ space: 'packed', index: packingIndex(unit), offset: 0 });

const matrix = ({ buffer, offset, rs, cs }: Matrix, { pointers }: ProductContext): string =>
  `(lt_matrix){${pointers.use(placeOf(buffer, offset))}, ${typeName(buffer)}, ${rs}, ${cs}}`;

/** The runtime's constant for the precision of a product by a packed operand. */
export const packedPrecision = (unit: ProductUnit, { isKept }: Pick<ProductContext, 'isKept'>): string =>
  precisionName(unit.precision, isKept(unit));

/** The factor of a product, and whether it adds to its result. */
export const scaleOf = ({ alpha, sum }: ProductUnit): string =>
  `${literal(alpha, 'float32')}, ${sum ? 1 : 0}`;

/** Packs a right operand. */
export function writePacking(unit: ProductUnit, context: ProductContext): string {
  const { b, k, n } = unit;
  const pack = context.isKept(unit) ? 'lt_pack_kept' : 'lt_pack_share';
  return `${pack}(${packedPrecision(unit, context)}, ${packedOperand(unit, context)}, ${matrix(b, context)}, ${k}, ${n}, frame);`;
}

/** A product of few rows; threads divide its columns. */
export function writeNarrow(unit: ProductUnit, context: ProductContext): string {
  const { m, n, k, a, c } = unit;
  const p = packedPrecision(unit, context);
  context.needs.work.add(`lt_gemm_scratch_bytes(${p}, ${m}, ${k})`);
  const panels = `lt_panels(${p}, ${n})`;
  return (
    `lt_gemm(${p}, ${m}, ${n}, ${k}, ${matrix(a, context)}, ${packedOperand(unit, context)}, LT_FROM(${panels}), LT_TO(${panels}), ` +
    `${context.pointers.use(placeOf(c.buffer, c.offset))}, ${typeName(c.buffer)}, ${c.rs}, ${scaleOf(unit)}, frame->work);`
  );
}

/** A product's operand in memory, and its packed copy in the workspace. */
interface WorkspaceOperand {
  /** NULL where another product packs the same operand. */
  readonly data: string;
  readonly packed: string;
}

/** Workspace layout of several products' operands, one after another; shared operands are packed once. */
class Workspace {
  readonly lines: string[];
  readonly sizes: string[] = [];
  private readonly names = new Map<string, string>();

  constructor(private readonly pointers: Pointers) {
    this.lines = [`char *free = ${pointers.use({ space: 'workspace', index: 0, offset: 0 })};`];
  }

  /** An operand of product `i`. */
  operand(side: Side, unit: ProductUnit, i: number): WorkspaceOperand {
    const { buffer, offset } = unit[side];
    const key = `${operandKey(side, unit)} ${unit.c.buffer.storage}`;
    const known = this.names.get(key);
    if (known !== undefined) return { data: 'NULL', packed: known };
    const name = `${side}${i}`;
    this.names.set(key, name);
    const p = precisionName(unit.precision);
    const bytes =
      side === 'a'
        ? `lt_slabs_left_bytes(${p}, ${typeName(unit.c.buffer)}, ${unit.m}, ${unit.k})`
        : `lt_slabs_bytes(${p}, ${typeName(unit.c.buffer)}, ${unit.k}, ${unit.n})`;
    this.take(name, bytes);
    return { data: this.pointers.use(placeOf(buffer, offset)), packed: name };
  }

  /** The sums of a product's parts. */
  sums(i: number, bytes: string): string {
    this.take(`sums${i}`, bytes);
    return `sums${i}`;
  }

  private take(name: string, bytes: string): void {
    this.sizes.push(`lt_align(${bytes})`);
    this.lines.push(`char *const ${name} = free;`, `free += lt_align(${bytes});`);
  }
}

/** A row of the list of products: one that is packed slab by slab, or one in parts. */
function productRow(unit: ProductUnit, i: number, workspace: Workspace, { pointers, needs }: ProductContext) {
  const { m, n, k, a, b, c } = unit;
  const parts = sumPartsOf(unit);
  const shape = `${precisionName(unit.precision)}, ${m}, ${n}, ${k}, ${parts}`;
  needs.work.add(
    parts > 0
      ? `lt_parts_scratch_bytes(${shape})`
      : `lt_products_scratch_bytes(${precisionName(unit.precision)}, ${typeName(c.buffer)}, ${k})`,
  );
  const alone = ({ buffer, offset }: Matrix, packed: string): WorkspaceOperand => ({
    data: pointers.use(placeOf(buffer, offset)),
    packed,
  });
  const [left, right] =
    parts > 0
      ? [alone(a, workspace.sums(i, `lt_parts_bytes(${shape})`)), alone(b, 'NULL')]
      : [workspace.operand('a', unit, i), workspace.operand('b', unit, i)];
  const operand = ({ buffer, rs, cs }: Matrix, { data }: WorkspaceOperand): string =>
    `{${data}, ${typeName(buffer)}, ${rs}, ${cs}}`;
  return (
    `  {${m}, ${n}, ${k}, ${operand(a, left)}, ${operand(b, right)}, ${pointers.use(placeOf(c.buffer, c.offset))}, ` +
    `${typeName(c.buffer)}, ${c.rs}, ${scaleOf(unit)}, ${left.packed}, ${right.packed}, ${parts}},`
  );
}

/** Products that pack both operands into the workspace, and those in parts. */
export function writeProducts(products: readonly ProductUnit[], context: ProductContext): string[] {
  const workspace = new Workspace(context.pointers);
  const { lines } = workspace;
  for (const precision of PRECISION_NAMES) {
    const group = products.filter((unit) => unit.precision === precision);
    if (group.length === 0) continue;
    const rows = group.map((unit) => productRow(unit, products.indexOf(unit), workspace, context));
    lines.push(
      `const lt_product ${precision}[] = {`,
      ...rows,
      '};',
      `lt_products(${precisionName(precision)}, ${precision}, ${group.length}, frame->work, frame->thread, frame->threads);`,
    );
  }
  context.needs.workspace.add(workspace.sizes.join(' + '));
  return [...lines, '(void)free;'];
}

/** Threads divide the items of the batch, and blocks of their rows; each packs the right operands of its items. */
export function writeBatch(unit: ProductUnit, { pointers, needs }: ProductContext): string[] {
  const { m, n, k, a, b, c, batch, batchStrides } = unit;
  const p = precisionName(unit.precision);
  const items = batch.reduce((size, dim) => size * dim, 1);
  const block = 64;
  const blocks = Math.ceil(m / block);
  const at = (x: Matrix, strides: readonly number[]): string =>
    `(char *)${pointers.use(placeOf(x.buffer, x.offset))} + ${byteOffset('item', batch, strides, x.buffer)}`;
  const packedBytes = `lt_align(lt_packed_bytes(${p}, ${k}, ${n}))`;
  needs.work.add(`${packedBytes} + lt_gemm_scratch_bytes(${p}, ${block}, ${k})`);
  return [
    'int64_t packed = -1;',
    `char *const scratch = frame->work + ${packedBytes};`,
    `LT_EACH(task, ${items * blocks}) {`,
    `  const int64_t item = task / ${blocks}, r0 = task % ${blocks} * ${block}, rows = ${m} - r0 < ${block} ? ${m} - r0 : ${block};`,
    `  if (item != packed) lt_pack_panels(${p}, frame->work, (lt_matrix){${at(b, batchStrides[1])}, ${typeName(b.buffer)}, ${b.rs}, ${b.cs}}, ${k}, ${n}, 0, lt_panels(${p}, ${n}));`,
    '  packed = item;',
    `  const lt_matrix left = {${at(a, batchStrides[0])} + r0 * ${a.rs * storageBytes(a.buffer.storage)}, ${typeName(a.buffer)}, ${a.rs}, ${a.cs}};`,
    `  char *const result = ${at(c, batchStrides[2])} + r0 * ${c.rs * storageBytes(c.buffer.storage)};`,
    `  lt_gemm(${p}, rows, ${n}, ${k}, left, frame->work, 0, lt_panels(${p}, ${n}), result, ${typeName(c.buffer)}, ${c.rs}, ${scaleOf(unit)}, scratch);`,
    '}',
  ];
}
