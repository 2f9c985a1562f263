/** @file What a renaming does, as text, JSON and Markdown. */

import { relative, sep } from 'node:path';
import type { Report } from '../command.js';
import { codeBlock, codeSpan, counted, escapeMarkdown } from '../format.js';
import { type Paint, plain } from '../paint.js';
import { unifiedDiff } from './edits.js';
import type { Plan } from './plan.js';

/** How it ended: files were written, or only shown, or the compiler was against it. */
export type Outcome = 'written' | 'dry run' | 'refused';

export function renameReport(plan: Plan, outcome: Outcome): Report {
  const show = (file: string) => relative(plan.root, file).split(sep).join('/');
  const diff = (paint: Paint) =>
    plan.files.map((changed) => unifiedDiff(changed, show(changed.file), paint)).join('\n');
  const looks = plan.looks.map(({ file, ...rest }) => ({ file: show(file), ...rest }));
  const summary = summaryOf(plan, outcome);
  return {
    text: (paint) =>
      [
        diff(paint),
        ...section(paint, 'To look at by hand:', looks, ({ file, line, text, why }) => [
          `${file}:${line}: ${why}`,
          text,
        ]),
        ...section(paint, 'New errors of the compiler:', plan.errors, ({ place, message }) => [
          `${place}: ${message}`,
        ]),
        summary,
      ].join('\n\n'),
    json: () => ({
      old: plan.old,
      present: plan.present,
      outcome,
      files: plan.files.map((changed) => ({
        file: show(changed.file),
        edits: changed.edits.length,
        diff: unifiedDiff(changed, show(changed.file), plain),
      })),
      lookAt: looks,
      errors: plan.errors,
    }),
    markdown: () =>
      [
        escapeMarkdown(summary),
        codeBlock(diff(plain), 'diff'),
        ...markdownList(
          'To look at by hand:',
          looks,
          ({ file, line, text, why }) =>
            `${codeSpan(`${file}:${line}`)} ${escapeMarkdown(why)}: ${codeSpan(text)}`,
        ),
        ...markdownList(
          'New errors of the compiler:',
          plan.errors,
          ({ place, message }) => `${codeSpan(place)} ${escapeMarkdown(message)}`,
        ),
      ].join('\n\n'),
    exitCode: outcome === 'refused' ? 1 : 0,
  };
}

function summaryOf({ old, present, files, errors }: Plan, outcome: Outcome): string {
  const places = files.reduce((sum, { edits }) => sum + edits.length, 0);
  const what = `${old} → ${present}: ${counted(places, 'place')} in ${counted(files.length, 'file')}`;
  switch (outcome) {
    case 'written':
      return `${what} changed.`;
    case 'dry run':
      return `${what} would change; nothing was written.`;
    case 'refused':
      return `${what} would change, and the compiler would find ${counted(errors.length, 'new error')}; nothing was written. --force writes all the same.`;
  }
}

function section<T>(
  paint: Paint,
  title: string,
  items: readonly T[],
  lines: (item: T) => string[],
): string[] {
  if (items.length === 0) return [];
  return [
    [
      paint('bold', title),
      ...items.flatMap((item) => lines(item).map((line, i) => `${'  '.repeat(i + 1)}${line}`)),
    ].join('\n'),
  ];
}

function markdownList<T>(title: string, items: readonly T[], line: (item: T) => string): string[] {
  return items.length === 0 ? [] : [`${title}\n\n${items.map((item) => `- ${line(item)}`).join('\n')}`];
}
