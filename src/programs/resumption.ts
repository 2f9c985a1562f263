/**
 * @file Whether code goes on from the checkpoints of a run, decided as a job does at its start, from their descriptions:
 * no value is read, and no memory taken.
 */
import {
  type CheckpointDescription,
  describeState,
  locateCheckpoint,
  planRestore,
  readBeside,
  readMetadata,
} from '../checkpoints/index.js';
import { build } from '../hparams/index.js';
import { type DataIdentity, type InputState, recordedIdentity, withDigests } from '../inputs/index.js';
import { changingPart } from '../learners/index.js';
import type { JobOptions } from '../runs/index.js';
import { CheckpointLoadingRules, type SingleTask } from '../tasks/index.js';
import { dataRecordPath, keptRecord, recordedData } from './dataRecord.js';
import { checkDatasets, programsOf, restoreStates } from './jobPrograms.js';
import { VariableMatcher } from './loadedVariables.js';
import { ProgramDataset, TRAIN, trainingDataset } from './programDataset.js';
import { ProgramInputs } from './programInputs.js';
import { readProgress } from './progress.js';
import { differencesTold, OPTIONAL_SLOTS, setPosition, slotDifferences } from './startingCheckpoint.js';

/** An experiment with its configs, as jobs have it. */
export type Trainable = Pick<
  JobOptions,
  'name' | 'task' | 'datasets' | 'decodeDatasets' | 'evalPrograms' | 'decodePrograms'
>;

/** Descriptions of a checkpoint and of its run's data, as JSON. */
export interface SavedRun {
  readonly description: CheckpointDescription;
  readonly data?: {
    readonly identity: DataIdentity;
    /** Null where none was saved. */
    readonly inputState: InputState | null;
  };
  /** Why the data is unknown. */
  readonly noData?: string;
  /** Content of progress.json; absent for a run that has not begun. */
  readonly progress?: unknown;
  /** Paths of the checkpoint and of the record of the data, where there are. */
  readonly checkpoint?: string;
  readonly record?: string;
}

/** A run that goes on. */
export interface Resumption {
  /** Differences from the run as it was left, each with the sentence that the job says about it. */
  readonly differences: ReturnType<typeof differencesTold>;
}

/** Batches that a run has taken that is described without training. */
const BATCHES = 2;

const jobOf = (experiment: Trainable): JobOptions => ({
  ...experiment,
  ...{ jobLogDir: '', moduleUrl: '', mode: 'train_and_eval', overrides: [], classVars: '' },
});

/**
 * The description of an experiment's checkpoints after a few steps; nothing is trained.
 *
 * @throws ConfigError, LayerError for an experiment that can't be built
 */
export async function savedRun(
  experiment: Trainable,
  reasonOf: (error: unknown) => string,
): Promise<SavedRun> {
  const task = build(experiment.task);
  const layout = task.layout();
  const slotLayouts = task.slotLayouts();
  const state = { step: BATCHES, layout, changing: changingPart(layout), slotLayouts };
  const description = describeState(state, experiment.name, new Date(0), {});
  try {
    return { description, data: await dataOf(experiment) };
  } catch (error) {
    return { description, noData: reasonOf(error) };
  }
}

/**
 * The description of the newest checkpoint in a run's directory, and of its data.
 *
 * @throws CheckpointError where there is none, or it is broken; JobError for a record of the data that can't be read
 */
export function savedIn(jobLogDir: string): SavedRun {
  const checkpoint = locateCheckpoint(jobLogDir);
  const metadata = readMetadata(checkpoint);
  const { files: _, ...description } = metadata;
  const { inputState, progress } = readBeside(checkpoint, metadata);
  const record = dataRecordPath(jobLogDir, TRAIN);
  const identity = recordedData(jobLogDir, TRAIN);
  const data =
    identity === undefined
      ? { noData: `${record} is missing` }
      : { data: { identity, inputState: inputState as InputState | null } };
  return { description, ...data, progress, checkpoint, record };
}

async function dataOf(experiment: Trainable): Promise<NonNullable<SavedRun['data']>> {
  const input = build(trainingDataset(experiment));
  try {
    await input.skip(BATCHES);
    const inputState = input.getState();
    return { identity: withDigests(recordedIdentity(input)), inputState };
  } finally {
    await input.close();
  }
}

/**
 * Goes on from a checkpoint as far as its description.
 *
 * @param path of the checkpoint, and of the run's record of its data, for messages.
 * @param ofAny whether a checkpoint of another experiment will do, as with `--checkpoint`.
 * @throws the error with which a job ends at its start
 */
export async function resume(
  experiment: Trainable,
  saved: SavedRun,
  path: { readonly checkpoint: string; readonly data: string },
  ofAny = false,
): Promise<Resumption> {
  const { description, data, progress } = saved;
  const job = jobOf(experiment);
  const task = build(experiment.task);
  const records = keptRecord(data?.identity, path.data);
  const dataset = new ProgramDataset(job, task, trainingDataset(job), TRAIN, records);
  const inputs = new ProgramInputs(job, task, records);
  try {
    if (data !== undefined) dataset.open();
    const plan = planRestore(
      path.checkpoint,
      description,
      { layout: task.layout(), slotLayouts: task.slotLayouts() },
      { experiment: ofAny ? undefined : experiment.name, optionalSlots: OPTIONAL_SLOTS },
    );
    const changes = data === undefined ? undefined : setPosition(dataset, data.inputState);
    const kept = readProgress(progress, path.checkpoint);
    const list = programsOf(job, task);
    if (data !== undefined) checkDatasets(list, inputs);
    if (kept !== undefined) restoreStates(list, kept);
    return { differences: differencesTold({ changes, ...slotDifferences(plan) }) };
  } finally {
    await Promise.all([dataset.close(), inputs.close()]);
  }
}

/** Variables that `initFromCheckpoint` loads from a checkpoint into a new run, by its rules' defaults, and those that it does not. */
export interface Loadable {
  readonly loads: readonly string[];
  readonly keeps: readonly string[];
}

/** The variables that can begin a new run, where the old one can't go on. */
export function loadable(task: SingleTask, description: CheckpointDescription): Loadable {
  const { variables } = description;
  const layout = task.layout();
  const source = {
    names: Object.keys(variables),
    shapeOf: (name: string) => (Object.hasOwn(variables, name) ? variables[name]!.shape : undefined),
    dtypeProblem: () => undefined,
    areEqual: () => false,
  };
  const rules = build(CheckpointLoadingRules.config({ checkpoint: 'RUN' }));
  const found = new VariableMatcher(rules, source, undefined, layout).match();
  const names = layout.entries.map(({ name }) => name);
  return { loads: [...found.keys()], keeps: names.filter((name) => !found.has(name)) };
}
