/** @file The table of a comment: the outcome of each experiment, with equal rows merged. */

import { shortened, visible } from '../../system/text/index.js';
import { isDifferent } from '../changes/effects.js';
import { counted, escapeMarkdown, markdownTable } from '../text/reportFormat.js';
import type { Effects, ExperimentReport, Figure, Status } from './diffReport.js';
import { namesMarkdown, span } from './markdownText.js';
import { checkpointText, figureKinds, inUnit, numericsText, percent, unitOf } from './reportLines.js';

export const signs: Readonly<Record<Status, string>> = {
  broken: '❌ broken',
  removed: '🗑️ removed',
  added: '🆕 added',
  changed: '✏️ changed',
  mended: '✅ mended',
  moved: '🚚 another name',
  renamed: '🏷️ names only',
  redeclared: '🏷️ fields only',
  uncompared: '❔ not compared in full',
  failing: '⚠️ failing',
  unchanged: 'unchanged',
};

/** Statuses outside of the table. */
const withoutRow: ReadonlySet<Status> = new Set(['renamed', 'redeclared', 'failing']);

/** Of a cell of words. */
const longestCell = 200;

/** The table leaves room for the details. */
const mostCharacters = 30_000;

/** The table, as far as it fits; empty where no experiment has a row. `loaded` are the experiments found by loading. */
export function summaryTable(
  experiments: readonly ExperimentReport[],
  loaded: ReadonlySet<string> = new Set(),
): string {
  const kinds = figureKinds.filter(({ key }) => !ofTraining.has(key) || hasValues(key, experiments));
  const unit = unitOf(experiments);
  const header = [
    'Experiment',
    'Verdict',
    'Numerics',
    'Checkpoints',
    ...kinds.map(({ column }) => inUnit(column, unit)),
  ];
  const namesByRow = new Map<string, string[]>();
  for (const each of experiments) {
    if (withoutRow.has(each.status)) continue;
    const row = JSON.stringify(rowOf(each, kinds, loaded.has(each.name)));
    const names = namesByRow.get(row);
    if (names === undefined) namesByRow.set(row, [each.name]);
    else names.push(each.name);
  }
  if (namesByRow.size === 0) return '';
  const all = [...namesByRow].map(([row, names]) => [namesMarkdown(names), ...(JSON.parse(row) as string[])]);
  let most = all.length;
  let table = markdownTable(all, header);
  while (table.length > mostCharacters && most > 1) {
    most = Math.min(most - 1, Math.floor((most * mostCharacters) / table.length));
    table = markdownTable(all.slice(0, most), header);
  }
  if (most === all.length) return table;
  const left = [...namesByRow.values()].slice(most).reduce((sum, names) => sum + names.length, 0);
  return `${table}\n\n… and ${counted(left, 'more experiment')}`;
}

/** Figures of whole trainings, which need a known length; an empty column is left out. */
const ofTraining: ReadonlySet<keyof Effects> = new Set([
  'trainingTokens',
  'trainingFlops',
  'deviceHours',
  'price',
]);

const hasValues = (key: keyof Effects, experiments: readonly ExperimentReport[]): boolean =>
  experiments.some(({ effects }) => Object.keys(effects?.[key] ?? {}).length > 0);

/** The row of an experiment, without its name. */
function rowOf(
  report: ExperimentReport,
  kinds: readonly (typeof figureKinds)[number][],
  isLoaded: boolean,
): string[] {
  const { status, against, effects, checkpoints } = report;
  const found = isLoaded ? ', found by loading' : '';
  const words = (text: string): string => escapeMarkdown(visible(shortened(text, longestCell)));
  return [
    `${signs[status]}${against === undefined ? '' : ` against ${span(against)}`}${found}`,
    words(numericsText(report)),
    checkpoints === undefined ? '–' : words(checkpointText(checkpoints)),
    ...kinds.map(({ key, format }) => figureCell(effects?.[key], format)),
  ];
}

function figureCell(figure: Figure | undefined, format: (value: number) => string): string {
  const { old, new: now } = figure ?? {};
  if (old === undefined || now === undefined) return now === undefined ? '–' : format(now);
  if (!isDifferent({ old, new: now })) return format(now);
  return `${format(old)} → ${format(now)}${old === 0 ? '' : ` (**${percent(old, now)}**)`}`;
}
