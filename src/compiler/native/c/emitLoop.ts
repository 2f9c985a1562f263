/** @file C functions of loops: nodes over the same rows and columns, in phases where a row must be complete first. */

import type { DType } from '../../program/tensors.js';
import type { Access, LoopNode } from '../plan/iteration.js';
import { isRecomputed, type LoopValue, LoopValues } from '../plan/loopValues.js';
import type { LoopUnit } from '../plan/units.js';
import type { Buffer, Run, Storage } from '../plan/views.js';
import { C_TYPES, load, registerType, rowOffset, store } from './cNames.js';
import { expressionOf, literal, REDUCERS } from './expressions.js';
import { RowLoop } from './rowLoop.js';

/** Argument of a loop function. */
export type LoopArgument =
  | { readonly kind: 'buffer'; readonly buffer: Buffer; readonly offset: number }
  /** The thread's partial sum over rows. */
  | { readonly kind: 'accumulator'; readonly node: LoopNode };

/** A loop's C function without its name; equal texts are one function. */
export interface LoopFunction {
  /** The text from the parameter list on. */
  readonly text: string;
  readonly arguments: readonly LoopArgument[];
  /** Bytes per thread for values of a row that a later phase reads. */
  readonly rowBytes: number;
}

/** Columns of a row of codes that has a buffer: it stays in the first-level cache. */
const MOST_COLUMNS = 1024;

/** Operations that C compilers fuse: a sum with a product among its terms. */
const SUMS: ReadonlySet<string> = new Set(['Add', 'AddN', 'Sub']);
/** The factors of products. */
const PRODUCTS: Readonly<Record<string, (node: LoopNode) => readonly (Access | number)[]>> = {
  Multiply: ({ reads }) => reads,
  Square: ({ reads: [x] }) => [x!, x!],
};

const scaled = (index: string, stride: number): string =>
  stride === 1 ? index : `(int64_t)${index} * ${stride}`;

class LoopWriter {
  private readonly parameters: string[] = [];
  private readonly arguments: LoopArgument[] = [];
  private readonly keys = new Map<string, number>();
  private readonly values: LoopValues;
  private readonly rows: RowLoop;
  /** Declarations at the start of each row. */
  private rowHead: string[] = [];
  private readonly declared = new Set<string>();
  private rowBytes = 0;
  /** Lines behind the present pass that store its codes. */
  private readonly narrowed: string[] = [];
  private checksIndices = false;

  constructor(
    private readonly unit: LoopUnit,
    private readonly byColumns: boolean,
    private readonly byItem: boolean,
  ) {
    this.values = new LoopValues(unit);
    this.rows = new RowLoop(unit.nodes.flatMap((node) => this.rowsOf(node)));
  }

  write(): LoopFunction {
    const body = this.values.phases.map((values, phase) => this.phase(values, phase)).join('');
    const start = this.byColumns ? this.startColumns() : '';
    const head = this.rowHead.map((line) => `    ${line}\n`).join('');
    const fixed = 'int64_t r0, int64_t r1, int64_t c0, int64_t c1, char *row, int32_t *bad_index';
    const unused = `  (void)c0, (void)c1, (void)row, (void)bad_index;\n`;
    const check = this.checksIndices;
    return {
      text:
        `(${[fixed, ...this.parameters].join(', ')}) {\n${unused}${check ? '  int32_t bad = 0;\n  const int32_t zero = lt_unknown_zero();\n' : ''}${start}` +
        `${this.rows.write(head + body)}${check ? '  if (bad) *bad_index = 1;\n' : ''}}\n`,
      arguments: this.arguments,
      rowBytes: this.rowBytes,
    };
  }

  private parameter(key: string, type: string, argument: LoopArgument): string {
    const known = this.keys.get(key);
    if (known !== undefined) return `p${known}`;
    const index = this.arguments.length;
    this.keys.set(key, index);
    this.arguments.push(argument);
    this.parameters.push(`${type} *p${index}`);
    return `p${index}`;
  }

  private pointer({ buffer, offset }: Access, mode: 'r' | 'w'): string {
    const type = C_TYPES[buffer.storage];
    return this.parameter(`${mode} ${buffer.id} ${offset}`, mode === 'r' ? `const ${type}` : type, {
      kind: 'buffer',
      buffer,
      offset,
    });
  }

