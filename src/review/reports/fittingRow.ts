/** @file Rows of a report within its limits: an experiment whose texts or figures exceed them spoils no other one's row. */
import { issueText } from '../../hparams/index.js';
import { shortened } from '../../system/text/index.js';
import { type ExperimentReport, experimentReport } from './diffReport.js';

/** Characters of a text: fewer than a report takes, for a reader sees no more. */
const LONGEST_TEXT = 20_000;
const MOST_ITEMS = 10_000;

/** A value with its texts shortened, and its lists cut. */
function within(value: unknown): unknown {
  if (typeof value === 'string') return shortened(value, LONGEST_TEXT);
  if (Array.isArray(value)) return value.slice(0, MOST_ITEMS).map(within);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, within(each)]));
}

/** The row as a report can hold it; a broken one where its figures have no such form. */
export function fittingRow(row: ExperimentReport): ExperimentReport {
  const fitting = within(row) as ExperimentReport;
  const { success, error } = experimentReport.safeParse(fitting);
  if (success) return fitting;
  const { name, former, was, status } = fitting;
  const message = `Its changes cannot be reported: ${issueText(name, experimentReport, fitting, error.issues[0]!)}.`;
  return {
    name,
    status: status === 'removed' ? status : 'broken',
    ...(former === undefined ? {} : { former }),
    ...(was === undefined ? {} : { was }),
    constants: [],
    fields: [],
    newError: { message },
  };
}
