/** @file The folded parts of a comment: errors, names, programs, checkpoints, fields and curves. */

import { shortened, visible } from '../../system/text/index.js';
import { codeBlock, counted } from '../text/reportFormat.js';
import type { Failure } from '../versions/protocol.js';
import {
  type ChangeGroup,
  type ErrorGroup,
  groupChanges,
  groupCheckpoints,
  groupComputed,
  groupErrors,
  groupLearningRates,
  groupRules,
  groupUncompared,
} from './changeGroups.js';
import type { CheckpointEffect, DiffReport, ExperimentReport } from './diffReport.js';
import { learningRateChart } from './learningRateChart.js';
import { htmlCode, type Links, namesHtml, namesMarkdown, span } from './markdownText.js';
import { errorStatusText } from './outcomes.js';
import {
  checkpointLines,
  checkpointTitles,
  computedText,
  constantLine,
  declarationText,
  descriptionLines,
  fieldLine,
  formerLines,
  type Line,
  ruleText,
  uncomparedText,
  variableText,
} from './reportLines.js';
import { signs } from './summaryTable.js';

/** An optional part of the comment: its lines as far as they fit, between an opening and a closing. */
export interface Details {
  /** As HTML. */
  readonly summary: string;
  /** As Markdown. */
  readonly items: readonly string[];
}

/** The folded parts, the most important first. */
export function detailsOf(report: DiffReport, links: Links): Details[] {
  const { experiments } = report;
  const errors = groupErrors(experiments);
  const about = (isFailing: boolean) =>
    errors
      .filter(({ status }) => (status === 'failing') === isFailing)
      .map((group) => errorDetails(group, links));
  return [
    ...about(false),
    ...experiments.flatMap((each) => lineDetails(descriptionLines(each))),
    ...experiments.flatMap((each) => lineDetails(formerLines(each))),
    ...declarationDetails(report),
    ...computedDetails(experiments),
    ...checkpointDetails(experiments),
    ...groupChanges(experiments).map((group) => groupDetails(group, links)),
    ...learningRateDetails(experiments),
    ...ruleDetails(experiments),
    ...renamedDetails(experiments),
    ...uncomparedDetails(experiments),
    ...about(true),
  ];
}

function errorDetails(group: ErrorGroup, links: Links): Details {
  const { experiments, status, error, oldError } = group;
  const failure = ({ message, place }: Failure, of: 'old' | 'new'): string[] => [
    codeBlock(shortened(message, 2000).split('\n').map(visible).join('\n'), 'text'),
    ...(place === undefined ? [] : [`at ${links.place(place, of)}`]),
  ];
  const sign = status === 'failing' ? `⚠️ ${errorStatusText(group)}` : signs[status];
  return {
    summary: `${sign}: ${namesHtml(experiments)}`,
    items: [
      ...failure(error, 'new'),
      ...(oldError === undefined ? [] : ['', 'Before:', '', ...failure(oldError, 'old')]),
    ],
  };
}

/** A part of several lines, the first of which is the summary. */
function lineDetails([head, ...lines]: readonly string[]): Details[] {
  return head === undefined
    ? []
    : [{ summary: htmlCode(head), items: lines.map((line) => `- ${span(line)}`) }];
}

function declarationDetails({ declarations }: DiffReport): Details[] {
  if (declarations.length === 0) return [];
  return [{ summary: 'Names', items: declarations.map((each) => `- ${span(declarationText(each))}`) }];
}

function groupDetails({ experiments, against, constants, fields }: ChangeGroup, links: Links): Details {
  const counts = [
    ...(constants.length === 0 ? [] : [counted(constants.length, 'constant')]),
    ...(fields.length === 0 ? [] : [counted(fields.length, 'field')]),
  ];
  const lines = [...constants.map(constantLine), ...fields.map(fieldLine)];
  return {
    summary: `${namesHtml(experiments)}${against === undefined ? '' : ` against ${htmlCode(against)}`}: ${counts.join(', ')}`,
    items: lines.map((line) => lineMarkdown(line, links)),
  };
}

function lineMarkdown({ path, old, new: now, remarks }: Line, links: Links): string {
  const change =
    old === undefined
      ? `added ${span(now!)}`
      : now === undefined
        ? `removed ${span(old)}`
        : `${span(old)} → ${span(now)}`;
  return [`- ${span(path)}: ${change}`, ...remarks.map((remark) => links.phrase(remark))].join(' · ');
}

function learningRateDetails(experiments: readonly ExperimentReport[]): Details[] {
  return groupLearningRates(experiments).map(({ experiments: names, change }) => ({
    summary: `Learning rate: ${namesHtml(names)}`,
    items: [learningRateChart(change)],
  }));
}

function computedDetails(experiments: readonly ExperimentReport[]): Details[] {
  return groupComputed(experiments).map(({ experiments: names, computed }) => ({
    summary: `${computed.differs.length > 0 ? 'Computes something else' : 'Data differs'}: ${namesHtml(names)}`,
    items: [`- ${span(computedText(computed))}`],
  }));
}

function checkpointDetails(experiments: readonly ExperimentReport[]): Details[] {
  const groups = groupCheckpoints(experiments);
  return (['never', 'changed', 'unknown'] as const).flatMap((goesOn) => {
    const own = groups.filter(({ effect }) => effect.goesOn === goesOn);
    return own.length === 0 ? [] : [goingOnDetails(goesOn, own)];
  });
}

function goingOnDetails(
  goesOn: CheckpointEffect['goesOn'],
  groups: ReturnType<typeof groupCheckpoints>,
): Details {
  const count = groups.reduce((sum, { experiments: names }) => sum + names.length, 0);
  const items = groups.flatMap(({ experiments: names, effect }) => [
    `- ${namesMarkdown(names)}`,
    ...checkpointLines(effect).map((line) => `  - ${span(line.trim())}`),
    ...effect.reshaped.map((group) => `  - ${span(variableText(group))}`),
    ...effect.appeared.map((group) => `  - new: ${span(variableText(group))}`),
    ...effect.vanished.map((group) => `  - gone: ${span(variableText(group))}`),
  ]);
  return { summary: `${checkpointTitles[goesOn]}: ${counted(count, 'experiment')}`, items };
}

function ruleDetails(experiments: readonly ExperimentReport[]): Details[] {
  return groupRules(experiments).map(({ experiments: names, rules }) => ({
    summary: `Variables that rules reach: ${namesHtml(names)}`,
    items: rules.map((each) => `- ${span(ruleText(each))}`),
  }));
}

function renamedDetails(experiments: readonly ExperimentReport[]): Details[] {
  return (['renamed', 'redeclared'] as const).flatMap((status): Details[] => {
    const names = experiments.filter((each) => each.status === status).map(({ name }) => name);
    if (names.length === 0) return [];
    const summary = `${signs[status]}: ${counted(names.length, 'experiment')} whose values stay the same`;
    return [{ summary, items: names.map((name) => `- ${span(name)}`) }];
  });
}

function uncomparedDetails(experiments: readonly ExperimentReport[]): Details[] {
  const groups = groupUncompared(experiments);
  if (groups.length === 0) return [];
  const items = groups.map(
    ({ experiments: names, uncompared }) => `- ${namesMarkdown(names)}: ${span(uncomparedText(uncompared))}`,
  );
  return [{ summary: 'Not compared', items }];
}
