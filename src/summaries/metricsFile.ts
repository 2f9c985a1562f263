/** @file metrics.jsonl: one JSON object a line, in the order of writing. */

import { closeSync, existsSync, fstatSync } from 'node:fs';
import {
  AppendedFile,
  keepRanges,
  type LineRange,
  linesFromEnd,
  openRegularFile,
  readFully,
} from '../files/index.js';
import { formatMetricsLine, type MetricsLine, parseMetricsLine } from './metricsLine.js';
import { onPath } from './summaryError.js';

export interface MetricsFileOptions {
  /**
   * The step that a training run resumes from, 0 for a new one: lines of later steps are removed, since this run writes them
   * again. Undefined keeps every line, as for programs that only evaluate.
   */
  readonly resumeStep?: number | undefined;
  /** Programs that write their line of `resumeStep` again. */
  readonly again?: readonly string[] | undefined;
  /** Receives problems while the run continues. */
  readonly notify?: ((message: string) => void) | undefined;
}

/**
 * Appends to metrics.jsonl; each line is with the system when `write` returns, and once the file is open, no failure to
 * write ends the run: see AppendedFile.
 */
export class MetricsFile {
  readonly #file: AppendedFile;

  /** @throws SummaryError when the file cannot be written */
  constructor(
    readonly path: string,
    options: MetricsFileOptions = {},
  ) {
    this.#file = onPath(path, () => {
      const endsOpen = removeUnwantedLines(path, options);
      const file = new AppendedFile(path, { notify: options.notify });
      if (endsOpen) file.append(Buffer.from('\n'));
      return file;
    });
  }

  /** Writes one line; the fields keep their order. */
  write(line: MetricsLine): void {
    this.#file.append(Buffer.from(`${formatMetricsLine(line)}\n`));
  }

  /** Writes waiting lines and closes the file. @throws SummaryError where they still can't be written. */
  close(): void {
    onPath(this.path, () => this.#file.close());
  }
}

/**
 * Removes lines that will be written again, and the torn line that a killed run may leave. They all follow the last
 * training line that stays: before it wrote that line, training had removed those of later steps.
 *
 * @returns whether the file now ends without a newline.
 */
function removeUnwantedLines(path: string, options: MetricsFileOptions): boolean {
  if (!existsSync(path)) return false;
  const file = openRegularFile(path);
  try {
    const { size } = fstatSync(file);
    const kept = wantedLines(file, size, options);
    const end = kept.at(-1)?.end ?? 0;
    // Another process may have written a line meanwhile.
    if (fstatSync(file).size !== size) return removeUnwantedLines(path, options);
    if (kept.length > 1 || end !== size) keepRanges(path, kept);
    const last = new Uint8Array(1);
    return end > 0 && readFully(file, last, end - 1) === 1 && last[0] !== 10;
  } finally {
    closeSync(file);
  }
}

/** Ranges to keep of a file of `size` bytes, in rising order. */
function wantedLines(
  file: number,
  size: number,
  { resumeStep = Number.POSITIVE_INFINITY, again = [] }: MetricsFileOptions,
): LineRange[] {
  const kept: { start: number; end: number }[] = [];
  for (const { start, end, text } of linesFromEnd(file, size)) {
    const line = text === undefined ? undefined : parseMetricsLine(text);
    if (line === undefined) continue;
    const { program, step } = line;
    const hasStep = typeof step === 'number';
    if (hasStep && (step > resumeStep || (step === resumeStep && again.includes(String(program))))) continue;
    const isLast = hasStep && program === 'train';
    const from = isLast ? 0 : start;
    if (kept.at(-1)?.start === end) kept.at(-1)!.start = from;
    else kept.push({ start: from, end });
    if (isLast) break;
  }
  return kept.reverse();
}
