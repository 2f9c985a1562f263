/** @file Reading of diff reports, which may come from a stranger's code. */
import { issueText } from '../../hparams/index.js';
import { UsageError } from '../../system/text/index.js';
import { type DiffReport, diffReport } from './diffReport.js';

/** A text that is no diff report. */
export class ReportError extends UsageError {
  override name = 'ReportError';
}

/** Parses the document of `luthier diff --format=json`. @throws ReportError that names the first problem. */
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
    `The report has another version's format: ${issueText('report', diffReport, value, error.issues[0]!)}.`,
  );
}
