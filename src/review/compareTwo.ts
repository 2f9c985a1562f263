/** @file Comparison of two experiments of the working tree. */
import { realpathSync } from 'node:fs';
import type { Override } from '../cli/index.js';
import { experimentDirectories, fullNameOf, requiredName, scan } from '../registry/names/index.js';
import { UsageError } from '../system/text/index.js';
import { compareExperiment, type Version } from './changes/compare.js';
import { DeclaredPlaces, type Placed, withDeclaredPlaces } from './changes/declaredPlaces.js';
import { type Resumable, type ResumptionAnswers, resumptionsOf } from './changes/resumptions.js';
import type { DiffReport } from './reports/diffReport.js';
import { Evaluator, type Limits } from './versions/evaluators.js';
import { Sources } from './versions/sources.js';
import { treeAt } from './versions/versionTree.js';

/**
 * Changes from the experiment `old` to the experiment `now`, both with the changes of flags.
 *
 * @throws UsageError for an unknown experiment, and for one whose configs cannot be made.
 */
export async function compareTwo(
  old: string,
  now: string,
  changes: readonly Override[],
  limits: Limits,
): Promise<DiffReport> {
  const { experiments, unclassified } = scan(experimentDirectories());
  const known = experiments.filter(({ abstract }) => !abstract).map(({ name }) => name);
  // Whether one of these is an experiment, the evaluator tells.
  const open = unclassified.map(({ name }) => name);
  const nameOf = (name: string): string =>
    fullNameOf(name, known) ?? fullNameOf(name, open) ?? requiredName(name, known, 'in the working tree');
  const names = [old, now].map(nameOf);
  const root = realpathSync(process.cwd());
  const tree = treeAt(root, { root, project: root });
  const { stateOf } = new Sources(tree, new Set());
  const evaluator = new Evaluator(tree, 'the working tree', tree, limits, undefined, stateOf);
  try {
    await evaluator.start();
    const [before, after] = await versionsOf(names, evaluator, changes, new DeclaredPlaces(tree, tree));
    return reportOf(before!, after!, await resumption(names, evaluator, changes));
  } finally {
    await evaluator.end();
  }
}

type Named = Version & Placed & { readonly name: string };

async function versionsOf(
  names: readonly string[],
  evaluator: Evaluator,
  changes: readonly Override[],
  places: DeclaredPlaces,
): Promise<Named[]> {
  const asked = { names, changes, processes: 1 };
  const documents = await evaluator.configs(asked);
  for (const document of documents.values()) {
    if (!('error' in document)) continue;
    const { message, place } = document.error;
    throw new UsageError(`${document.name}: ${message}${place === undefined ? '' : ` (at ${place})`}`);
  }
  const analyses = await evaluator.analyses(asked);
  return names.map((name) => ({
    name,
    document: documents.get(name)!,
    analysis: analyses.get(name)!,
    places,
  }));
}

/** How the second experiment goes on from a run of the first, as with `--checkpoint`. */
async function resumption(
  [old, now]: readonly string[],
  evaluator: Evaluator,
  changes: readonly Override[],
): Promise<ResumptionAnswers | undefined> {
  const asked = (name: string) => ({ names: [name], changes, processes: 1 });
  const saves: Resumable['saved'] = async () =>
    new Map([[now!, (await evaluator.saved(asked(old!))).get(old!)!]]);
  const resumes: Resumable['resumed'] = async (saved) =>
    saved.size === 0 ? new Map() : evaluator.resumed({ ...asked(now!), saved, ofAny: true });
  const side = { saved: saves, resumed: resumes };
  return (await resumptionsOf([now!], side, side, () => true)).get(now!);
}

function reportOf(before: Named, after: Named, answers: ResumptionAnswers | undefined): DiffReport {
  const report = withDeclaredPlaces(compareExperiment(after.name, before, after, [], answers), before, after);
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
