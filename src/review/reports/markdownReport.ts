/** @file Markdown report of a diff, for a comment on a pull request. */

import { shortened, visible } from '../../system/text/index.js';
import { codeSpan, counted, escapeMarkdown, folded } from '../text/reportFormat.js';
import type { DiffReport } from './diffReport.js';
import { type Details, detailsOf } from './markdownDetails.js';
import { Links, namesMarkdown, type ReviewContext } from './markdownText.js';
import { loadedIn } from './reportLines.js';
import { summaryTable } from './summaryTable.js';
import { verdictOf } from './verdict.js';

/** GitHub takes comments of 65,536 characters; some are left for the poster, and for the comment's end. */
const mostCharacters = 60_000;
const mostNotes = 8;
const longestNote = 400;

/** The report as Markdown of less than 60,000 characters. Changes of the most experiments are left out last. */
export function markdownOf(report: DiffReport, context: ReviewContext = {}): string {
  const links = new Links(report, context);
  const verdict = verdictOf(report, context.labels);
  const parts = [
    `### ${verdict.fails ? '❌ ' : ''}${verdict.line}`,
    whatWasCompared(report, context, links),
    verdict.conditions.map((phrase) => `- ${links.phrase(phrase)}`).join('\n'),
    summaryTable(report.experiments, new Set(loadedIn(report))),
    loadedText(report),
    notesOf(report),
  ].filter((part) => part !== '');
  let left =
    mostCharacters -
    parts.reduce((sum, part) => sum + part.length + 2, 0) -
    (context.closing?.length ?? 0) -
    500;
  let omitted = 0;
  for (const details of detailsOf(report, links)) {
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
  if (context.closing !== undefined) parts.push(context.closing);
  return parts.join('\n\n');
}

/** The experiments that source text does not tell: their names are the report's word. */
function loadedText(report: DiffReport): string {
  const names = loadedIn(report);
  return names.length === 0 ? '' : `Found by loading, not by source text: ${namesMarkdown(names)}.`;
}

/** The two versions, and where they come from: so that a comment on an old commit is seen to be one. */
function whatWasCompared(report: DiffReport, { head, run, pictures }: ReviewContext, links: Links): string {
  const now =
    head === undefined ? links.commit(report.new.label, 'new') : links.commit(head.slice(0, 7), 'new');
  const more = [
    ...(run === undefined ? [] : [`[the run](${run})`]),
    ...(run === undefined || pictures === undefined
      ? []
      : [`[pictures](${run}#artifacts) in ${codeSpan(pictures)}`]),
  ];
  return [`${links.commit(report.old.label, 'old')} → ${now}`, ...more].join(' · ');
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

function notesOf({ notes }: DiffReport): string {
  return notes
    .map((note) => note.trim())
    .filter((note) => note !== '')
    .slice(0, mostNotes)
    .map((note) => `> ${escapeMarkdown(shortened(visible(shortened(note, longestNote)), longestNote))}`)
    .join('\n>\n');
}
