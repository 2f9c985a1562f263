/** @file Descriptions of this version's checkpoints, and going on from those of another version. */
import type { ConfiguredExperiment } from '../../cli/index.js';
import { build, withOrigin } from '../../hparams/index.js';
import { loadable, resume, type SavedRun, savedIn, savedRun } from '../../programs/index.js';
import { reasonOf } from '../fingerprints/digests.js';
import type { Fingerprints } from '../fingerprints/experimentFingerprints.js';
import { type TrainingFingerprint, trainingParts } from '../fingerprints/fingerprintedParts.js';
import { forcingFields } from './forcingFields.js';
import type { Resumed, Saved } from './protocol.js';
import { type Configs, writeConfigs } from './writtenConfigs.js';

/** The description of an experiment's checkpoints, and fingerprints of its training. @throws ConfigError, LayerError */
export async function savedOf(configured: ConfiguredExperiment, fingerprints: Fingerprints): Promise<Saved> {
  const run = await savedRun(configured, reasonOf);
  return { run, training: await fingerprints.training(configured), ...written(configured) };
}

/**
 * The description of the newest checkpoint in a run's directory, and fingerprints of its training by the code of now.
 *
 * @param recorded the experiment with the configs of the run; this code may be unable to build them.
 * @throws CheckpointError, JobError
 */
export async function savedInRun(
  directory: string,
  recorded: () => Promise<ConfiguredExperiment>,
  fingerprints: Fingerprints,
): Promise<Saved> {
  const run = savedIn(directory);
  try {
    const configured = await recorded();
    return { run, training: await fingerprints.training(configured), ...written(configured) };
  } catch (error) {
    const unknown = { notCompared: reasonOf(error) };
    const training = Object.fromEntries(trainingParts.map((part) => [part, unknown]));
    return { run, training: training as TrainingFingerprint };
  }
}

function written(configured: ConfiguredExperiment): { readonly document?: string } {
  try {
    return { document: writeConfigs(configured) };
  } catch {
    // It only tells which fields are to blame.
    return {};
  }
}

/**
 * How an experiment goes on from another version's checkpoints.
 *
 * @param ofAny as in `resume`. @throws ConfigError, LayerError for a task that can't be built
 */
export async function resumedFrom(
  configured: ConfiguredExperiment,
  { run, document }: Pick<Saved, 'run' | 'document'>,
  fingerprints: Fingerprints,
  ofAny = false,
): Promise<Resumed> {
  const task = withOrigin('luthier diff', () => build(configured.task));
  const variables = Object.fromEntries(
    task.layout().entries.map(({ name, shape, storage }) => [name, { shape, dtype: storage ?? 'float32' }]),
  );
  const dataset = `datasets[${configured.datasets.findIndex(({ isTraining }) => isTraining)}]`;
  const attempt = (configs: Configs) => resume({ ...configured, ...configs }, run, labelsOf(run), ofAny);
  try {
    const { differences } = await attempt(configured);
    return { variables, dataset, differences, training: await fingerprints.training(configured) };
  } catch (error) {
    const { loads, keeps } = loadable(task, run.description);
    return {
      ...{ variables, dataset },
      refused: error instanceof Error ? error.message : String(error),
      loads: { count: loads.length, keeps },
      forcedBy: await forcingFields(document, configured, attempt),
    };
  }
}

/** Names of a checkpoint and of the record of its data in errors. */
const labelsOf = ({ checkpoint = 'a checkpoint', record = 'data/train.json' }: SavedRun) => ({
  checkpoint,
  data: record,
});
