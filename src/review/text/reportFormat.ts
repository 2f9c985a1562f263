/** @file Formatting of reports: tables, numbers with units, escaped text. */
import { columnsOf, formatScaled, padded, type Scales } from '../../system/text/index.js';

const BYTES: Scales = [
  [1e15, ' PB'],
  [1e12, ' TB'],
  [1e9, ' GB'],
  [1e6, ' MB'],
  [1e3, ' kB'],
];

const FLOPS: Scales = [
  [1e24, ' YFLOP'],
  [1e21, ' ZFLOP'],
  [1e18, ' EFLOP'],
  [1e15, ' PFLOP'],
  [1e12, ' TFLOP'],
  [1e9, ' GFLOP'],
  [1e6, ' MFLOP'],
  [1e3, ' kFLOP'],
];

/** Three digits and a decimal unit: 512 B, 4.10 kB, 13.0 GB. */
export function formatBytes(bytes: number): string {
  return Math.abs(bytes) < 999.5 ? `${Math.round(bytes)} B` : formatScaled(bytes, BYTES);
}

/** Three digits and a decimal unit: 512 FLOP, 4.20 GFLOP, 1.07 PFLOP. */
export function formatFlops(flops: number): string {
  return Math.abs(flops) < 999.5 ? `${Math.round(flops)} FLOP` : formatScaled(flops, FLOPS);
}

/** `1 experiment`, `2 experiments`; `plural` for irregular plurals. */
export function counted(count: number, word: string, plural = `${word}s`): string {
  return `${count} ${count === 1 ? word : plural}`;
}

/** Indents each line of a text. */
export function indented(text: string, indent: string): string {
  return indent + text.replaceAll('\n', `\n${indent}`);
}

/** Texts below their title, indented. */
export function titled(title: string, ...texts: readonly string[]): string {
  return [title, ...texts.map((text) => indented(text, '  '))].join('\n');
}

/** Bars and line breaks end a cell, even within code. */
function cellText(cell: string): string {
  return cell
    .replace(/\s*[\r\n]+\s*/g, ' ')
    .replace(/(\\*)\|/g, (whole, slashes: string) => (slashes.length % 2 === 1 ? whole : `${slashes}\\|`));
}

/** A Markdown table that is also readable as text. Cells are Markdown; bars in them are escaped. */
export function markdownTable(rows: readonly (readonly string[])[], header: readonly string[]): string {
  const cells = rows.map((row) => row.map(cellText));
  const titles = header.map(cellText);
  const columns = columnsOf(cells, titles);
  const line = (row: readonly string[]) => `| ${padded(row, columns).join(' | ')} |`;
  const rule = columns.widths.map((width, column) =>
    columns.right[column] ? `${'-'.repeat(width + 1)}:` : '-'.repeat(width + 2),
  );
  return [line(titles), `|${rule.join('|')}|`, ...cells.map(line)].join('\n');
}

/** Text that GitHub turns into links: addresses, `@name`, `#12`, `GH-12`, commits; a comment within prevents it. */
const linking =
  /@(?=[\w-])|#(?=\w)|GH(?=-\d)|(?:https?|ftp|mailto|xmpp)(?=:)|www(?=\.)|[\da-f]{6}(?=[\da-f])/gi;

/** Text that Markdown shows literally: no emphasis, links, HTML or table cells. */
export function escapeMarkdown(text: string): string {
  return text
    .replace(/[\\`*_{}[\]<>|~$]/g, '\\$&')
    .replace(/&(?=#?\w+;)/g, '&amp;')
    .replace(linking, '$&<!-- -->')
    .replace(/^(\s*)([-+=]|#(?=\s))/gm, '$1\\$2')
    .replace(/^(\s*\d+)([.)])/gm, '$1\\$2');
}

/** Inline code; keeps backticks, also at the ends. */
export function codeSpan(text: string): string {
  const line = text.replace(/[\r\n]+/g, ' ');
  const fence = longestRun(line) === 0 ? '`' : '`'.repeat(longestRun(line) + 1);
  const space = line.startsWith('`') || line.endsWith('`') || line.trim() === '' ? ' ' : '';
  return `${fence}${space}${line}${space}${fence}`;
}

/** A code block. */
export function codeBlock(text: string, language = ''): string {
  const fence = '`'.repeat(Math.max(3, longestRun(text) + 1));
  return `${fence}${language}\n${text.replace(/\n+$/, '')}\n${fence}`;
}

function longestRun(text: string): number {
  return Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
}

/** A collapsed section; `summary` is HTML. */
export function folded(summary: string, markdown: string): string {
  return `<details>\n<summary>${summary}</summary>\n\n${markdown}\n\n</details>`;
}

/** Text for HTML, such as the summary of a collapsed section. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
