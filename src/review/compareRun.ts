/** @file Comparison of a run with the working tree's code, which resumes it or refuses. */
import { existsSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Override, parseShellText } from '../cli/index.js';
import { explain } from '../files/index.js';
import { readExperiment } from '../runs/index.js';
import { UsageError } from '../system/text/index.js';
import { resumptionOf } from './changes/checkpointEffect.js';
import { compareExperiment } from './changes/compare.js';
import { DeclaredPlaces, withDeclaredPlaces } from './changes/declaredPlaces.js';
import type { CheckpointEffect, DiffReport } from './reports/diffReport.js';
import { Evaluator, type Limits } from './versions/evaluators.js';
import type { AnalysisDocument, ExperimentDocument } from './versions/protocol.js';
import { treeAt } from './versions/versionTree.js';

/** A comparison of a run's record with the working tree, and how the run goes on. */
export interface RunReport {
  readonly report: DiffReport;
  readonly goesOn: CheckpointEffect['goesOn'];
}

/**
 * Asks the code that resumes whether the run in `directory` goes on from its newest checkpoint, with the flags that the run
 * has recorded and those of `changes`. The settings are compared with the recorded ones; code is compared by what it makes of
 * both, as the run's own code is not at hand.
 *
 * @throws UsageError for a directory without a record or a checkpoint, and for an experiment that can't be made
 */
export async function compareRun(
  directory: string,
  changes: readonly Override[],
  limits: Limits,
): Promise<RunReport> {
  const { name, overrides, gitRevision } = recordOf(directory);
  const root = realpathSync(process.cwd());
  const tree = treeAt(root, { root, project: root });
  const evaluator = new Evaluator(tree, 'the working tree', tree, limits);
  const before = { names: [name], changes: [], run: resolve(directory), processes: 1 };
  const flags = overrides.map(parseShellText);
  const now = { names: [name], changes: [...flags, ...changes], processes: 1 };
  try {
    await evaluator.start();
    const present = await versionOf(now, evaluator);
    const { document } = present;
    if ('error' in document) throw new UsageError(`${name}: ${document.error.message}`);
    // The experiment's module is loaded by now, with classes that it does not export.
    const saved = (await evaluator.saved(before)).get(name)!;
    if ('notSaved' in saved) throw new UsageError(`${directory}: ${saved.notSaved}`);
    const recorded = await versionOf(before, evaluator);
    const problem = 'error' in recorded.document ? recorded.document.error : undefined;
    const old = problem === undefined ? { ...recorded, document: withoutPlaces(recorded.document) } : present;
    const places = new DeclaredPlaces(tree, tree);
    const text = JSON.stringify(saved.saved);
    const resumed = (await evaluator.resumed({ ...now, saved: new Map([[name, text]]) })).get(name);
    const compared = compareExperiment(name, old, present, [], { saved, resumed });
    const report = withDeclaredPlaces(compared, { ...old, places }, { ...present, places });
    const { goesOn } = report.checkpoints ?? resumptionOf(saved, resumed, report.fields)!;
    const isUnchanged = report.status === 'unchanged';
    return {
      goesOn,
      report: {
        ...{ format: 'luthier-config-diff', version: 1, declarations: [], thresholds: [], untouched: 0 },
        old: { label: `${directory}, step ${saved.saved.run.description.step}` },
        new: { label: 'working tree' },
        experiments: isUnchanged ? [] : [report],
        unchanged: Number(isUnchanged),
        notes: [
          ...(isUnchanged && goesOn === 'same' ? [`${name} goes on with the same bits.`] : []),
          ...(isUnchanged && goesOn === 'unknown'
            ? [`${name} goes on; whether with the same bits is not known.`]
            : []),
          ...(problem === undefined
            ? [codeNote(name, gitRevision)]
            : [`The recorded settings can't be read by this code: ${problem.message}`]),
        ],
      },
    };
  } finally {
    await evaluator.end();
  }
}

/** @throws UsageError where there is no record of a run */
function recordOf(directory: string): ReturnType<typeof readExperiment> {
  if (!existsSync(join(directory, 'experiment.json')))
    throw new UsageError(
      `${directory}: expected the directory of a run, which has an experiment.json, and there is none.`,
    );
  try {
    return readExperiment(directory);
  } catch (error) {
    throw new UsageError(`${directory}/experiment.json is not the record of a run: ${explain(error)}.`, {
      cause: error,
    });
  }
}

/** Configs without constants, as a run has recorded none, and the model's analysis. */
async function versionOf(
  asked: Parameters<Evaluator['configs']>[0],
  evaluator: Evaluator,
): Promise<{ readonly document: ExperimentDocument; readonly analysis: AnalysisDocument }> {
  const [name] = asked.names as readonly [string];
  const document = (await evaluator.configs(asked)).get(name)!;
  const analysis = (await evaluator.analyses(asked)).get(name)!;
  return { document: 'error' in document ? document : { ...document, constants: [] }, analysis };
}

/** Configs without the places where the reader of the record set them. */
function withoutPlaces(document: ExperimentDocument): ExperimentDocument {
  if ('error' in document) return document;
  const configs = document.config.configs.map((entry) => ({ ...entry, places: {} }));
  return { ...document, config: { ...document.config, configs } };
}

function codeNote(name: string, gitRevision: string | null): string {
  const told =
    'Settings were compared, and both by the code of now; what the code computed then is not known.';
  if (gitRevision === null) return told;
  return `${told} npx luthier diff ${name} --base=${gitRevision.slice(0, 12)} --exact compares it.`;
}
