/** @file C functions of steps: each thread's share of a chain, loop, product or runtime call. */

import { type Blocks, blocksOf, loopBlocksOf, partitionOf } from '../plan/blocks.js';
import type { LoopNode } from '../plan/iteration.js';
import type { Matrix, ProductUnit } from '../plan/products.js';
import type { Chain } from '../plan/stages.js';
import { rowLength } from '../plan/storage.js';
import type { Accumulator, Plan, Step } from '../plan/threadSteps.js';
import type { CallUnit, LoopUnit } from '../plan/units.js';
import { type Buffer, storageBytes, type View } from '../plan/views.js';
import type { Functions, Needs } from './cFunctions.js';
import { C_TYPES, rowOffset, store, typeName } from './cNames.js';
import { CALLS } from './emitCalls.js';
import { type LoopArgument, writeLoop } from './emitLoop.js';
import {
  type ProductContext,
  packedOperand,
  packedPrecision,
  scaleOf,
  sharesLeft,
  writeBatch,
  writeNarrow,
  writePacking,
  writeProducts,
} from './emitProducts.js';
import { REDUCERS } from './expressions.js';
import { Pointers, placeOf } from './pointers.js';

/** A step's function, by name, and the pointers that it is called with. */
export interface StepText {
  readonly name: string;
  readonly pointers: Pointers;
}

const PARAMETERS = '(void *const *p, lt_frame *frame)';

/** The fewest elements of a loop that threads take over from each other: of fewer, that would cost as much. */
const LEAST_SHARED = 2 ** 16;

/** Writes the function of one step. */
export class StepWriter {
  private readonly pointers: Pointers;
  private readonly products: ProductContext;
  private readonly lines: string[] = [];
  /** The chain whose blocks are being written. */
  private chain: Chain | null = null;
  /** The partial sums of each block. */
  private accumulators: readonly Accumulator[] = [];

  constructor(
    private readonly context: {
      readonly loops: Functions;
      readonly steps: Functions;
      readonly needs: Needs;
      readonly plan: Plan;
      readonly packingIndex: (unit: ProductUnit) => number;
      readonly isKept: (unit: ProductUnit) => boolean;
    },
  ) {
    const { needs, packingIndex, isKept, plan } = context;
    this.pointers = new Pointers(plan.loops.map(({ loop }) => loop));
    this.products = { pointers: this.pointers, needs, packingIndex, isKept };
  }

  write(step: Step): StepText {
    this.accumulators = step.accumulators ?? [];
    switch (step.kind) {
      case 'chain':
        this.writeChain(step.chain);
        break;
      case 'loop':
        this.writeLoopStep(step.stage.units[0] as LoopUnit);
        break;
      case 'pack':
        this.lines.push(...step.packings.map(({ unit }) => writePacking(unit, this.products)));
        break;
      case 'products':
        this.lines.push(...writeProducts(step.products, this.products));
        break;
      case 'narrow':
        this.lines.push(writeNarrow(step.stage.units[0] as ProductUnit, this.products));
        break;
      case 'batch':
        this.lines.push(...writeBatch(step.stage.units[0] as ProductUnit, this.products));
        break;
      case 'call':
        this.writeCall(step.stage.units[0] as CallUnit);
        break;
      case 'finish':
        for (const accumulator of this.accumulators) this.writeFinish(accumulator);
    }
    if (step.kind !== 'chain') this.lines.push('LT_MARK(0);');
    const text = `${PARAMETERS} {\n  (void)p, (void)frame;\n${this.lines.map((line) => `  ${line}\n`).join('')}}\n`;
    return { name: this.context.steps.name(text), pointers: this.pointers };
  }

  private writeCall(unit: CallUnit): void {
    const pointer = (view: View): string => this.viewPointer(view);
    const workspace = (): string => this.pointers.use({ space: 'workspace', index: 0, offset: 0 });
    this.lines.push(...CALLS[unit.op]!(unit, pointer, this.context.needs, workspace));
  }

  private viewPointer({ buffer, offset }: View): string {
    return this.pointers.use(placeOf(buffer, offset));
  }

