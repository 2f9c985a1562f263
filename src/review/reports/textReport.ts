/** @file Text report of a diff, for a terminal. */

import { type Paint, textTable, visible } from '../../system/text/index.js';
import { isDifferent } from '../changes/effects.js';
import { titled } from '../text/reportFormat.js';
import {
  type ErrorGroup,
  groupChanges,
  groupCheckpoints,
  groupComputed,
  groupErrors,
  groupRules,
  groupUncompared,
} from './changeGroups.js';
import type { DiffReport, ExperimentReport, Status } from './diffReport.js';
import type { Label } from './gates.js';
import { errorStatusText, outcomePhrases } from './outcomes.js';
import {
  againstText,
  checkpointLines,
  checkpointTitles,
  computedText,
  constantLine,
  declarationText,
  descriptionLines,
  difference,
  fieldLine,
  figureKinds,
  formerLines,
  inUnit,
  type Line,
  loadedIn,
  phraseText,
  ruleText,
  uncomparedText,
  variableText,
} from './reportLines.js';
import { verdictOf } from './verdict.js';

const colours: Partial<Record<Status, Parameters<Paint>[0]>> = {
  broken: 'red',
  removed: 'red',
  failing: 'red',
  added: 'green',
  mended: 'green',
  changed: 'yellow',
};

