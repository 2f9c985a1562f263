/** @file Tables as plain text, with aligned columns. */
import type { Paint } from './terminalOutput.js';

const number = /^[-+−±~≈]?\d[\d,.]*(?:e[-+]?\d+)?\s?(?:%|[A-Za-z]{0,5}(?:\/[A-Za-z]+)?)$/;
const notFinite = /^[-+−]?(?:Infinity|NaN)$/;
const noNumber = /^[-–—]?$/;

type Rows = readonly (readonly string[])[];

/** Whether a column is right-aligned: it holds only numbers, with or without units. */
function isRight(rows: Rows, column: number): boolean {
  const cells = rows.map((row) => row[column] ?? '');
  const isNumber = (cell: string) => number.test(cell) || notFinite.test(cell);
  return cells.some(isNumber) && cells.every((cell) => isNumber(cell) || noNumber.test(cell));
}

/** Layout of a table's columns. */
interface Columns {
  readonly widths: readonly number[];
  readonly right: readonly boolean[];
}

/** The layout that fits all rows. */
export function columnsOf(rows: Rows, header: readonly string[] | undefined): Columns {
  const all = header === undefined ? rows : [header, ...rows];
  const indices = [...Array(Math.max(0, ...all.map((row) => row.length))).keys()];
  return {
    widths: indices.map((column) => Math.max(...all.map((row) => (row[column] ?? '').length))),
    right: indices.map((column) => isRight(rows, column)),
  };
}

/** A row with its cells padded to the columns. */
export function padded(row: readonly string[], { widths, right }: Columns): string[] {
  return widths.map((width, column) => {
    const cell = row[column] ?? '';
    return right[column] ? cell.padStart(width) : cell.padEnd(width);
  });
}

/**
 * A table for terminals: columns two spaces apart, numbers right-aligned, no trailing spaces. `paint` may colour a
 * finished line, the header's (`undefined`) or that of a row.
 */
export function textTable(
  rows: Rows,
  header?: readonly string[],
  paint: (line: string, row: number | undefined) => string = (line) => line,
): string {
  const columns = columnsOf(rows, header);
  const line = (row: readonly string[]) => padded(row, columns).join('  ').trimEnd();
  const lines = rows.map((row, i) => paint(line(row), i));
  return [...(header === undefined ? [] : [paint(line(header), undefined)]), ...lines].join('\n');
}

/** A table for terminals with a bold header. */
export function headedTable(rows: Rows, header: readonly string[], paint: Paint): string {
  return textTable(rows, header, (line, row) => (row === undefined ? paint('bold', line) : line));
}
