/** @file The error that ends a run after too many invalid steps in a row, with the layer and operation at fault. */
import type { Checkpointer } from '../checkpoints/index.js';
import type { NonFinite } from '../compiler/index.js';
import { JobError } from '../runs/index.js';
import type { SingleTask } from '../tasks/index.js';
import { BUDGET_STEPS, type TrainMeter } from './trainMeter.js';
import type { TrainProgram, TrainReport } from './trainProgram.js';

/** Consecutive invalid steps that end a run; in a short run, all of its steps. */
export function mostInvalidSteps({ hp }: SingleTask): number {
  const { maxInvalidSteps, numTrainSteps } = hp.train.hp;
  return maxInvalidSteps === null ? Number.POSITIVE_INFINITY : Math.min(maxInvalidSteps, numTrainSteps);
}

/** Invalid steps to come that are over the budget; 0 where it is overdrawn. */
export function stepsUntilOverBudget({ hp }: SingleTask, { recentlyInvalid }: TrainMeter): number {
  const { invalidStepBudget } = hp.train.hp;
  return invalidStepBudget === null ? Number.POSITIVE_INFINITY : invalidStepBudget + 1 - recentlyInvalid;
}

interface Ended {
  readonly task: SingleTask;
  readonly program: TrainProgram;
  readonly meter: TrainMeter;
  readonly checkpointer: Checkpointer;
}

/** Makes the error, rerunning the last step with checks. @param report of the last step */
export async function invalidStepsError(ended: Ended, { loss, update }: TrainReport): Promise<JobError> {
  const { task, program, meter, checkpointer } = ended;
  const { numTrainSteps, invalidStepBudget } = task.hp.train.hp;
  const count = meter.invalidInARow;
  const isRow = count >= mostInvalidSteps(task);
  const inARow =
    count === 1 ? 'the update of the last step was' : `the updates of the last ${count} steps were`;
  const steps = isRow
    ? inARow
    : `of the last ${BUDGET_STEPS} steps the updates of ${meter.recentlyInvalid} were`;
  const good = checkpointer.latestGoodStep();
  return new JobError(
    [
      `Training ended at step ${program.state.step} of ${numTrainSteps}: ${steps} left out, ` +
        `loss ${loss}, gradient norm ${update.rawGradNorm}.`,
      await reasonOf(task, program, update),
      good === undefined
        ? 'There is no checkpoint of a step before them.'
        : `The newest checkpoint before them is that of step ${good}; it is kept.`,
      'A lower learning rate or clipGradientNormToValue of the optimizer may help; ' +
        (isRow
          ? 'task.train.maxInvalidSteps=null goes on nevertheless.'
          : `task.train.invalidStepBudget is ${invalidStepBudget}, and null goes on nevertheless.`),
    ].join(' '),
  );
}

async function reasonOf(
  task: SingleTask,
  program: TrainProgram,
  { rawGradNorm: norm, gradNormBound }: TrainReport['update'],
): Promise<string> {
  const { skipStepGradientNormValue: bound, skipStepGradientNormSigma: sigma } = task.hp.train.hp.learner.hp;
  if (
    Number.isFinite(norm) &&
    gradNormBound !== undefined &&
    norm >= gradNormBound &&
    gradNormBound !== bound
  )
    return `The gradients before set a bound of ${gradNormBound} (learner.skipStepGradientNormSigma is ${sigma}).`;
  if (Number.isFinite(norm) && bound > 0 && norm >= bound)
    return `Gradients must have a norm below ${bound} (learner.skipStepGradientNormValue).`;
  try {
    await program.state.memory?.toHost();
    return describeNonFinite(await program.firstNonFinite());
  } catch (error) {
    return `Running the step again to find the reason failed: ${(error as Error).message}`;
  }
}

/** The result of a search for the first value that is not finite, as a sentence. */
export function describeNonFinite(found: NonFinite | undefined): string {
  if (found === undefined)
    return 'Run again on ONNX Runtime, which rounds otherwise, all values of the step were finite.';
  const { layer, op, isGradient, value, spec, input, place } = found;
  if (input !== '') return `The first value that is not finite is handed in: ${value} in ${input} (${spec}).`;
  const whose = layer === '' ? 'the model' : `layer '${layer}'`;
  const where = isGradient ? `the gradient of ${whose}` : whose;
  const line = place === '' ? '' : `, at ${place}`;
  return `The first value that is not finite is ${value} in the result of ${op} (${spec}), in ${where}${line}.`;
}
