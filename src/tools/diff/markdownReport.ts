/** @file Markdown report of a diff, for a comment on a pull request. */
import {
  codeBlock,
  codeSpan,
  counted,
  escapeHtml,
  escapeMarkdown,
  folded,
  markdownTable,
} from '../reportFormat.js';
import {
  type ChangeGroup,
  type ErrorGroup,
  groupChanges,
  groupCheckpoints,
  groupComputed,
  groupErrors,
  groupUncompared,
} from './changeGroups.js';
import type { DiffReport, ExperimentReport, Figure, Status } from './diffReport.js';
import { shortened, visible } from './display.js';
import { isDifferent } from './effects.js';
import {
  checkpointText,
  computedText,
  constantLine,
  countsText,
  declarationText,
  descriptionLines,
  errorStatusText,
  fieldLine,
  figureKinds,
  formerLines,
  type Line,
  percent,
  uncomparedText,
  variableText,
} from './reportLines.js';

/** GitHub takes comments of 65,536 characters; some are left for whoever posts it. */
const mostCharacters = 60_000;
/** The summary takes no more than this, so that details have room. */
const mostOfSummary = 30_000;
const mostOfNotes = 3_000;

const signs: Readonly<Record<Status, string>> = {
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

/** What the summary's table does not list. */
const withoutRow: ReadonlySet<Status> = new Set(['renamed', 'redeclared', 'failing']);

/** A part of the comment that may be left out: its lines as far as they fit, between what opens and closes it. */
interface Details {
  readonly summary: string;
  readonly items: readonly string[];
}

/** The report as Markdown of less than 60,000 characters. What concerns most experiments is left out last. */
export function markdownOf(report: DiffReport): string {
  const parts = [
    `### ${span(report.old.label)} → ${span(report.new.label)}\n\n${countsText(report)}`,
    summaryTable(report.experiments.filter(({ status }) => !withoutRow.has(status))),
    notesOf(report),
  ].filter((part) => part !== '');
  let left = mostCharacters - parts.reduce((sum, part) => sum + part.length + 2, 0) - 500;
  let omitted = 0;
  for (const details of detailsOf(report)) {
    const [text, missing] = fitting(details, left);
    omitted += missing;
    if (text === undefined) continue;
    parts.push(text);
    left -= text.length + 2;
  }
  if (omitted > 0) {
    const command = report.old.commit === undefined ? 'luthier diff' : 'luthier diff --base=REF';
    parts.push(
      `_${counted(omitted, 'line')} left out to keep this comment short: ${codeSpan(`npx ${command}`)} shows all of them._`,
    );
  }
  return parts.join('\n\n');
}

/** A part with as many of its items as fit, and how many do not. */
function fitting({ summary, items }: Details, most: number): [text: string | undefined, missing: number] {
  const frame = folded(summary, '').length + 100;
  let size = frame;
  const taken: string[] = [];
  for (const item of items) {
    size += item.length + 1;
    if (size > most) break;
    taken.push(item);
  }
  const missing = items.length - taken.length;
  if (taken.length === 0) return [undefined, missing];
  const more = missing === 0 ? [] : [`\n… and ${counted(missing, 'more line')}`];
  return [folded(summary, [...taken, ...more].join('\n')), missing];
}

function span(text: string): string {
  return codeSpan(visible(text));
}

function htmlCode(text: string): string {
  return `<code>${escapeHtml(visible(text))}</code>`;
}

function summaryTable(experiments: readonly ExperimentReport[]): string {
  const header = ['Experiment', '', 'Parameters', 'FLOPs/token', 'Tokens/step', 'Peak memory', 'Checkpoints'];
  const rows = experiments.map((each) => [
    span(each.name),
    [signs[each.status], each.against === undefined ? '' : `against ${span(each.against)}`].join(' ').trim(),
    ...figureKinds.map(({ key, format }) => figureCell(each.effects?.[key], format)),
    checkpointCell(each),
  ]);
  if (rows.length === 0) return '';
  let most = rows.length;
  let table = markdownTable(rows, header);
  while (table.length > mostOfSummary && most > 1) {
    most = Math.min(most - 1, Math.floor((most * mostOfSummary) / table.length));
    table = markdownTable(rows.slice(0, most), header);
  }
  return most === rows.length ? table : `${table}\n\n… and ${counted(rows.length - most, 'more experiment')}`;
}

function figureCell(figure: Figure | undefined, format: (value: number) => string): string {
  const { old, new: now } = figure ?? {};
  if (old === undefined || now === undefined) return now === undefined ? '–' : format(now);
  if (!isDifferent({ old, new: now })) return format(now);
  return `${format(old)} → ${format(now)}${old === 0 ? '' : ` (**${percent(old, now)}**)`}`;
}

function checkpointCell({ effects }: ExperimentReport): string {
  return effects?.checkpoints === undefined ? '–' : checkpointText(effects.checkpoints);
}

function notesOf({ notes }: DiffReport): string {
  const text = notes.map((note) => `> ${escapeMarkdown(visible(note))}`);
  return text.length === 0 ? '' : shortened(text.join('\n>\n'), mostOfNotes);
}

/** The folded parts, the most important first. */
function detailsOf(report: DiffReport): Details[] {
  const { experiments } = report;
  const errors = groupErrors(experiments);
  return [
    ...errors.filter(({ status }) => status !== 'failing').map(errorDetails),
    ...experiments.flatMap((each) => lineDetails(descriptionLines(each))),
    ...experiments.flatMap((each) => lineDetails(formerLines(each))),
    ...declarationDetails(report),
    ...groupChanges(experiments).map(groupDetails),
    ...computedDetails(experiments),
    ...checkpointDetails(experiments),
    ...renamedDetails(experiments),
    ...uncomparedDetails(experiments),
    ...errors.filter(({ status }) => status === 'failing').map(errorDetails),
  ];
}

/** What is told in lines, the first of which says it in short. */
function lineDetails([head, ...lines]: readonly string[]): Details[] {
  return head === undefined
    ? []
    : [{ summary: htmlCode(head), items: lines.map((line) => `- ${span(line)}`) }];
}

function errorDetails(group: ErrorGroup): Details {
  const { experiments, status, error, oldError } = group;
  const lines = shortened(error.message, 2000).split('\n').map(visible);
  if (error.place !== undefined) lines.push(`at ${visible(error.place)}`);
  if (oldError !== undefined && oldError.message !== error.message)
    lines.push(...`before: ${shortened(oldError.message, 2000)}`.split('\n').map(visible));
  const sign = status === 'failing' ? `⚠️ ${errorStatusText(group)}` : signs[status];
  return {
    summary: `${sign}: ${namesHtml(experiments)}`,
    items: [codeBlock(lines.join('\n'), 'text')],
  };
}

function checkpointDetails(experiments: readonly ExperimentReport[]): Details[] {
  const groups = groupCheckpoints(experiments);
  if (groups.length === 0) return [];
  const count = groups.reduce((sum, { experiments: names }) => sum + names.length, 0);
  const items = groups.flatMap(({ experiments: names, effect }) => [
    `- ${namesHtml(names)}`,
    ...effect.reshaped.map((group) => `  - ${span(variableText(group))}`),
    ...effect.appeared.map((group) => `  - new: ${span(variableText(group))}`),
    ...effect.vanished.map((group) => `  - gone: ${span(variableText(group))}`),
  ]);
  return [{ summary: `Checkpoints do not fit: ${counted(count, 'experiment')}`, items }];
}

function computedDetails(experiments: readonly ExperimentReport[]): Details[] {
  return groupComputed(experiments).map(({ experiments: names, computed }) => ({
    summary: `Config same, something else computed: ${namesHtml(names)}`,
    items: [`- ${span(computedText(computed))}`],
  }));
}

function uncomparedDetails(experiments: readonly ExperimentReport[]): Details[] {
  const groups = groupUncompared(experiments);
  if (groups.length === 0) return [];
  const items = groups.map(
    ({ experiments: names, uncompared }) => `- ${namesHtml(names)}: ${span(uncomparedText(uncompared))}`,
  );
  return [{ summary: 'Not compared', items }];
}

function renamedDetails(experiments: readonly ExperimentReport[]): Details[] {
  return (['renamed', 'redeclared'] as const).flatMap((status): Details[] => {
    const names = experiments.filter((each) => each.status === status).map(({ name }) => name);
    if (names.length === 0) return [];
    const summary = `${signs[status]}: ${counted(names.length, 'experiment')} whose values stay as they are`;
    return [{ summary, items: names.map((name) => `- ${span(name)}`) }];
  });
}

function declarationDetails({ declarations }: DiffReport): Details[] {
  if (declarations.length === 0) return [];
  return [{ summary: 'Names', items: declarations.map((each) => `- ${span(declarationText(each))}`) }];
}

function groupDetails({ experiments, against, constants, fields }: ChangeGroup): Details {
  const counts = [
    ...(constants.length === 0 ? [] : [counted(constants.length, 'constant')]),
    ...(fields.length === 0 ? [] : [counted(fields.length, 'field')]),
  ];
  return {
    summary: `${namesHtml(experiments)}${against === undefined ? '' : ` against ${htmlCode(against)}`}: ${counts.join(', ')}`,
    items: [...constants.map(constantLine), ...fields.map(fieldLine)].map(lineMarkdown),
  };
}

const mostNames = 12;

function namesHtml(names: readonly string[]): string {
  const shown = names.slice(0, mostNames).map(htmlCode).join(', ');
  const more = names.length > mostNames ? ` and ${names.length - mostNames} more` : '';
  return names.length === 1 ? shown : `${names.length} experiments: ${shown}${more}`;
}

function lineMarkdown({ path, old, new: now, remarks }: Line): string {
  const change =
    old === undefined
      ? `added ${span(now!)}`
      : now === undefined
        ? `removed ${span(old)}`
        : `${span(old)} → ${span(now)}`;
  const remark = remarks.length === 0 ? '' : ` · ${remarks.map(span).join(' · ')}`;
  return `- ${span(path)}: ${change}${remark}`;
}
