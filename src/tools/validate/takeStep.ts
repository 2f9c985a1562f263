/** @file One training step of an experiment, in a temporary job directory. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ConfiguredExperiment } from '../../cli/index.js';
import { classVarsText } from '../../experiment/index.js';
import { runJob } from '../../programs/index.js';
import type { ResolvedExperiment } from '../../registry/index.js';
import { parseMetricsLine } from '../../summaries/index.js';

/** A problem in the results of the step. */
interface StepProblem {
  readonly message: string;
  /** Path of the affected summary. */
  readonly path: string;
}

/**
 * Trains one step and evaluates one batch of every evaluation dataset, in a job directory below `directory`, which is
 * removed. Modifies the configs, which are unusable afterwards.
 */
export async function takeStep(
  configured: ConfiguredExperiment,
  { file }: ResolvedExperiment,
  directory: string,
): Promise<StepProblem[]> {
  const { name, task, datasets, decodeDatasets, experiment } = configured;
  task.train.numTrainSteps = 1;
  task.train.maxInvalidSteps = null;
  task.train.onEvalError = 'stop';
  for (const dataset of datasets) if (!dataset.isTraining) dataset.evalLoopNumBatches = 1;
  const jobLogDir = mkdtempSync(join(directory, 'step-'));
  try {
    await runJob({
      ...{ name, task, datasets, decodeDatasets, jobLogDir, mode: 'train_and_eval' },
      moduleUrl: pathToFileURL(file).href,
      overrides: [],
      classVars: classVarsText(experiment),
    });
    return notFinite(join(jobLogDir, 'metrics.jsonl'));
  } finally {
    rmSync(jobLogDir, { recursive: true, force: true });
  }
}

/** Non-finite values in metrics.jsonl, the first of each program: a NaN loss makes all later values NaN. */
function notFinite(path: string): StepProblem[] {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return lines.flatMap((line): StepProblem[] => {
    const { program, ...values } = parseMetricsLine(line) ?? {};
    const wrong = Object.entries(values).find(
      ([, value]) => typeof value === 'number' && !Number.isFinite(value),
    );
    if (wrong === undefined) return [];
    const [tag, value] = wrong;
    return [{ path: `${String(program)}: ${tag}`, message: `is ${String(value)} after one step.` }];
  });
}