/** The report as text; `labels` are those of the pull request. */
export function textOf(report: DiffReport, paint: Paint, labels: readonly Label[] = []): string {
  const { experiments } = report;
  const verdict = verdictOf(report, labels);
  const errors = groupErrors(experiments);
  const parts = [
    [
      paint(verdict.fails ? 'red' : 'bold', verdict.line),
      `${report.old.label} → ${report.new.label}`,
      ...verdict.conditions.map(phraseText),
    ].join('\n'),
    statusLists(experiments, paint),
    loadedText(report),
    ...experiments.map((each) => blockText(descriptionLines(each))),
    ...errors.filter(({ status }) => status !== 'failing').map((each) => errorText(each, paint)),
    ...experiments.map((each) => blockText(formerLines(each))),
    declarations(report),
    ...groupChanges(experiments).map(({ experiments: names, constants, fields }) =>
      [
        paint('bold', namesText(names, experiments)),
        ...section('Constants', constants.map(constantLine), paint),
        ...section('Fields', fields.map(fieldLine), paint),
      ].join('\n'),
    ),
    ...groupComputed(experiments).map(({ experiments: names, computed }) =>
      titled(paint('bold', namesText(names, experiments)), visible(computedText(computed))),
    ),
    effectsText(experiments),
    ...groupCheckpoints(experiments).map(({ experiments: names, effect }) =>
      [
        `${paint(effect.goesOn === 'never' ? 'red' : 'bold', checkpointTitles[effect.goesOn])}: ${names.join(', ')}`,
        ...checkpointLines(effect).map((line) => `  ${visible(line)}`),
        ...effect.reshaped.map((group) => `  ${variableText(group)}`),
        ...effect.appeared.map((group) => paint('green', `  + ${variableText(group)}`)),
        ...effect.vanished.map((group) => paint('red', `  - ${variableText(group)}`)),
      ].join('\n'),
    ),
    ...groupRules(experiments).map(({ experiments: names, rules }) =>
      titled(
        `${paint('bold', 'Variables')}: ${names.join(', ')}`,
        ...rules.map((each) => visible(ruleText(each))),
      ),
    ),
    ...groupUncompared(experiments).map(({ experiments: names, uncompared }) =>
      titled(paint('yellow', `not compared: ${names.join(', ')}`), visible(uncomparedText(uncompared))),
    ),
    ...errors.filter(({ status }) => status === 'failing').map((each) => errorText(each, paint)),
    ...report.notes.map((note) => `Note: ${note}`),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function loadedText(report: DiffReport): string {
  const names = loadedIn(report);
  return names.length === 0 ? '' : `found by loading, not by source text: ${names.join(', ')}`;
}

/** The names of experiments that no other part of the report has. */
function statusLists(experiments: readonly ExperimentReport[], paint: Paint): string {
  const lines = (['removed', 'added', 'mended', 'renamed', 'redeclared'] as const).flatMap((status) => {
    const names = experiments.filter((each) => each.status === status).map(({ name }) => name);
    const title = paint(colours[status] ?? 'yellow', outcomePhrases[status][0]);
    return names.length === 0 ? [] : [`${title}: ${names.join(', ')}`];
  });
  return lines.join('\n');
}

/** Lines, all but the first indented. */
function blockText([head, ...lines]: readonly string[]): string {
  return head === undefined ? '' : titled(visible(head), ...lines.map(visible));
}

function errorText(group: ErrorGroup, paint: Paint): string {
  const { experiments, status, error, oldError } = group;
  const lines = error.message.split('\n').map(visible);
  if (error.place !== undefined) lines.push(`at ${error.place}`);
  if (oldError !== undefined) lines.push(...`before: ${oldError.message}`.split('\n').map(visible));
  const title = `${experiments.join(', ')}: ${errorStatusText(group)}`;
  return titled(paint(colours[status] ?? 'yellow', title), ...lines);
}

function declarations({ declarations: changes }: DiffReport): string {
  return changes.length === 0 ? '' : titled('Names', ...changes.map(declarationText));
}

/** The experiments that a group of changes is about. */
function namesText(names: readonly string[], all: readonly ExperimentReport[]): string {
  const remarkOf = new Map(
    all.map((each) => [each.name, [each.status, againstText(each)].filter((part) => part !== '').join(' ')]),
  );
  const few = names.length === 1 ? names[0]! : `${names.length} experiments: ${names.join(', ')}`;
  const remarks = new Set(names.map((name) => remarkOf.get(name)!));
  return remarks.size === 1 && !remarks.has('changed') ? `${few} (${[...remarks][0]})` : few;
}

function section(title: string, lines: readonly Line[], paint: Paint): string[] {
  return lines.length === 0 ? [] : [`  ${title}`, ...lines.map((line) => `    ${lineText(line, paint)}`)];
}

function lineText({ path, old, new: now, remarks }: Line, paint: Paint): string {
  const gone = old === undefined ? undefined : paint('red', old);
  const come = now === undefined ? undefined : paint('green', now);
  const change = gone === undefined ? `+ ${come}` : come === undefined ? `- ${gone}` : `${gone} → ${come}`;
  const remark =
    remarks.length === 0 ? '' : paint('dim', `  (${visible(remarks.map(phraseText).join('; '))})`);
  return `${path} : ${change}${remark}`;
}

function effectsText(experiments: readonly ExperimentReport[]): string {
  const rows: string[][] = [];
  const same: string[] = [];
  for (const { name, status, effects } of experiments) {
    if (effects === undefined || status === 'removed') continue;
    const figures = figureKinds.flatMap(({ key, label, format }): string[][] => {
      const { old, new: now } = effects[key];
      if (!isDifferent(effects[key]) && (status !== 'added' || now === undefined)) return [];
      const text = (value: number | undefined): string => (value === undefined ? '-' : format(value));
      const isSame = old === undefined || now === undefined || old === now;
      const change = isSame ? '' : difference(old, now, format);
      return [['', inUnit(label, effects.unit), text(old), text(now), change]];
    });
    if (figures.length === 0) {
      if (status === 'changed') same.push(name);
    } else {
      figures[0]![0] = name;
      rows.push(...figures);
    }
  }
  const before = experiments.some(({ against }) => against !== undefined) ? 'before, or base' : 'before';
  const table = rows.length === 0 ? '' : textTable(rows, ['Consequences', '', before, 'after', '']);
  const others =
    same.length === 0 ? '' : `Parameters, FLOPs, tokens and memory as before: ${same.join(', ')}`;
  return [table, others].filter((part) => part !== '').join('\n\n');
}
