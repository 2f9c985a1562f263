/** @file Reading of diff reports, which may come from a stranger's code. */
import { issueText } from '../../hparams/fields/check.js';
import { UsageError } from '../../registry/usageError.js';
import { type DiffReport, diffReport } from './diffReport.js';

/** A text that is no diff report. */
export class ReportError extends UsageError {
  override name = 'ReportError';
}

/** Reads what `luthier diff --format=json` printed. @throws ReportError that names the first thing that is wrong. */
export function parseReport(json: string): DiffReport {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new ReportError(`The report is no JSON: ${(cause as Error).message}`, { cause });
  }
  const { success, data, error } = diffReport.safeParse(value);
  if (success) return data;
  throw new ReportError(
    `The report is none of this version: ${issueText('report', diffReport, value, error.issues[0]!)}.`,
  );
}