  private declare(name: string, declaration: string): string {
    if (!this.declared.has(name)) this.rowHead.push(declaration);
    this.declared.add(name);
    return name;
  }

  /** Pointer to the row of an access. */
  private rowPointer(access: Access, mode: 'r' | 'w'): string {
    const pointer = this.pointer(access, mode);
    const type = C_TYPES[access.buffer.storage];
    const rows = access.rows
      .map(({ size, stride }) => `${size}x${stride}`)
      .join('_')
      .replaceAll('-', 'm');
    const name = `x${pointer.slice(1)}${mode}${rows ? `_${rows}` : ''}`;
    const constant = mode === 'r' ? 'const ' : '';
    return this.declare(name, `${constant}${type} *${name} = ${pointer} + ${this.rows.offset(access.rows)};`);
  }

  /** C expression of an operand, for a node of `phase`. */
  private operand(read: Access | number, dtype: DType, wide: boolean, phase: number): string {
    if (typeof read === 'number') return literal(read, dtype);
    const source = this.values.source(read);
    if (source !== undefined) return this.result(source, phase);
    const row = this.rowPointer(read, 'r');
    const { storage } = read.buffer;
    if (wide && this.isRowOfCodes(read)) return `${this.widened(row, storage)}[j]`;
    if (wide && read.column !== 0) return load(storage, `${row}[${scaled('j', read.column)}]`);
    const name = `e${row.slice(1)}`;
    return this.declare(name, `const ${registerType(dtype)} ${name} = ${load(storage, `${row}[0]`)};`);
  }

  /** Whether a row goes through a buffer of 32 bits, since all of a loop over bytes would have four vectors for each value. */
  private isRowOfCodes({ buffer: { storage }, column }: Access): boolean {
    const isCode = storage === 'int8' || storage === 'uint8';
    return isCode && column === 1 && !this.byColumns && this.unit.columns <= MOST_COLUMNS;
  }

  /** A row of codes as int32, converted before the first pass. */
  private widened(row: string, storage: Storage): string {
    const name = `w${row.slice(1)}`;
    if (!this.declared.has(name)) {
      this.rowBuffer(name, 'int32_t');
      this.rowHead.push(...this.eachColumn(`${name}[j] = ${load(storage, `${row}[j]`)};`));
    }
    return name;
  }

  private eachColumn(line: string): string[] {
    return ['#pragma omp simd', `for (int32_t j = 0; j < ${this.unit.columns}; j++) ${line}`];
  }

  /** Memory of the thread for a row. */
  private rowBuffer(name: string, type: string): string {
    if (!this.declared.has(name)) {
      this.declare(name, `${type} *const ${name} = (${type} *)(row + ${this.rowBytes});`);
      this.rowBytes += Math.ceil(this.unit.columns / 16) * 64;
    }
    return name;
  }

  private result(value: LoopValue, phase: number): string {
    const { node, id } = value;
    if (!node.wide || node.role !== 'map' || value.phase === phase) return `v${id}`;
    return isRecomputed(value) ? this.expression(node, phase) : `b${id}[j]`;
  }

  /**
   * The operands of a sum, of whose products the first is fused with it, and no other one. Compilers would choose one, and in loops of
   * other lengths another one.
   */
  private fused(
    { op, reads, types, wide }: LoopNode,
    args: readonly string[],
    phase: number,
  ): string[] | undefined {
    const products = reads.map((read) => {
      const source = this.values.source(read);
      const isHere = source !== undefined && source.phase === phase && source.node.wide === wide;
      return isHere && source.node.result === 'float32' ? PRODUCTS[source.node.op]?.(source.node) : undefined;
    });
    const [first, second] = products;
    if (!SUMS.has(op) || first === undefined || second === undefined) return undefined;
    const [a, b] = first.map((read) => this.operand(read, types[0]!, wide, phase));
    return [`lt_fma(${a}, ${b}, ${op === 'Sub' ? '-' : ''}${args[1]})`, ...args.slice(2)];
  }