  /** Pointer to a buffer's element; in scratch memory, as if row 0 of the chain stood there. */
  private element(buffer: Buffer, offset: number, constant: boolean): string {
    const type = `${constant ? 'const ' : ''}${C_TYPES[buffer.storage]} *`;
    if (buffer.home.kind !== 'scratch') return `(${type})${this.pointers.use(placeOf(buffer, offset))}`;
    const length = rowLength(buffer, this.chain!)!;
    const bytes = buffer.home.offset + offset * storageBytes(buffer.storage);
    return `(${type})(frame->scratch + ${bytes}) - r0 * ${length}`;
  }

  /** A sum's partial sum of the present block. */
  private partialSum(node: LoopNode): string {
    const { buffer, size, blocks } = this.accumulators.find((accumulator) => accumulator.node === node)!;
    return `${this.element(buffer, 0, false)}${blocks === null ? '' : ` + block * ${size}`}`;
  }

  /** Begins a loop over a thread's blocks, from row, or column, r0 to before r1 each. */
  private startBlocks({ size, count, span }: Blocks, total: number): void {
    const parts = Math.ceil(span / size);
    const isEven = span % size === 0 || span === total;
    const from = isEven ? `block * ${size}` : `block / ${parts} * ${span} + block % ${parts} * ${size}`;
    const end = isEven ? total : `(block / ${parts} + 1) * ${span}`;
    this.lines.push(
      `LT_EACH(block, ${count}) {`,
      `  const int64_t r0 = ${from}, r1 = r0 + ${size} < ${end} ? r0 + ${size} : ${end};`,
    );
    for (const { node, size: columns, items, blocks } of this.accumulators) {
      const type = node.result === 'float32' ? 'f32' : 'i32';
      const start = REDUCERS[node.op]!.start(node.result);
      const period = total / items;
      const [first, some] = [` + r0 / ${period} * ${columns}`, `(r1 - r0) / ${period} * ${columns}`];
      const [at, elements] = blocks === null ? [first, some] : ['', columns];
      this.lines.push(`  lt_fill_${type}(${this.partialSum(node)}${at}, ${elements}, ${start});`);
    }
  }

  private loopArgument(argument: LoopArgument): string {
    if (argument.kind === 'buffer') return this.element(argument.buffer, argument.offset, false);
    return this.partialSum(argument.node);
  }

  private callLoop(unit: LoopUnit, byColumns: boolean, rows: string, columns: string): string {
    const { loops, needs } = this.context;
    const byItem = this.accumulators.some((sums) => sums.unit === unit && sums.blocks === null);
    const { text, arguments: wanted, rowBytes } = writeLoop(unit, byColumns, byItem);
    needs.rowBytes = Math.max(needs.rowBytes, rowBytes);
    const pointers = wanted.map((argument) => this.loopArgument(argument));
    return `${loops.name(text)}(${[rows, columns, 'frame->row', '&frame->bad_index', ...pointers].join(', ')});`;
  }

  private writeLoopStep(unit: LoopUnit): void {
    const { rows, columns } = unit;
    const byColumns = partitionOf(unit) === 'columns';
    const call = (share: string): string =>
      byColumns
        ? this.callLoop(unit, true, `0, ${rows}`, share)
        : this.callLoop(unit, false, share, `0, ${columns}`);
    if (this.accumulators.length > 0) {
      this.startBlocks(loopBlocksOf(unit), byColumns ? columns : rows);
      this.lines.push(`  ${call('r0, r1')}`, '}');
    } else if (byColumns) {
      // Threads divide columns in whole cache lines.
      const lines = Math.ceil(columns / 16);
      const last = `(LT_TO(${lines}) * 16 < ${columns} ? LT_TO(${lines}) * 16 : ${columns})`;
      this.lines.push(call(`LT_FROM(${lines}) * 16, ${last}`));
    } else if (rows * columns < LEAST_SHARED) this.lines.push(call(`LT_FROM(${rows}), LT_TO(${rows})`));
    else
      this.lines.push(
        'LT_EACH(share, LT_SHARES) {',
        `  const int64_t from = LT_SHARE(share, ${rows}), to = LT_SHARE(share + 1, ${rows});`,
        `  if (from < to) ${call('from, to')}`,
        '}',
      );
  }

