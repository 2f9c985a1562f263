/** @file Comparison of two experiments of the working tree. */
import { realpathSync } from 'node:fs';
import type { Override } from '../../cli/index.js';
import { UsageError } from '../../registry/index.js';
import { resolveFor } from '../commandExperiment.js';
import { compareExperiment, type Version } from './compare.js';
import { DeclaredPlaces, type Placed, withDeclaredPlaces } from './declaredPlaces.js';
import type { DiffReport } from './diffReport.js';
import { Evaluation } from './evaluate.js';
import { tidiedDocument, treeAt } from './versionTree.js';

/**
 * What makes the experiment `old` the experiment `now`, both changed as flags say.
 *
 * @throws UsageError for an unknown experiment, and for one that cannot be made.
 */
export async function compareTwo(
  old: string,
  now: string,
  changes: readonly Override[],
): Promise<DiffReport> {
  const root = realpathSync(process.cwd());
  const tree = treeAt(root, { root, project: root });
  const evaluation = new Evaluation();
  const places = new DeclaredPlaces(tree, tree);
  const version = async (given: string): Promise<Version & Placed & { name: string }> => {
    const { name } = await resolveFor(given);
    const document = tidiedDocument(await evaluation.configs({ name, changes }), tree);
    if ('error' in document) {
      const { message, place } = document.error;
      throw new UsageError(`${name}: ${message}${place === undefined ? '' : ` (at ${place})`}`);
    }
    return { name, document, places, analysis: await evaluation.analysis({ name, changes }) };
  };
  const before = await version(old);
  const after = await version(now);
  const report = withDeclaredPlaces(compareExperiment(after.name, before, after, []), before, after);
  const isUnchanged = report.status === 'unchanged';
  return {
    format: 'luthier-config-diff',
    version: 1,
    old: { label: before.name },
    new: { label: after.name },
    experiments: isUnchanged ? [] : [report],
    declarations: [],
    thresholds: [],
    unchanged: Number(isUnchanged),
    untouched: 0,
    notes: [],
  };
}
