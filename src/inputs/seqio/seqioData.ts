/** @file The data of a SeqioInput, opened: the examples of its tasks, and how rows are made of them. */
import type { OnError, SkippedExamples } from '../skippedExamples.js';
import type { BaseFeatureConverter } from './featureConverter.js';
import type { LaneSetting } from './lane.js';
import { type HostShare, Lanes } from './lanes.js';
import { checkVocabularies, type MixtureOrTask, type Task } from './seqioTask.js';
import { type OpenTasks, openTasks } from './taskExamples.js';

/** Fields of an input's config for its data. */
interface DataSetting extends HostShare {
  readonly splitName: string;
  readonly taskFeatureLengths: Readonly<Record<string, number>>;
  readonly trimOutputFeatures: boolean;
  readonly numLanes: number;
  readonly packingRows: number;
  readonly onError: OnError;
  readonly evalNumExamples: number | null;
  readonly evalAutoPad: boolean;
  readonly inputRandomSeed: number | null;
}

/** Reader of examples. */
interface DataReader {
  readonly mixture: MixtureOrTask;
  readonly tasks: readonly Task[];
  readonly converter: BaseFeatureConverter;
  readonly shuffles: boolean;
  readonly repeats: boolean;
  /** Whether each example gives one row. */
  readonly isAligned: boolean;
  readonly skipped: SkippedExamples;
}

export interface OpenData extends OpenTasks {
  readonly setting: LaneSetting;
  /** null where each example gives one row: then rows are numbered as examples are. */
  readonly lanes: Lanes | null;
}

/** Opens the tasks of a split. @throws InputError for data that cannot be read, and for vocabularies that differ */
export function openData(hp: DataSetting, reader: DataReader): OpenData {
  const { mixture, converter, shuffles, repeats, skipped } = reader;
  const seed = hp.inputRandomSeed ?? 0;
  checkVocabularies(reader.tasks);
  const weighted = mixture.weightedTasks(hp.splitName);
  const { tasks, contents } = openTasks(weighted, hp.splitName, { seed, shuffles, repeats });
  const lengths = hp.taskFeatureLengths;
  const setting: LaneSetting = {
    tasks,
    features: tasks.map(({ task }) => converter.readFeatures({ features: task.hp.features, lengths })),
    converter,
    lengths,
    trims: hp.trimOutputFeatures,
    seed,
    shuffles,
    numLanes: repeats ? hp.numLanes : 1,
    groupRows: hp.packingRows,
    maxExamples: hp.evalNumExamples ?? Number.POSITIVE_INFINITY,
    onError: hp.onError,
    skipped,
  };
  return { tasks, contents, setting, lanes: reader.isAligned ? null : newLanes(setting, hp) };
}

/** Lanes at the beginning of the data. */
export function newLanes(setting: LaneSetting, hp: DataSetting): Lanes {
  return new Lanes(setting, hp, !hp.evalAutoPad);
}