  private writeChain(chain: Chain): void {
    this.chain = chain;
    const blocks = blocksOf(chain);
    this.startBlocks(blocks, chain.rows);
    for (const [part, unit] of chain.units.entries()) {
      const multiple = (unit.kind === 'product' ? unit.m : unit.rows) / chain.rows;
      const times = multiple === 1 ? '' : ` * ${multiple}`;
      this.lines.push(
        `  ${
          unit.kind === 'loop'
            ? this.callLoop(unit, false, `r0${times}, r1${times}`, `0, ${unit.columns}`)
            : this.rowProduct(unit, times, blocks.size * multiple, chain.units[part - 1])
        }`,
        `  LT_MARK(${part});`,
      );
    }
    this.lines.push('}');
    this.chain = null;
  }

  /** A matrix whose first row is the block's. */
  private blockMatrix({ buffer, offset, rs }: Matrix, times: string, constant: boolean): string {
    const start = this.element(buffer, offset, constant);
    return `${start} + r0${times} * ${rs}`;
  }

  /** A product of a block's rows; the product `before` may have packed the same left operand. */
  private rowProduct(
    unit: ProductUnit,
    times: string,
    rows: number,
    before: LoopUnit | ProductUnit | undefined,
  ): string {
    const { m: _, n, k, a, c } = unit;
    const p = packedPrecision(unit, this.products);
    this.context.needs.work.add(`lt_gemm_scratch_bytes(${p}, ${rows}, ${k})`);
    const isPacked = before?.kind === 'product' && sharesLeft(before, unit, rows);
    const data = isPacked ? 'NULL' : this.blockMatrix(a, times, true);
    const left = `(lt_matrix){${data}, ${typeName(a.buffer)}, ${a.rs}, ${a.cs}}`;
    return (
      `lt_gemm(${p}, (r1 - r0)${times}, ${n}, ${k}, ${left}, ${packedOperand(unit, this.products)}, 0, lt_panels(${p}, ${n}), ` +
      `${this.blockMatrix(c, times, false)}, ${typeName(c.buffer)}, ${c.rs}, ${scaleOf(unit)}, frame->work);`
    );
  }

  /**
   * Adds the blocks' partial sums in their order and stores the result. A program with dozens of sums has few kinds, each
   * one function.
   */
  private writeFinish({ node, size, items, blocks, buffer }: Accumulator): void {
    const type = node.result === 'float32' ? 'float' : 'int32_t';
    const { write } = node;
    const target = this.pointers.useAlone(placeOf(write.buffer, write.offset));
    const stored = C_TYPES[write.buffer.storage];
    const itemOffset = items === 1 ? '0' : rowOffset(write.rows.slice(0, -1), 'item');
    const text = [
      `(const ${type} *sums, ${stored} *to, int64_t items, int64_t size, int64_t blocks, const lt_frame *frame) {`,
      '  const int64_t from = LT_FROM(items * size), last = LT_TO(items * size);',
      '  for (int64_t item = from / size; item * size < last; item++) {',
      '    const int64_t begin = item * size < from ? from - item * size : 0;',
      '    const int64_t end = last - item * size < size ? last - item * size : size;',
      `    const ${type} *of = sums + item * blocks * size;`,
      `    ${stored} *row = to + ${itemOffset};`,
      '#pragma omp simd',
      '    for (int64_t j = begin; j < end; j++) {',
      `      ${type} sum = of[j];`,
      `      for (int64_t i = 1; i < blocks; i++) sum = ${REDUCERS[node.op]!.step('sum', 'of[i * size + j]', node.result)};`,
      `      row[j * ${write.column}] = ${store(write.buffer.storage, 'sum')};`,
      '    }',
      '  }',
      '}\n',
    ].join('\n');
    const args = [this.element(buffer, 0, true), `(${stored} *)${target}`, items, size, blocks ?? 1, 'frame'];
    this.lines.push(`${this.context.loops.name(text)}(${args.join(', ')});`);
  }
}
