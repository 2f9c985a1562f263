/** @file What a renaming does, as text, JSON and Markdown. */
import { relative, sep } from 'node:path';
import type { Report } from '../command.js';
import { codeBlock, codeSpan, counted, escapeMarkdown } from '../format.js';
import { diffText, lineDiff } from '../lineDiff.js';
import { type Paint, plain } from '../paint.js';
import type { ChangedFile, Plan } from './plan.js';

/** How it ended: files were written, or only shown, or the compiler was against it. */
export type Outcome = 'written' | 'dry run' | 'refused';

export function renameReport(plan: Plan, outcome: Outcome): Report {
  const show = ({ path }: ChangedFile) => relative(plan.root, path).split(sep).join('/');
  const diffOf = (file: ChangedFile, paint: Paint) => diffText(lineDiff(file.before, file.text), paint);
  const diff = (paint: Paint) =>
    plan.files.map((file) => `${paint('bold', show(file))}\n${diffOf(file, paint)}`).join('\n\n');
  const summary = summaryOf(plan, outcome);
  const lists = [
    {
      title: 'To look at by hand:',
      items: plan.mentions.map(({ file, line, text }) => [`${file}:${line}`, text] as const),
    },
    {
      title: 'New errors of the compiler:',
      items: plan.errors.map(({ place, message }) => [place, message] as const),
    },
  ].filter(({ items }) => items.length > 0);
  return {
    text: (paint) =>
      [
        diff(paint),
        ...lists.map(({ title, items }) =>
          [paint('bold', title), ...items.map(([place, text]) => `  ${place}: ${text}`)].join('\n'),
        ),
        summary,
      ].join('\n\n'),
    json: () => ({
      old: plan.old,
      present: plan.present,
      outcome,
      files: plan.files.map((file) => ({ file: show(file), diff: diffOf(file, plain) })),
      lookAt: plan.mentions,
      errors: plan.errors,
    }),
    markdown: () =>
      [
        escapeMarkdown(summary),
        codeBlock(diff(plain), 'diff'),
        ...lists.map(({ title, items }) => {
          const lines = items.map(([place, text]) => `- ${codeSpan(place)} ${codeSpan(text)}`);
          return `${title}\n\n${lines.join('\n')}`;
        }),
      ].join('\n\n'),
    exitCode: outcome === 'refused' ? 1 : 0,
  };
}

function summaryOf({ old, present, files, errors }: Plan, outcome: Outcome): string {
  const what = `${old} → ${present}: ${counted(files.length, 'file')}`;
  switch (outcome) {
    case 'written':
      return `${what} changed.`;
    case 'dry run':
      return `${what} would change; nothing was written.`;
    case 'refused':
      return `${what} would change, and the compiler would find ${counted(errors.length, 'new error')}; nothing was written. --force writes all the same.`;
  }
}
