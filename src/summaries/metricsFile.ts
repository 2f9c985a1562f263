/** @file metrics.jsonl: one JSON object a line, in the order of writing. */

import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeDirectory, writeWhole } from '../files/index.js';
import { onPath } from './errors.js';

/** What a line holds: numbers, and words about them. */
export type MetricsLine = Readonly<Record<string, number | string | boolean | null>>;

export interface MetricsFileOptions {
  /**
   * The step that a training run continues from, 0 for a new one: lines of later steps are removed, since this run
   * writes them again. Undefined keeps every line, as programs do that only evaluate.
   */
  readonly resumeStep?: number | undefined;
}

/**
 * Appends to metrics.jsonl; each line is with the system when `write` returns. JSON has no non-finite numbers: they are
 * the strings "NaN", "Infinity" and "-Infinity", which JavaScript's Number() and Python's float() read.
 */
export class MetricsFile {
  readonly #file: number;

  /** @throws SummaryError when the file cannot be written */
  constructor(
    readonly path: string,
    options: MetricsFileOptions = {},
  ) {
    this.#file = onPath(path, () => {
      makeDirectory(dirname(path));
      removeUnwantedLines(path, options.resumeStep ?? Number.POSITIVE_INFINITY);
      return openSync(path, 'a');
    });
  }

  /** Writes one line; the fields keep their order. */
  write(line: MetricsLine): void {
    const text = JSON.stringify(line, (_, value) =>
      typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
    );
    onPath(this.path, () => writeSync(this.#file, `${text}\n`));
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** Removes lines of steps after `lastStep`, and the torn line that a killed run may leave. */
function removeUnwantedLines(path: string, lastStep: number): void {
  if (!existsSync(path)) return;
  const text = readFileSync(path, 'utf8');
  const lines = text.split('\n').filter((line) => line !== '');
  const kept = lines
    .filter((line) => isWanted(line, lastStep))
    .map((line) => `${line}\n`)
    .join('');
  if (kept === text) return;
  writeWhole(path, kept);
}

function isWanted(line: string, lastStep: number): boolean {
  try {
    const { step } = JSON.parse(line) as { step?: unknown };
    return typeof step !== 'number' || step <= lastStep;
  } catch {
    return false;
  }
}
