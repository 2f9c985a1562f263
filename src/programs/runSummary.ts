/** @file Summary of a job directory: state, last step, metrics, settings, and what is wrong with it. */
import { closeSync, existsSync, fstatSync } from 'node:fs';
import { join } from 'node:path';
import { listCheckpoints } from '../checkpoints/directory.js';
import { explain, linesFromEnd, openRegularFile, readRegularFile } from '../files/index.js';
import { parseMetricsLine } from '../summaries/index.js';
import { lockHolder } from '../system/index.js';

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
 * `running`: a process trains there. `finished`: it has trained to its last step, or its tracked metric has ended it.
 * `stopped`: its newest checkpoint has all the steps that it reported. `unfinished`: steps after it are lost.
 */
type RunState = 'running' | 'finished' | 'stopped' | 'unfinished';

/** What a job directory tells of its run. */
export interface RunSummary {
  readonly directory: string;
  readonly state: RunState;
  /** The last step in metrics.jsonl or of a checkpoint. */
  readonly step: number;
  readonly numTrainSteps?: number;
  /** By program and metric: `train/loss`, `eval_test_validation/total_loss`. */
  readonly metrics: ReadonlyMap<string, MetricSummary>;
  /** Fields of the configs by path, as text; the experiment's name as `experiment`. */
  readonly settings: ReadonlyMap<string, string>;
  /** Files that are missing or can't be read. */
  readonly problems: readonly string[];
}

/** Summarises the metrics of a metrics.jsonl of any size, in bounded memory. Leaves out a torn line. @throws for no regular file */
export function readMetrics(directory: string): Map<string, MetricSummary> {
  const metrics = new Map<string, MetricSummary>();
  const file = openRegularFile(join(directory, 'metrics.jsonl'));
  try {
    for (const { text = '' } of linesFromEnd(file, fstatSync(file).size)) {
      const { program, step, ...fields } = parseMetricsLine(text) ?? {};
      if (typeof program !== 'string' || typeof step !== 'number') continue;
      for (const [field, value] of Object.entries(fields))
        if (typeof value === 'number')
          count(metrics, `${program}/${field.replace(/^Metrics\//, '')}`, { step, value });
    }
  } finally {
    closeSync(file);
  }
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
  const lines = readRegularFile(join(directory, 'model_params.txt')).toString().split('\n');
  return new Map(
    lines.flatMap((line) => {
      const at = line.indexOf(' : ');
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 3)]];
    }),
  );
}

function readName(directory: string): string {
  const { name } = JSON.parse(readRegularFile(join(directory, 'experiment.json')).toString()) as {
    name?: unknown;
  };
  if (typeof name === 'string') return name;
  throw new Error("it has no experiment's name");
}

/** Whether the tracked metric has ended training, by the newest checkpoint. */
function hasEndedEarly(path: string, settings: ReadonlyMap<string, string>): boolean {
  const patience = Number(settings.get('task.train.trackMetric.patience'));
  if (!(patience > 0)) return false;
  const progress = JSON.parse(readRegularFile(join(path, 'progress.json')).toString()) as {
    positions?: { track_metric?: { since?: number } };
  };
  return (progress.positions?.track_metric?.since ?? 0) >= patience;
}

/** Reads what a job directory has; what is broken becomes a problem, and the rest is still told. */
export async function readRun(directory: string): Promise<RunSummary> {
  const problems: string[] = [];
  const attempt = <T>(file: string, otherwise: T, act: () => T): T => {
    try {
      return act();
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
      problems.push(isMissing ? `${file} is missing` : `${file} cannot be read: ${explain(error)}`);
      return otherwise;
    }
  };
  const name = attempt('experiment.json', undefined, () => readName(directory));
  const settings = attempt('model_params.txt', new Map<string, string>(), () => readSettings(directory));
  const metrics = attempt('metrics.jsonl', new Map<string, MetricSummary>(), () => readMetrics(directory));
  const checkpoints = attempt('checkpoints', new Map<number, string>(), () =>
    listCheckpoints(join(directory, 'checkpoints')),
  );
  const [saved, newest] = [...checkpoints].at(-1) ?? [];
  const reported = metrics.get('train/loss')?.last.step ?? 0;
  const step = Math.max(reported, saved ?? 0);
  const numTrainSteps = Number(settings.get('task.train.numTrainSteps') ?? Number.NaN);
  const endedEarly = (): boolean =>
    newest !== undefined &&
    attempt(join('checkpoints', newest, 'progress.json'), false, () =>
      hasEndedEarly(join(directory, 'checkpoints', newest), settings),
    );
  const state = async (): Promise<RunState> => {
    if (existsSync(directory) && (await lockHolder(join(directory, '.train.lock'))) !== undefined)
      return 'running';
    if (saved === undefined || saved < reported) return 'unfinished';
    return saved >= numTrainSteps || endedEarly() ? 'finished' : 'stopped';
  };
  if (name !== undefined) settings.set('experiment', name);
  return {
    ...{ directory, state: await state(), step, metrics, settings, problems },
    ...(Number.isFinite(numTrainSteps) && { numTrainSteps }),
  };
}
