/** @file Summary of a job directory: state, last step, metrics, settings, problems. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { listCheckpoints } from '../checkpoints/index.js';
import { explain, readJsonFile, readRegularFile } from '../files/index.js';
import { lockHolder } from '../system/index.js';
import { parseSettings } from './jobFiles.js';
import { goodputMetrics, metricsFromEnd } from './metricValues.js';
import { durationOf, type RunStatus, readStatus } from './runStatus.js';

/** A value and the step that it is of. */
interface ValueAt {
  readonly step: number;
  readonly value: number;
}

/** Last, lowest and highest value of a metric; lowest and highest are of finite values, the earliest of equal ones. */
export interface MetricSummary {
  readonly last: ValueAt;
  min?: ValueAt;
  max?: ValueAt;
}

/**
 * `running`: a process trains there. `finished`: it has trained to its last step, or a program has ended it. `stopped`: a
 * signal has, and all its steps are saved. `failed`: an error has. `unfinished`: it was killed, or has not begun.
 */
type RunState = RunStatus['state'] | 'unfinished';

/** A constant of a run. */
interface RunConstant {
  /** As JSON. */
  readonly value: string;
  /** The class or flag that set it. */
  readonly setBy: string;
}

/** A job directory's record of its run. */
export interface RunSummary {
  readonly directory: string;
  readonly state: RunState;
  /** Signal, reason of a program that ended training, or first line of the error. */
  readonly reason?: string;
  /** Duration of all processes that trained. */
  readonly seconds?: number;
  /** The last step in metrics.jsonl or of a checkpoint. */
  readonly step: number;
  readonly numTrainSteps?: number;
  /** By program and metric: `train/loss`, `eval_test_validation/total_loss`. */
  readonly metrics: ReadonlyMap<string, MetricSummary>;
  /** Fields of the configs by path, as text; the experiment's name as `experiment`. */
  readonly settings: ReadonlyMap<string, string>;
  /** The experiment's constants by name. */
  readonly constants: ReadonlyMap<string, RunConstant>;
  /** Flags that changed the experiment, as written. */
  readonly overrides: readonly string[];
  /** Files that are missing or can't be read. */
  readonly problems: readonly string[];
}

/** Summarises the metrics of a metrics.jsonl of any size, in bounded memory. Leaves out a torn line. @throws for no regular file */
export function readMetrics(directory: string): Map<string, MetricSummary> {
  const metrics = new Map<string, MetricSummary>();
  for (const { metric, step, value } of metricsFromEnd(directory)) count(metrics, metric, { step, value });
  return metrics;
}

/** Counts a value that is earlier than those before. */
function count(metrics: Map<string, MetricSummary>, name: string, at: ValueAt): void {
  const known = metrics.get(name) ?? { last: at };
  metrics.set(name, known);
  if (!Number.isFinite(at.value)) return;
  if (known.min === undefined || at.value <= known.min.value) known.min = at;
  if (known.max === undefined || at.value >= known.max.value) known.max = at;
}

/** The fields of model_params.txt by path. */
function readSettings(directory: string): Map<string, string> {
  return parseSettings(readRegularFile(join(directory, 'model_params.txt')).toString());
}

/** The constants in experiment_cls_vars.txt: `Setter:` lines, each above its `  name: value` lines. */
function readConstants(directory: string): Map<string, RunConstant> {
  const constants = new Map<string, RunConstant>();
  let setBy = '';
  for (const line of readRegularFile(join(directory, 'experiment_cls_vars.txt')).toString().split('\n')) {
    const found = /^ {2}([^:]+): (.*)$/.exec(line);
    if (found) constants.set(found[1]!, { value: found[2]!, setBy });
    else setBy = line.replace(/:$/, '');
  }
  return constants;
}

const experimentSchema = z.looseObject({
  name: z.string(),
  overrides: z.array(z.string()).default([]),
  gitRevision: z.string().nullable().default(null),
});

/** Name and flags of a run's experiment, and the commit of its code. @throws Error where the record can't be read */
export const readExperiment = (directory: string): Readonly<z.output<typeof experimentSchema>> =>
  readJsonFile(join(directory, 'experiment.json'), experimentSchema);

/** Reads a job directory; a broken part becomes a problem, and the rest is still reported. */
export async function readRun(directory: string): Promise<RunSummary> {
  const problems: string[] = [];
  const attempt = <T>(file: string, otherwise: T, act: () => T): T => {
    try {
      return act();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        problems.push(`${file} cannot be read: ${explain(error)}`);
      else if (!isYoung) problems.push(`${file} is missing`);
      return otherwise;
    }
  };
  // A run writes its status first, and the other files once the experiment, its data and its programs are ready.
  let isYoung = false;
  const status = attempt('status.json', undefined, () => readStatus(directory));
  isYoung = status !== undefined && !existsSync(join(directory, 'experiment.json'));
  const isRunning = existsSync(directory) && (await lockHolder(join(directory, '.train.lock'))) !== undefined;
  const experiment = attempt('experiment.json', undefined, () => readExperiment(directory));
  const settings = attempt('model_params.txt', new Map<string, string>(), () => readSettings(directory));
  const constants = attempt('experiment_cls_vars.txt', new Map<string, RunConstant>(), () =>
    existsSync(join(directory, 'experiment_cls_vars.txt')) ? readConstants(directory) : new Map(),
  );
  const metrics = attempt('metrics.jsonl', new Map<string, MetricSummary>(), () => readMetrics(directory));
  for (const { metric, ...at } of attempt('goodput.jsonl', [], () => goodputMetrics(directory)))
    metrics.set(metric, { last: at, min: at, max: at });
  const checkpoints = attempt('checkpoints', new Map<number, string>(), () =>
    listCheckpoints(join(directory, 'checkpoints')),
  );
  const step = Math.max(metrics.get('train/loss')?.last.step ?? 0, ...checkpoints.keys());
  const numTrainSteps = Number(settings.get('task.train.numTrainSteps') ?? Number.NaN);
  if (experiment !== undefined) settings.set('experiment', experiment.name);
  const overrides = experiment?.overrides ?? [];
  return {
    ...{
      directory,
      state: stateOf(status, isRunning),
      step,
      metrics,
      settings,
      constants,
      overrides,
      problems,
    },
    ...(status && { seconds: durationOf(status) }),
    ...(!isRunning && status?.reason !== undefined && { reason: status.reason }),
    ...(Number.isFinite(numTrainSteps) && { numTrainSteps }),
  };
}

function stateOf(status: RunStatus | undefined, isRunning: boolean): RunState {
  if (isRunning) return 'running';
  return status === undefined || status.state === 'running' ? 'unfinished' : status.state;
}
