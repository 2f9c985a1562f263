/** @file The guide's page of special values, written from the table. */
import { SECTIONS, type SpecialRow, type Values } from './table.js';

/** Numbers as the page has them. */
function text(x: number): string {
  if (Number.isNaN(x)) return 'NaN';
  const size = Math.abs(x);
  const digits =
    size === Number.POSITIVE_INFINITY
      ? '∞'
      : size === 2 ** 31
        ? '2³¹'
        : size === 2 ** 40
          ? '2⁴⁰'
          : short(size);
  return x < 0 || Object.is(x, -0) ? `−${digits}` : digits;
}

const short = (x: number): string =>
  x === 2 ** 31 - 1
    ? '(2³¹−1)'
    : x === 0 || (Number.isInteger(x) && x < 1e10)
      ? String(x)
      : (x >= 1e10 ? x.toExponential() : String(Number(x.toPrecision(4)))).replace('e+', 'e');

const line = ([operands, result]: Values): string => `${operands.map(text).join(', ')} → ${text(result)}`;

function row({ call, values }: SpecialRow): string {
  const odd = values.filter(([, , tfjs]) => tfjs !== undefined);
  const differs = odd.map(([operands, , tfjs]) => `${operands.map(text).join(', ')} → ${text(tfjs!)}`);
  return `| \`${call}\` | ${values.map(line).join('; ')} | ${differs.join('; ')} |`;
}

const HEAD = `# Special values

This page lists the results of each operation for NaN, infinities, −0, overflow, ties and casts. The compiled engines
(machine code and ONNX Runtime) both give these results. The eager engine is tfjs's own backend; the last
column shows where its results differ.
`;

const TAIL = `## Attention

NaN propagates. Attention gives zeros, and zero gradients, for a query whose keys are all masked by −∞.
`;

/** The page up to the section on empty tensors. */
export function numericsPage(): string {
  const sections = SECTIONS.map(
    ({ title, text: about, rows }) =>
      `## ${title}\n\n${about}\n\n| | operands → result | tfjs on the CPU |\n|---|---|---|\n${rows.map(row).join('\n')}\n`,
  );
  return [HEAD, ...sections, TAIL].join('\n');
}
