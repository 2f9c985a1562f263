/** @file Tables of numbers with names, such as confusion matrices: as text, as Markdown, as a picture, in metrics.jsonl. */

import { textTable } from '../system/text/index.js';
import type { Images } from './summaryValues.js';

/** Numbers with the names of their rows and columns. */
export interface NamedTable {
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  /** [rows][columns]; NaN for an undefined value. */
  readonly values: readonly (readonly number[])[];
}

/** Most rows or columns that a console shows. */
const MOST_SHOWN = 20;
/** Most cells of a line of metrics.jsonl; of larger tables those that are not 0 stand there. */
const MOST_CELLS = 2500;
/** Pixels of a cell's side, fewer for large tables. */
const CELL_PIXELS = 16;
const MOST_PIXELS = 1024;

const shown = (value: number): string => (Number.isNaN(value) ? '–' : String(Number(value.toPrecision(4))));

/** A table for the console, or its size where it is too large. */
export function tableText({ rows, columns, values }: NamedTable): string {
  if (Math.max(rows.length, columns.length) > MOST_SHOWN)
    return `${rows.length} × ${columns.length} numbers, in metrics.jsonl and TensorBoard`;
  const lines = rows.map((name, i) => [name, ...values[i]!.map(shown)]);
  return textTable(lines, ['', ...columns]);
}

/** A table as Markdown, which TensorBoard shows. */
export function tableMarkdown({ rows, columns, values }: NamedTable): string {
  const cell = (text: string) => text.replace(/[\\|`*_<>[\]]/g, '\\$&').replace(/\s+/g, ' ');
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  const rule = `|---|${columns.map(() => '---:|').join('')}`;
  return [
    line(['', ...columns]),
    rule,
    ...rows.map((name, i) => line([name, ...values[i]!.map(shown)])),
  ].join('\n');
}

/** A table as a picture, a square a cell: white for 0, black for the largest share of its row. */
export function tableImage({ rows, columns, values }: NamedTable): Images {
  const side = Math.max(
    1,
    Math.min(CELL_PIXELS, Math.floor(MOST_PIXELS / Math.max(rows.length, columns.length))),
  );
  const [height, width] = [rows.length * side, columns.length * side];
  const data = new Float32Array(height * width);
  for (const [i, row] of values.entries()) {
    const total = row.reduce((sum, value) => sum + value, 0);
    for (const [j, value] of row.entries())
      for (let y = 0; y < side; y++)
        data.fill(
          1 - (total > 0 ? value / total : 0),
          (i * side + y) * width + j * side,
          (i * side + y) * width + (j + 1) * side,
        );
  }
  return { shape: [1, height, width, 1], data };
}

/** A table in metrics.jsonl: `values` by row, or the `cells` [row, column, value] that are not 0; null for NaN. */
export function tableFields({ rows, columns, values }: NamedTable): object {
  const names = rows.length === columns.length && rows.every((name, i) => name === columns[i]);
  const head = names ? { classes: rows } : { rows, columns };
  if (rows.length * columns.length <= MOST_CELLS) return { ...head, values };
  const cells = values.flatMap((row, i) =>
    row.flatMap((value, j) => (value === 0 ? [] : [[i, j, value] as const])),
  );
  return { ...head, cells };
}
