/** @file What commands write to files, and what they report of it. */
import { dirname } from 'node:path';
import { makeDirectory, writeWhole } from '../files/index.js';
import { showFile } from '../registry/directories.js';
import { UsageError } from '../registry/usageError.js';
import type { Report } from './command.js';
import { codeSpan, formatBytes } from './format.js';

/**
 * Writes what was made of the experiment to the file that --out names, whole or not at all. Directories above it are made.
 *
 * @throws UsageError where it cannot be written.
 */
export function written(experiment: string, file: string, text: string): Report {
  try {
    makeDirectory(dirname(file));
    writeWhole(file, text);
  } catch (error) {
    throw new UsageError(`--out=${file}: cannot be written: ${(error as Error).message}.`);
  }
  const bytes = Buffer.byteLength(text);
  const shown = showFile(file);
  return {
    text: () => `Wrote ${shown}, ${formatBytes(bytes)}.`,
    json: () => ({ experiment, file: shown, bytes }),
    markdown: () => `Wrote ${codeSpan(shown)}, ${formatBytes(bytes)}.`,
  };
}
