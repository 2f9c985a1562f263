/** @file A metric that configs name by its evaluation: the program that gives it, and its value at a step. */
import { ConfigError, didYouMean } from '../hparams/index.js';
import type { Program, ProgramRun } from '../tasks/index.js';

interface Metric {
  readonly evaluation: string;
  readonly metric: string;
}

/**
 * The program that gives a metric.
 *
 * @param field path of the config that names it, for messages.
 * @throws ConfigError where none of the programs does
 */
export function followed(
  programs: readonly Program[],
  { evaluation }: Pick<Metric, 'evaluation'>,
  field: string,
): Program {
  const found = programs.find(({ name }) => name === evaluation);
  if (found !== undefined) return found;
  const names = programs.map(({ name }) => name);
  const path = `${field}.evaluation`;
  throw new ConfigError(
    `${path}: this run has no '${evaluation}'.${didYouMean(evaluation, names)} ` +
      `Its programs: ${names.join(', ') || 'none'}.`,
    { path },
  );
}

/** The value of this step; undefined where its evaluation failed. @throws ConfigError where there is no such metric */
export function valueAt(run: ProgramRun, { evaluation, metric }: Metric, field: string): number | undefined {
  if (run.metricsStep(evaluation) !== run.step) return undefined;
  const metrics = run.metrics(evaluation)!;
  const found = metrics[metric];
  if (found !== undefined) return found.value;
  const names = Object.keys(metrics);
  const path = `${field}.metric`;
  throw new ConfigError(
    `${path}: '${evaluation}' has no '${metric}'.${didYouMean(metric, names)} It has: ${names.join(', ')}.`,
    { path },
  );
}
