/** @file A command's experiment: lookup, configs, and the file given by --out. */

import { dirname } from 'node:path';
import { type ConfiguredExperiment, configure } from '../cli/index.js';
import { makeDirectory, writeWhole } from '../files/index.js';
import { showFile } from '../registry/directories.js';
import { type ResolvedExperiment, resolveExperiment } from '../registry/index.js';
import { UsageError } from '../registry/usageError.js';
import type { Arguments, Report } from './command.js';
import { codeSpan, formatBytes } from './reportFormat.js';

/** The experiment called `name`. The classes of the library are known from here on: short names mean them. */
export async function resolveFor(name: string): Promise<ResolvedExperiment> {
  const resolved = await resolveExperiment(name);
  // Experiments are made of it: it is loaded by now.
  (await import('../rooms.js')).registerLibrary();
  return resolved;
}

/** A resolved experiment with its configs, changed as the flags say; warnings go to the terminal. */
export function configureResolved(
  resolved: ResolvedExperiment,
  { changes, warn }: Pick<Arguments, 'changes' | 'warn'>,
): ConfiguredExperiment {
  const configured = configure(resolved, changes);
  for (const warning of configured.warnings) warn(warning);
  return configured;
}

/** The experiment called `name` with its configs, changed as the flags say; warnings go to the terminal. */
export async function configureFor(
  name: string,
  args: Pick<Arguments, 'changes' | 'warn'>,
): Promise<ConfiguredExperiment> {
  return configureResolved(await resolveFor(name), args);
}

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
