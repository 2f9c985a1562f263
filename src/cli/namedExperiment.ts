/** @file The experiment that a command line names: by its name, or by the directory of a run that records it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ResolvedExperiment } from '../registry/index.js';

/** Whether a path is the directory of a run. */
export const hasRecord = (path: string): boolean => existsSync(join(path, 'experiment.json'));

/**
 * Resolves an experiment, which loads its module.
 *
 * @param exp a name, or the directory of a run. @param jobLogDir of the run to be.
 * @throws as `resolveExperiment`, or as `recordedExperiment`
 */
export async function namedExperiment(
  exp: string,
  jobLogDir: string | undefined,
): Promise<ResolvedExperiment> {
  return hasRecord(exp)
    ? (await import('./recordedExperiment.js')).recordedExperiment(exp, jobLogDir)
    : (await import('../registry/index.js')).resolveExperiment(exp);
}