  private expression(node: LoopNode, phase: number): string {
    if (node.op === 'GatherV2') return this.gather(node, phase);
    const args = node.reads.map((read, i) => this.operand(read, node.types[i]!, node.wide, phase));
    const fused = this.fused(node, args, phase);
    if (fused !== undefined) return fused.reduce((sum, term) => `(${sum} + ${term})`);
    // A NaN extremum equals no element: the first NaN is the result.
    if (node.op === 'FirstIndex')
      return `(((${args[0]} == ${args[1]}) | (${args[0]} != ${args[0]})) ? (int32_t)j : INT32_MAX)`;
    const reducer = REDUCERS[node.op];
    return reducer !== undefined
      ? args[0]!
      : expressionOf(node.op)!({
          args,
          types: node.types,
          attrs: node.attrs,
          result: node.result,
          column: node.wide ? 'j' : '0',
        });
  }

  /** Whether a gather reads another table row for each column. */
  private indexMoves({ reads: [, index], wide }: LoopNode): boolean {
    return wide && typeof index === 'object' && index.column !== 0;
  }

  /** Clamps an index before use: a bad one reads the nearest row and is reported after the run. */
  private gatherOffset({ reads: [, index], types, wide, attrs }: LoopNode, phase: number): string {
    this.checksIndices = true;
    const place = `${this.operand(index!, types[1]!, wide, phase)} + zero`;
    return `lt_index(${place}, ${attrs.count}, &bad) * ${attrs.stride}`;
  }

  private gather(node: LoopNode, phase: number): string {
    const table = node.reads[0] as Access;
    const column = node.wide ? scaled('j', table.column) : '0';
    const { storage } = table.buffer;
    if (node.wide && !this.indexMoves(node)) return load(storage, `g${this.values.of(node).id}[${column}]`);
    return load(storage, `${this.rowPointer(table, 'r')}[${column} + ${this.gatherOffset(node, phase)}]`);
  }

  /** Pointer of a gather with one index for all columns, after the index is computed and before the columns. */
  private gatheredRow({ node, id }: LoopValue, phase: number): string {
    if (node.op !== 'GatherV2' || this.indexMoves(node)) return '';
    const table = node.reads[0] as Access;
    const type = C_TYPES[table.buffer.storage];
    return `    const ${type} *const g${id} = ${this.rowPointer(table, 'r')} + ${this.gatherOffset(node, phase)};\n`;
  }

  private phase(values: readonly LoopValue[], phase: number): string {
    const narrow = values.filter(({ node }) => !node.wide).map((value) => this.narrow(value));
    const wide = values.filter(({ node }) => node.wide);
    if (wide.length === 0) return narrow.join('');
    const reductions = wide.filter(({ node }) => node.role === 'row' || node.role === 'all');
    const starts = reductions.map(({ node, id }) => {
      const type = registerType(node.result);
      return `    ${type} v${id} = ${this.reducer(node).start(node.result)};\n`;
    });
    const clauses = reductions.map(
      ({ node, id }) => ` reduction(${this.reducer(node).simd(node.result)}:v${id})`,
    );
    if (wide.some(({ node }) => node.op === 'GatherV2' && this.indexMoves(node)))
      clauses.push(' reduction(|:bad)');
    const rows = wide.map((value) => this.gatheredRow(value, phase));
    const lines = wide.map((value) => this.wide(value)).join('');
    const [from, to] = this.byColumns ? ['c0', 'c1'] : ['0', String(this.unit.columns)];
    const index = this.unit.columns < 2 ** 30 ? 'int32_t' : 'int64_t';
    const loop = `#pragma omp simd${clauses.join('')}\n    for (${index} j = ${from}; j < ${to}; j++) {\n${lines}    }\n`;
    const ends = reductions.map((value) => this.end(value));
    const codes = this.narrowed.splice(0).map((line) => `    ${line}\n`);
    return [...narrow, ...rows, ...starts, loop, ...codes, ...ends].join('');
  }

  private reducer(node: LoopNode) {
    return REDUCERS[node.op === 'FirstIndex' ? 'Min' : node.op]!;
  }

  /** Emits one value per row. */
  private narrow(value: LoopValue): string {
    const { node, id, phase } = value;
    const expression = this.expression(node, phase);
    if (node.role === 'map') {
      return `    const ${registerType(node.result)} v${id} = ${expression};\n${this.stored(value, '    ', '0')}`;
    }
    const sum = this.accumulator(node);
    return `    *${sum} = ${this.reducer(node).step(`*${sum}`, expression, node.result)};\n`;
  }

  private accumulator(node: LoopNode): string {
    const type = registerType(node.result);
    return this.parameter(`a ${this.values.of(node).id}`, type, { kind: 'accumulator', node });
  }

