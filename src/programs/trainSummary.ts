/** @file A training summary: means of steps, speed, norms. */
import { flatViews } from '../compiler/index.js';
import { sumOfSquares } from '../learners/index.js';
import type { SingleTask } from '../tasks/index.js';
import { findPeak, modelCost } from './mfu.js';
import type { JobOptions } from './options.js';
import type { Reporter } from './reporter.js';
import type { FlatTrainState } from './stepCalls.js';
import type { TrainMeter } from './trainMeter.js';
import type { TrainProgram, TrainReport } from './trainProgram.js';

/** What a summary is of. */
interface Summarized {
  readonly options: JobOptions;
  readonly task: SingleTask;
  readonly state: FlatTrainState;
  readonly program: TrainProgram;
  readonly meter: TrainMeter;
  readonly reporter: Reporter;
}

/** Writes the summary of the steps since the last one. @param report of the last step */
export async function writeSummary(training: Summarized, report: TrainReport): Promise<void> {
  const { task, state, program, meter, reporter } = training;
  const { learner, variableNormSummary } = task.hp.train.hp;
  meter.pause();
  // Counting FLOPs and measuring the peak take a while; the first step does not wait for them.
  if (!meter.cost && meter.speed !== undefined) {
    const { flops, precision } = modelCost(task, state, program.buffers);
    meter.cost = { flops, peak: await findPeak(training.options, precision) };
  }
  const scalars = meter.take(report);
  if (learner.hp.varNormSummary) scalars['learning/var_norm'] = program.updater.varNorm();
  if (learner.hp.gradNormIndividualVars) {
    for (const [path, norm] of Object.entries(program.updater.gradNorms()))
      scalars[`per_var_grad_norm/${path}`] = norm;
  }
  if (variableNormSummary) Object.assign(scalars, rootMeanSquares(state));
  reporter.trainSummary(state.step, scalars, meter);
  meter.resume();
}

/** Root mean square of every variable, by summary tag. */
function rootMeanSquares({ layout, params }: FlatTrainState): Record<string, number> {
  const entries = Object.entries(flatViews(layout, params)).map(([path, values]) => {
    const sum = sumOfSquares(values, 0, values.length);
    return [`vars/${path}`, Math.sqrt(sum / Math.max(1, values.length))] as const;
  });
  return Object.fromEntries(entries);
}
