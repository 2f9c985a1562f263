/** @file Two experiments of the working tree compared. */
import { type Override, UsageError } from '../../registry/index.js';
import { resolveFor } from '../experiment.js';
import { compareExperiment, type Version } from './compare.js';
import { Evaluation } from './evaluate.js';
import type { DiffReport } from './types.js';

/** What makes the experiment `old` the experiment `now`, both changed as flags say. */
export async function compareTwo(
  old: string,
  now: string,
  changes: readonly Override[],
): Promise<DiffReport> {
  const evaluation = new Evaluation();
  const version = async (name: string): Promise<Version> => {
    // A name that none has is an error of the command line, not one of the experiment.
    const { name: full } = await resolveFor(name, changes);
    const document = await evaluation.configs(full, changes);
    if ('error' in document) {
      const { message, place } = document.error;
      throw new UsageError(`${full}: ${message}${place === undefined ? '' : ` (at ${place})`}`);
    }
    return { document, analysis: await evaluation.analysis(full, changes) };
  };
  const before = await version(old);
  const after = await version(now);
  const [oldName, newName] = [before.document!.name, after.document!.name];
  const report = compareExperiment(newName, before, after, []);
  const isUnchanged = report.status === 'unchanged';
  return {
    format: 'luthier-config-diff',
    version: 1,
    old: { label: oldName },
    new: { label: newName },
    experiments: isUnchanged ? [] : [report],
    declarations: [],
    unchanged: Number(isUnchanged),
    untouched: 0,
    notes: [],
  };
}
