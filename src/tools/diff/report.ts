/** @file The report of `luthier diff`, in all of its forms. */
import type { Report } from '../command.js';
import { markdownOf } from './markdown.js';
import { textOf } from './text.js';
import type { DiffReport } from './types.js';

/** A comparison as the command reports it; `failOnChange` makes a change a failure. */
export function reportOf(report: DiffReport, failOnChange = false): Report {
  const isBroken = report.experiments.some(({ status }) => status === 'broken');
  const isChanged =
    report.experiments.some(({ status }) => status !== 'failing') || report.declarations.length > 0;
  return {
    text: (paint) => textOf(report, paint),
    json: () => report,
    markdown: () => markdownOf(report),
    exitCode: isBroken || (failOnChange && isChanged) ? 1 : 0,
  };
}
