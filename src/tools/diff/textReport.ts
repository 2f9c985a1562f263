/** @file Text report of a diff, for a terminal. */
import { textTable } from '../reportFormat.js';
import type { Paint } from '../terminalOutput.js';
import {
  type ErrorGroup,
  groupChanges,
  groupCheckpoints,
  groupComputed,
  groupErrors,
  groupUncompared,
} from './changeGroups.js';
import type { DiffReport, ExperimentReport, Status } from './diffReport.js';
import { visible } from './display.js';
import { isDifferent } from './effects.js';
import {
  checkpointText,
  computedText,
  constantLine,
  countsText,
  declarationText,
  difference,
  fieldLine,
  figureKinds,
  type Line,
  statusText,
  uncomparedText,
  variableText,
} from './reportLines.js';

const colours: Partial<Record<Status, Parameters<Paint>[0]>> = {
  broken: 'red',
  removed: 'red',
  failing: 'red',
  added: 'green',
  mended: 'green',
  changed: 'yellow',
};

/** The report as text. */
export function textOf(report: DiffReport, paint: Paint): string {
  const { experiments } = report;
  const errors = groupErrors(experiments);
  const parts = [
    `${paint('bold', `${report.old.label} → ${report.new.label}`)}\n${countsText(report)}`,
    statusLists(experiments, paint),
    ...errors.filter(({ status }) => status !== 'failing').map((each) => errorText(each, paint)),
    declarations(report),
    ...groupChanges(experiments).map(({ experiments: names, constants, fields }) =>
      [
        paint('bold', namesText(names, experiments)),
        ...section('Constants', constants.map(constantLine), paint),
        ...section('Fields', fields.map(fieldLine), paint),
      ].join('\n'),
    ),
    ...groupComputed(experiments).map(
      ({ experiments: names, computed }) =>
        `${paint('bold', namesText(names, experiments))}\n  ${visible(computedText(computed))}`,
    ),
    effectsText(experiments),
    ...groupCheckpoints(experiments).map(({ experiments: names, effect }) =>
      [
        `${paint('bold', 'Checkpoints do not fit')}: ${names.join(', ')}`,
        ...effect.reshaped.map((group) => `  ${variableText(group)}`),
        ...effect.appeared.map((group) => paint('green', `  + ${variableText(group)}`)),
        ...effect.vanished.map((group) => paint('red', `  - ${variableText(group)}`)),
      ].join('\n'),
    ),
    ...groupUncompared(experiments).map(
      ({ experiments: names, uncompared }) =>
        `${paint('yellow', `not compared: ${names.join(', ')}`)}\n  ${visible(uncomparedText(uncompared))}`,
    ),
    ...errors.filter(({ status }) => status === 'failing').map((each) => errorText(each, paint)),
    ...report.notes.map((note) => `Note: ${note}`),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

/** The names of those that no other part of the report tells. */
function statusLists(experiments: readonly ExperimentReport[], paint: Paint): string {
  const lines = (['removed', 'added', 'mended', 'renamed', 'redeclared'] as const).flatMap((status) => {
    const names = experiments.filter((each) => each.status === status).map(({ name }) => name);
    const title = paint(colours[status] ?? 'yellow', statusText(status));
    return names.length === 0 ? [] : [`${title}: ${names.join(', ')}`];
  });
  return lines.join('\n');
}

function errorText({ experiments, status, error, oldError }: ErrorGroup, paint: Paint): string {
  const word =
    status === 'changed' || status === 'added' ? `${status}, but not analysed` : statusText(status);
  const lines = error.message.split('\n').map((line) => `  ${visible(line)}`);
  if (error.place !== undefined) lines.push(`  at ${error.place}`);
  if (oldError !== undefined) lines.push(`  before: ${visible(oldError.message)}`);
  return `${paint(colours[status] ?? 'yellow', `${experiments.join(', ')}: ${word}`)}\n${lines.join('\n')}`;
}

function declarations({ declarations: changes }: DiffReport): string {
  return changes.length === 0
    ? ''
    : ['Names', ...changes.map((each) => `  ${declarationText(each)}`)].join('\n');
}

/** The experiments that a group of changes is about. */
function namesText(names: readonly string[], all: readonly ExperimentReport[]): string {
  const statusOf = new Map(all.map(({ name, status }) => [name, status]));
  const few = names.length === 1 ? names[0]! : `${names.length} experiments: ${names.join(', ')}`;
  const own = new Set(names.map((name) => statusOf.get(name)));
  return own.size === 1 && !own.has('changed') ? `${few} (${[...own][0]})` : few;
}

function section(title: string, lines: readonly Line[], paint: Paint): string[] {
  return lines.length === 0 ? [] : [`  ${title}`, ...lines.map((line) => `    ${lineText(line, paint)}`)];
}

function lineText({ path, old, new: now, remarks }: Line, paint: Paint): string {
  const gone = old === undefined ? undefined : paint('red', old);
  const come = now === undefined ? undefined : paint('green', now);
  const change = gone === undefined ? `+ ${come}` : come === undefined ? `- ${gone}` : `${gone} → ${come}`;
  const remark = remarks.length === 0 ? '' : paint('dim', `  (${visible(remarks.join('; '))})`);
  return `${path} : ${change}${remark}`;
}

function effectsText(experiments: readonly ExperimentReport[]): string {
  const rows: string[][] = [];
  const same: string[] = [];
  for (const { name, status, effects } of experiments) {
    if (effects === undefined) continue;
    const { checkpoints } = effects;
    const figures = figureKinds.flatMap(({ key, label, format }): string[][] => {
      if (!isDifferent(effects[key])) return [];
      const { old, new: now } = effects[key];
      const text = (value: number | undefined): string => (value === undefined ? '-' : format(value));
      const change = old === undefined || now === undefined ? '' : difference(old, now, format);
      return [['', label, text(old), text(now), change]];
    });
    if (checkpoints?.loads === false) figures.push(['', 'Checkpoints', '', checkpointText(checkpoints), '']);
    if (figures.length === 0) {
      if (status === 'changed') same.push(name);
    } else {
      figures[0]![0] = name;
      rows.push(...figures);
    }
  }
  const table = rows.length === 0 ? '' : textTable(rows, ['What follows', '', 'before', 'after', '']);
  const others =
    same.length === 0
      ? ''
      : `Parameters, FLOPs, tokens and memory as before, checkpoints load: ${same.join(', ')}`;
  return [table, others].filter((part) => part !== '').join('\n\n');
}
