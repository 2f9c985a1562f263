/** @file Runs compared: by the best value of a metric, with the settings that differ. */

import { shortPaths } from '../hparams/index.js';
import { didYouMean, formatDuration } from '../system/text/index.js';
import { differencesOf, type RunDifferences } from './runDifferences.js';
import type { MetricSummary, RunSummary } from './runSummary.js';

/** How runs are compared. */
export interface CompareOptions {
  /** `eval_test_validation/total_loss`, or its end. Default: the tracked metric, else the evaluation loss, else the training loss. */
  readonly metric?: string | undefined;
  /** Which values are better. Default: as the runs track the metric, else `min`. */
  readonly best?: 'min' | 'max' | undefined;
}

/** A run and its values of the metric. */
export interface ComparedRun {
  readonly run: RunSummary;
  /** Undefined for a run that has not reported the metric. */
  readonly last?: MetricSummary['last'] | undefined;
  readonly best?: MetricSummary['last'] | undefined;
  /** Values of the differing settings, by name; one that a run lacks is absent. */
  readonly settings: Readonly<Record<string, string>>;
}

/** Runs in the order of the metric, the best one first. */
export interface RunComparison extends RunDifferences {
  /** Undefined where no run has reported a metric. */
  readonly metric: string | undefined;
  readonly best: 'min' | 'max';
  readonly runs: readonly ComparedRun[];
}

/** No run has the metric that was asked for. */
export class UnknownMetric extends Error {
  override readonly name: string = 'UnknownMetric';
}

/** Evaluations on test data before those on training data, and training last. */
function rankOf(metric: string): number {
  const rank = [/^eval_test_/, /^eval_/, /^(?!train\/)/].findIndex((program) => program.test(metric));
  return rank < 0 ? 3 : rank;
}

/** `'text'` as in model_params.txt, without its quotes. */
function unquoted(text: string | undefined): string | undefined {
  return text?.replace(/^'(.*)'$/, '$1');
}

const tracking = 'task.train.trackMetric';

/** The metric that a run tracks. */
function trackedBy({ settings }: RunSummary): string | undefined {
  const evaluation = unquoted(settings.get(`${tracking}.evaluation`));
  return evaluation && `${evaluation}/${unquoted(settings.get(`${tracking}.metric`))}`;
}

function chooseMetric(runs: readonly RunSummary[], asked: string | undefined): string | undefined {
  const names = [...new Set(runs.flatMap(({ metrics }) => [...metrics.keys()]))].sort(
    (a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1),
  );
  const ending = (wanted: string) => names.find((name) => name === wanted || name.endsWith(`/${wanted}`));
  if (asked === undefined) {
    const tracked = runs.map(trackedBy).find((name) => name !== undefined && names.includes(name));
    const evaluated = names.find((name) => rankOf(name) < 2 && name.endsWith('/total_loss'));
    return tracked ?? evaluated ?? ending('loss');
  }
  const found = ending(asked);
  if (found !== undefined) return found;
  const shown = names.filter((name) => !/-weight$|\/vars\//.test(name));
  throw new UnknownMetric(
    `--sort=${asked}: no run has it.${didYouMean(asked, shown)} The metrics are: ${shown.join(', ') || 'none'}.`,
  );
}

function directionOf(runs: readonly RunSummary[], metric: string | undefined): 'min' | 'max' {
  const tracks = runs.find((run) => metric !== undefined && trackedBy(run) === metric);
  return unquoted(tracks?.settings.get(`${tracking}.mode`)) === 'max' ? 'max' : 'min';
}

/** Compares runs. @throws UnknownMetric */
export function compareRuns(runs: readonly RunSummary[], options: CompareOptions = {}): RunComparison {
  const metric = chooseMetric(runs, options.metric);
  const best = options.best ?? directionOf(runs, metric);
  // Of a run whose settings can't be read, nothing can be said to differ.
  const known = runs.filter(({ settings }) => settings.size > 0);
  const { differing, following } = differencesOf(known);
  const compared = runs.map((run): ComparedRun => {
    const values = metric === undefined ? undefined : run.metrics.get(metric);
    const own = differing.flatMap((path) => {
      const value = run.constants.get(path)?.value ?? run.settings.get(path);
      return value === undefined ? [] : [[path, value]];
    });
    return { run, last: values?.last, best: values?.[best], settings: Object.fromEntries(own) };
  });
  const sign = best === 'min' ? 1 : -1;
  const keyOf = ({ best: value }: ComparedRun) =>
    value === undefined ? Number.POSITIVE_INFINITY : sign * value.value;
  const sorted = compared.toSorted((a, b) => (keyOf(a) === keyOf(b) ? 0 : keyOf(a) - keyOf(b)));
  return { metric, best, runs: sorted, differing, following };
}

/** Columns of settings in a table; further ones are named below it. */
const mostSettings = 6;
/** Longer values are cut in a table. */
const longestValue = 30;

function formatValue(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(5))) : String(value);
}

/** A comparison as the header and rows of a table, and the lines below it. */
export interface RunTable {
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly below: readonly string[];
}

/** @param labels names of runs and, where they are known better, their states, by directory. */
export function runTable(
  { metric, best, runs, differing, following }: RunComparison,
  labels: ReadonlyMap<string, { readonly name: string; readonly state?: string }>,
): RunTable {
  const shown = differing.slice(0, mostSettings);
  const short = shortPaths(new Set(differing));
  const rows = runs.map(({ run, last, best: found, settings }) => {
    const { name, state = run.state } = labels.get(run.directory) ?? { name: run.directory };
    const step = run.numTrainSteps === undefined ? String(run.step) : `${run.step}/${run.numTrainSteps}`;
    const values = shown.map((path) => {
      const text = settings[path] ?? '';
      return text.length <= longestValue ? text : `${text.slice(0, longestValue - 1)}…`;
    });
    const took = run.seconds === undefined ? '' : formatDuration(run.seconds);
    const cells = [last?.value, found?.value].map((value) => (value === undefined ? '' : formatValue(value)));
    return [name, state, step, took, ...cells, found === undefined ? '' : String(found.step), ...values];
  });
  const further = differing.slice(mostSettings);
  const below = [
    ...(metric === undefined
      ? ['No run has reported a metric.']
      : [`By ${metric}, ${best === 'min' ? 'lowest' : 'highest'} first.`]),
    ...(further.length === 0
      ? []
      : [`${further.length} more settings differ, among them ${further.slice(0, 3).join(', ')}.`]),
    ...(following.length === 0
      ? []
      : [`Left out: ${following.length} more that differ with these constants, such as ${following[0]}.`]),
    ...runs.flatMap(({ run }) => {
      const name = labels.get(run.directory)?.name ?? run.directory;
      const failure = run.state === 'failed' ? [`${name} failed: ${run.reason}`] : [];
      return [...failure, ...run.problems.map((problem) => `${name}: ${problem}.`)];
    }),
  ];
  const header = [
    'run',
    'state',
    'step',
    'duration',
    'last',
    'best',
    'at step',
    ...shown.map((path) => short.get(path)!),
  ];
  return { header, rows, below };
}
