/** @file A command's experiment: lookup, configs, and the file given by --out. */

import { dirname } from 'node:path';
import { type ConfiguredExperiment, configure, loadConfigModules } from '../cli/index.js';
import { makeDirectory, writeWhole } from '../files/index.js';
import { type ResolvedExperiment, resolveExperiment } from '../registry/index.js';
import { showFile } from '../registry/names/index.js';
import { formatBytes } from '../review/text/index.js';
import { UsageError } from '../system/text/index.js';
import type { Arguments, Report } from './command.js';

/** Resolves an experiment; from here on, short names refer to the library's classes. */
export async function resolveFor(name: string): Promise<ResolvedExperiment> {
  const resolved = await resolveExperiment(name);
  // The experiment has loaded the library already.
  (await import('../rooms.js')).registerLibrary();
  return resolved;
}

/** Configures a resolved experiment by the flags; prints warnings, and the fields that patterns changed. */
export async function configureResolved(
  resolved: ResolvedExperiment,
  { changes, warn }: Pick<Arguments, 'changes' | 'warn'>,
): Promise<ConfiguredExperiment> {
  await loadConfigModules(changes);
  const configured = configure(resolved, changes);
  for (const line of [...configured.warnings, ...configured.hits]) warn(line);
  return configured;
}

/** Resolves and configures an experiment by the flags; prints warnings. */
export async function configureFor(
  name: string,
  args: Pick<Arguments, 'changes' | 'warn'>,
): Promise<ConfiguredExperiment> {
  return configureResolved(await resolveFor(name), args);
}

/**
 * Writes a command's output to the --out file atomically, creating directories as needed.
 *
 * @throws UsageError if it can't be written.
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
  };
}