  /** Emits one value per column, within the pass over the row. */
  private wide(value: LoopValue): string {
    const { node, id, phase } = value;
    const expression = this.expression(node, phase);
    const type = registerType(node.result);
    if (node.role === 'map') {
      const keep = value.buffered ? `      ${this.buffer(value)}[j] = v${id};\n` : '';
      return `      const ${type} v${id} = ${expression};\n${keep}${this.stored(value, '      ', scaled('j', node.write.column))}`;
    }
    const step = (sum: string) => this.reducer(node).step(sum, expression, node.result);
    if (node.role !== 'column') return `      v${id} = ${step(`v${id}`)};\n`;
    const element = this.columnElement(node);
    return `      ${element} = ${step(element)};\n`;
  }

  /** Where a sum over rows is accumulated: in the result itself where a thread sees all rows of its columns. */
  private columnElement(node: LoopNode): string {
    if (this.byColumns) return `${this.rowPointer(node.write, 'w')}[${scaled('j', node.write.column)}]`;
    const sums = this.accumulator(node);
    const rows = this.itemRows(node);
    if (rows.length === 0) return `${sums}[j]`;
    const name = `x${sums.slice(1)}a`;
    const type = registerType(node.result);
    return `${this.declare(name, `${type} *${name} = ${sums} + ${this.rows.offset(rows)};`)}[j]`;
  }

  /** Rows of all that a node reads and writes. */
  private rowsOf(node: LoopNode): (readonly Run[])[] {
    const reads = node.reads.flatMap((read) => (typeof read === 'number' ? [] : [read.rows]));
    const isDirect = node.role === 'map' || node.role === 'row' || this.byColumns;
    return [...reads, isDirect ? node.write.rows : this.itemRows(node)];
  }

  /** Rows of a sum's accumulators; none where they are those of a block. */
  private itemRows({ period = this.unit.rows }: LoopNode): Run[] {
    const items = this.unit.rows / period;
    if (!this.byItem || items === 1) return [];
    return [
      { size: items, stride: this.unit.columns },
      { size: period, stride: 0 },
    ];
  }

  private startColumns(): string {
    const { rows } = this.unit;
    const columns = this.values.all.filter(({ node }) => node.role === 'column');
    return columns
      .map(({ node }) => {
        const { write, period = rows } = node;
        const element = `(${this.pointer(write, 'w')} + ${rowOffset(write.rows)})[${scaled('j', write.column)}]`;
        return (
          `  for (int64_t r = 0; r < ${rows}; r += ${period})\n` +
          `    for (int64_t j = c0; j < c1; j++) ${element} = ${this.reducer(node).start(node.result)};\n`
        );
      })
      .join('');
  }

  private buffer({ id, node }: LoopValue): string {
    return this.rowBuffer(`b${id}`, registerType(node.result));
  }

  private stored({ node, id }: LoopValue, indent: string, index: string): string {
    const { buffer } = node.write;
    if (buffer.home.kind === 'register') return '';
    if (node.wide && this.isRowOfCodes(node.write)) {
      const row = this.rowPointer(node.write, 'w');
      const codes = this.rowBuffer(`n${id}`, 'int32_t');
      this.narrowed.push(...this.eachColumn(`${row}[j] = ${store(buffer.storage, `${codes}[j]`)};`));
      return `${indent}${codes}[j] = v${id};\n`;
    }
    return `${indent}${this.rowPointer(node.write, 'w')}[${index}] = ${store(buffer.storage, `v${id}`)};\n`;
  }

  /** Emits the end of a reduction, after the pass over the row. */
  private end(value: LoopValue): string {
    const { node, id } = value;
    if (node.role === 'all') {
      const sum = this.accumulator(node);
      return `    *${sum} = ${this.reducer(node).step(`*${sum}`, `v${id}`, node.result)};\n`;
    }
    const none = node.op === 'FirstIndex' ? `    if (v${id} == INT32_MAX) v${id} = 0;\n` : '';
    return none + this.stored(value, '    ', '0');
  }
}

/**
 * The C function of a loop; with `byColumns`, threads divide its columns instead of its rows.
 *
 * @param byItem whether accumulators are those of the items that rows belong to, instead of those of a block.
 */
export const writeLoop = (unit: LoopUnit, byColumns: boolean, byItem = false): LoopFunction =>
  new LoopWriter(unit, byColumns, byItem).write();
