/** @file Text form of units: loops node by node, products and calls with their operands' views. */

import { attrsText, withScopeText } from '../../program/graphText.js';
import { collectiveOf } from '../plan/collectives.js';
import type { Access, LoopNode } from '../plan/iteration.js';
import type { Matrix, ProductUnit } from '../plan/products.js';
import type { CallUnit, LoopUnit, Unit } from '../plan/units.js';
import { type Buffer, isContiguous, shortStorage, type View } from '../plan/views.js';

/** `in0`, `out1` and `const2` belong to the caller, `%3` to the program. */
export function bufferName({ id, home }: Buffer): string {
  const outside: Partial<Record<typeof home.kind, string>> = {
    input: 'in',
    output: 'out',
    constant: 'const',
  };
  const prefix = outside[home.kind];
  return prefix === undefined ? `%${id}` : `${prefix}${(home as { readonly index: number }).index}`;
}

const at = (buffer: Buffer, offset: number): string =>
  `${bufferName(buffer)}${offset === 0 ? '' : `+${offset}`}${shortStorage(buffer.storage)}`;

/** `%3+64:(192,1)`; strides are omitted where elements are contiguous in row-major order. */
const viewText = (view: View): string =>
  `${at(view.buffer, view.offset)}[${view.shape.join(',')}]${isContiguous(view) ? '' : `:(${view.strides.join(',')})`}`;

const matrixText = ({ buffer, offset, rs, cs }: Matrix, rows: number, columns: number): string =>
  `${at(buffer, offset)}[${rows},${columns}]${rs === columns && cs === 1 ? '' : `:(${rs},${cs})`}`;

/** A loop's access; strides are omitted where it walks contiguous whole rows. */
function accessText({ buffer, offset, rows, column }: Access, columns: number): string {
  const isPlain =
    rows.length <= 1 && (rows[0]?.stride ?? columns) === columns && (column === 1 || columns <= 1);
  const strides = rows.map(({ size, stride }) => `${size}x${stride}`).join(' ');
  return `${at(buffer, offset)}${isPlain ? '' : `:(${[strides, column].filter((x) => x !== '').join('; ')})`}`;
}

const ROLES: Readonly<Record<LoopNode['role'], string>> = {
  map: '',
  row: ' over each row',
  column: ' over all rows',
  all: ' over everything',
};

function nodeText(node: LoopNode, unit: LoopUnit): string {
  const { op, role, attrs, scope, wide, reads, write, period = unit.rows } = node;
  const columns = wide ? unit.columns : 1;
  const operands = reads.map((read) => (typeof read === 'number' ? String(read) : accessText(read, columns)));
  // Sums over all rows are stored in one row, whichever row is added.
  const isWhole = role === 'all' || (role === 'column' && period === unit.rows);
  const place = isWhole ? { ...write, rows: [] } : write;
  const over = role === 'column' && !isWhole ? ` over ${period} rows of each item` : ROLES[role];
  const target = accessText(place, role === 'map' || role === 'column' ? columns : 1);
  const stored = write.buffer.home.kind === 'register' ? '' : ' (stored)';
  const { axes: _, keepDims: __, ...rest } = attrs;
  return withScopeText(`${target}${stored} = ${op}(${operands.join(', ')})${over}${attrsText(rest)}`, scope);
}

function productText({ m, n, k, a, b, c, alpha, sum, precision, batch, scope }: ProductUnit): string {
  const items = batch.length === 0 ? '' : `${batch.join(' x ')} times `;
  const factor = alpha === 1 ? '' : ` * ${alpha}`;
  const text = `${items}${matrixText(c, m, n)} ${sum ? '+=' : '='} ${matrixText(a, m, k)} x ${matrixText(b, k, n)}${factor}`;
  return withScopeText(`product, ${precision}: ${text}`, scope);
}

function callText(unit: CallUnit): string {
  const { form, inputs, outputs, attrs, scope } = unit;
  const collective = collectiveOf(unit);
  const exchanged =
    collective === undefined ? '' : `, ${collective.bytes} bytes among ${collective.members} ranks`;
  const text = `${outputs.map(viewText).join(', ')} = ${form.name}(${inputs.map(viewText).join(', ')})`;
  return withScopeText(`${text}${attrsText(attrs)}${exchanged}`, scope);
}

/** A unit on one line, followed by the nodes of a loop. */
export function unitLines(unit: Unit): string[] {
  if (unit.kind === 'product') return [productText(unit)];
  if (unit.kind !== 'loop') return [callText(unit)];
  const head = `loop, ${unit.rows} rows${unit.columns === 0 ? '' : ` of ${unit.columns}`}:`;
  return [head, ...unit.nodes.map((node) => `  ${nodeText(node, unit)}`)];
}

/** Prints all units, numbered. */
export function unitsText(units: readonly Unit[]): string {
  const lines = units.flatMap((unit, i) =>
    unitLines(unit).map((line, row) => (row === 0 ? `${i}. ${line}` : `   ${line}`)),
  );
  return `${lines.join('\n')}\n`;
}
