/** @file Report of `luthier analyze` as text, Markdown and JSON. */

import {
  type Analysis,
  type Device,
  devicesOf,
  type LayerRow,
  layerRows,
  trainingCost,
} from '../../analysis/index.js';
import type { Peak } from '../../programs/index.js';
import {
  codeSpan,
  counted,
  escapeMarkdown,
  formatBytes,
  formatFlops,
  markdownTable,
} from '../../review/text/index.js';
import {
  formatCount,
  formatGrouped,
  formatSeconds,
  headedTable,
  type Paint,
  textTable,
} from '../../system/text/index.js';
import type { Report } from '../command.js';

/** An analysis, with the options of its display. */
export interface Analyzed {
  /** Full name of the experiment. */
  readonly experiment: string;
  readonly analysis: Analysis;
  readonly peak: Peak;
  /** The share of the peak that a step is assumed to reach. */
  readonly mfu: number;
  readonly device?: Device;
  /** Whether layers that are alike have a row each. */
  readonly all: boolean;
  readonly maxDepth?: number;
}

const header = ['layer', 'type', 'output', 'parameters', 'own', 'FLOPs', 'activations'];

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

/** Cost of the whole training, a line each. */
function training({ analysis, peak, mfu, device }: Analyzed): [string, string][] {
  const cost = trainingCost(analysis);
  if (cost === undefined) return [];
  const { steps, tokens, flops } = cost;
  const lines: [string, string][] = [
    [
      'Training',
      `${formatCount(tokens)} ${analysis.unit} in ${formatGrouped(steps)} steps, ${formatFlops(flops)}`,
    ],
  ];
  if (device === undefined) return lines;
  const seconds = flops / peak.flops / mfu;
  const hours = (seconds / 3600) * devicesOf(device, analysis);
  const { pricePerHour, currency } = device;
  const price = pricePerHour === undefined ? '' : `; ${formatCount(hours * pricePerHour)} ${currency}`;
  const time = `${formatCount(hours)} device-hours, ${formatSeconds(seconds)} on ${peak.source}${price}`;
  return [...lines, ['Cost', `${time} (${device.file}, at MFU ${mfu})`]];
}

/** Memory of a device, and whether it suffices. */
function memoryText({ analysis: { memory, mesh }, device }: Analyzed): string {
  const axes = Object.entries(mesh.axes).map(([name, size]) => `${name} ${size}`);
  const where =
    mesh.devices === 1
      ? ''
      : ` on each of ${formatGrouped(mesh.devices)} devices (${axes.join(', ')}), ${formatBytes(mesh.devices * memory.total)} in all`;
  const parts =
    `${formatBytes(memory.total)}${where}: variables ${formatBytes(memory.variables)}, gradients ${formatBytes(memory.gradients)}, ` +
    `optimizer ${formatBytes(memory.optimizer)}, batches ${formatBytes(memory.batches)}, ` +
    `activations ${formatBytes(memory.activations)} at their peak, working memory ${formatBytes(memory.working)}`;
  if (device === undefined || memory.total <= device.memoryBytes) return parts;
  return `${parts}. Too much for ${device.name}, which has ${formatBytes(device.memoryBytes)}`;
}

/** Totals below the table, a line each. @param shown makes names of the experiment's fit for the page */
function totals(analyzed: Analyzed, shown = (name: string) => name): [string, string][] {
  const { analysis, peak, mfu } = analyzed;
  const { parameters, trainableParameters, tokensPerStep, unit } = analysis;
  const { forwardFlopsPerToken, flopsPerStep, computedFlopsPerStep } = analysis;
  const rest = parameters - trainableParameters;
  const trained = rest === 0 ? 'all trained' : `${formatGrouped(trainableParameters)} trained`;
  const atPeak = flopsPerStep / peak.flops;
  return [
    ['Parameters', `${formatGrouped(parameters)} (${formatCount(parameters)}), ${trained}`],
    ['Batch', `${formatGrouped(tokensPerStep)} ${unit} a step`],
    [
      'FLOPs',
      `${formatFlops(flopsPerStep)} a step, three times the forward pass; as computed ${formatFlops(computedFlopsPerStep)}; ` +
        `${formatFlops(forwardFlopsPerToken)} forward for each ${unit.slice(0, -1)}`,
    ],
    ...Object.entries(analysis.auxiliary ?? {}).map(([name, cost]): [string, string] => [
      'Task',
      `${shown(name)}: ${formatCount(100 * cost.share)} % of the steps, on ${formatGrouped(cost.tokensPerStep)} ${cost.unit}: ` +
        `${formatFlops(cost.flopsPerStep)} a step`,
    ]),
    ['Memory', memoryText(analyzed)],
    [
      'Time',
      `${formatSeconds(atPeak / mfu)} a step at MFU ${mfu}; ${formatSeconds(atPeak)} at the peak of ` +
        `${formatFlops(peak.flops)}/s (${peak.source})`,
    ],
    ...training(analyzed),
  ];
}

function notes(
  rows: readonly LayerRow[],
  { analysis, maxDepth = Number.POSITIVE_INFINITY }: Analyzed,
): string[] {
  const { devices, padded } = analysis.mesh;
  const deeper = analysis.layers.filter(({ depth }) => depth > maxDepth).length;
  return [
    'Parameters, FLOPs (of the forward pass) and activations (bytes that the backward pass reads again) include the layers below.',
    ...(rows.some(({ count }) => count > 1)
      ? ['Layers that are alike have one row, with the figures of each of them; --all shows every layer.']
      : []),
    ...(deeper > 0
      ? [`${counted(deeper, 'layer')} below --depth=${maxDepth} ${deeper === 1 ? 'is' : 'are'} not shown.`]
      : []),
    ...(devices > 1
      ? [
          'Memory and activations are per device; dimensions that the mesh does not split are replicated. Communication ' +
            'buffers are not counted.',
        ]
      : []),
    ...(padded.length > 0 ? [`Padded, as the mesh does not divide a dimension: ${padded.join(', ')}.`] : []),
  ];
}

function textOf(analyzed: Analyzed, rows: readonly LayerRow[], paint: Paint): string {
  const cellsOf = rows.map((row) => cells(indentedName(row), row));
  const table = headedTable(cellsOf, header, paint);
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
  const list = totals(analyzed, escapeMarkdown).map(([name, text]) => `- **${name}:** ${text}`);
  return [
    `### ${escapeMarkdown(analyzed.experiment)}`,
    list.join('\n'),
    table,
    notes(rows, analyzed).join('\n'),
  ].join('\n\n');
}

/** The report on an experiment. Its JSON has every layer down to the depth that was asked for. */
export function analysisReport(analyzed: Analyzed): Report {
  const { experiment, analysis, peak, mfu, device, all, maxDepth = Number.POSITIVE_INFINITY } = analyzed;
  const rows = layerRows(analysis.layers, { all, maxDepth });
  return {
    text: (paint) => textOf(analyzed, rows, paint),
    further: { markdown: () => markdownOf(analyzed, rows) },
    json: () => ({
      experiment,
      ...analysis,
      layers: analysis.layers.filter(({ depth }) => depth <= maxDepth),
      peak,
      mfu,
      secondsPerStep: analysis.flopsPerStep / peak.flops / mfu,
      training: trainingCost(analysis),
      device,
    }),
  };
}
