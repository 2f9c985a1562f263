/** @file Report of `luthier analyze` as text, Markdown and JSON. */

import type { Peak } from '../../programs/mfu.js';
import { formatDuration, formatGrouped, formatScaled, type Scales } from '../../summaries/formatNumbers.js';
import type { Report } from '../command.js';
import {
  codeSpan,
  counted,
  escapeMarkdown,
  formatBytes,
  formatCount,
  formatFlops,
  markdownTable,
  textTable,
} from '../reportFormat.js';
import type { Paint } from '../terminalOutput.js';
import type { Analysis } from './analyze.js';
import { type LayerRow, layerRows } from './layerRows.js';

/** An analysis, and what it is shown with. */
export interface Analyzed {
  /** Full name of the experiment. */
  readonly experiment: string;
  readonly analysis: Analysis;
  readonly peak: Peak;
  /** The share of the peak that a step is assumed to reach. */
  readonly mfu: number;
  /** Whether layers that are alike have a row each. */
  readonly all: boolean;
  readonly maxDepth?: number;
}

const header = ['layer', 'type', 'output', 'parameters', 'own', 'FLOPs', 'activations'];

const SHORT: Scales = [
  [1, ' s'],
  [1e-3, ' ms'],
  [1e-6, ' µs'],
];

/** 23.4 ms, 4.21 s, 3m 05s. */
function formatSeconds(seconds: number): string {
  return seconds < 59.95 ? formatScaled(seconds, SHORT) : formatDuration(seconds);
}

const nothing = (amount: number, format: (amount: number) => string): string =>
  amount === 0 ? '' : format(amount);

function cells(name: string, { layer }: LayerRow): string[] {
  const { type, outputShape, parameters, ownParameters, flops, activationBytes } = layer;
  return [
    name,
    type,
    outputShape === undefined ? '' : `[${outputShape.join(', ')}]`,
    nothing(parameters, formatCount),
    nothing(ownParameters, formatCount),
    nothing(flops, formatFlops),
    nothing(activationBytes, formatBytes),
  ];
}

const alike = ({ count }: LayerRow): string => (count > 1 ? ` (${count} alike)` : '');

function indentedName(row: LayerRow): string {
  const name = row.last === undefined ? row.name : `${row.name} … ${row.last}`;
  return `${'  '.repeat(row.layer.depth)}${name || '(model)'}${alike(row)}`;
}

function pathName(row: LayerRow): string {
  const path = row.last === undefined ? row.layer.path : `${row.layer.path} … ${row.last}`;
  return path === '' ? '(model)' : `${codeSpan(path)}${alike(row)}`;
}

/** What stands below the table, a line each. */
function totals({ analysis, peak, mfu }: Analyzed): [string, string][] {
  const { parameters, trainableParameters, tokensPerStep, unit, forwardFlopsPerToken, flopsPerStep, memory } =
    analysis;
  const rest = parameters - trainableParameters;
  const trained = rest === 0 ? 'all trained' : `${formatGrouped(trainableParameters)} trained`;
  const atPeak = flopsPerStep / peak.flops;
  return [
    ['Parameters', `${formatGrouped(parameters)} (${formatCount(parameters)}), ${trained}`],
    ['Batch', `${formatGrouped(tokensPerStep)} ${unit} a step`],
    [
      'FLOPs',
      `${formatFlops(flopsPerStep)} a step, forward and backward; ` +
        `${formatFlops(forwardFlopsPerToken)} forward for each ${unit.slice(0, -1)}`,
    ],
    [
      'Memory',
      `${formatBytes(memory.total)}: variables ${formatBytes(memory.variables)}, gradients ${formatBytes(memory.gradients)}, ` +
        `optimizer ${formatBytes(memory.optimizer)}, batches ${formatBytes(memory.batches)}, ` +
        `activations ${formatBytes(memory.activations)} at their peak, working memory ${formatBytes(memory.working)}`,
    ],
    [
      'Time',
      `${formatSeconds(atPeak / mfu)} a step at MFU ${mfu}; ${formatSeconds(atPeak)} at the peak of ` +
        `${formatFlops(peak.flops)}/s (${peak.source})`,
    ],
  ];
}

function notes(
  rows: readonly LayerRow[],
  { analysis, maxDepth = Number.POSITIVE_INFINITY }: Analyzed,
): string[] {
  const deeper = analysis.layers.filter(({ depth }) => depth > maxDepth).length;
  return [
    'Parameters, FLOPs (of the forward pass) and activations (bytes that the backward pass reads again) include the layers below.',
    ...(rows.some(({ count }) => count > 1)
      ? ['Layers that are alike have one row, with the figures of each of them; --all shows every layer.']
      : []),
    ...(deeper > 0
      ? [`${counted(deeper, 'layer')} below --depth=${maxDepth} ${deeper === 1 ? 'is' : 'are'} not shown.`]
      : []),
  ];
}

function textOf(analyzed: Analyzed, rows: readonly LayerRow[], paint: Paint): string {
  const table = textTable(
    rows.map((row) => cells(indentedName(row), row)),
    header,
    (line, row) => (row === undefined ? paint('bold', line) : line),
  );
  const note = notes(rows, analyzed).map((line) => paint('dim', line));
  return [paint('bold', analyzed.experiment), table, note.join('\n'), textTable(totals(analyzed))].join(
    '\n\n',
  );
}

function markdownOf(analyzed: Analyzed, rows: readonly LayerRow[]): string {
  const table = markdownTable(
    rows.map((row) => cells(pathName(row), row)),
    header,
  );
  const list = totals(analyzed).map(([name, text]) => `- **${name}:** ${text}`);
  return [
    `### ${escapeMarkdown(analyzed.experiment)}`,
    list.join('\n'),
    table,
    notes(rows, analyzed).join('\n'),
  ].join('\n\n');
}

/** The report on an experiment. Its JSON has every layer down to the depth that was asked for. */
export function analysisReport(analyzed: Analyzed): Report {
  const { experiment, analysis, peak, mfu, all, maxDepth = Number.POSITIVE_INFINITY } = analyzed;
  const rows = layerRows(analysis.layers, { all, maxDepth });
  return {
    text: (paint) => textOf(analyzed, rows, paint),
    markdown: () => markdownOf(analyzed, rows),
    json: () => ({
      experiment,
      ...analysis,
      layers: analysis.layers.filter(({ depth }) => depth <= maxDepth),
      peak,
      mfu,
      secondsPerStep: analysis.flopsPerStep / peak.flops / mfu,
    }),
  };
}
