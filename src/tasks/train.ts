/** @file Training settings of a task: steps, intervals, learner (Pax's SingleTask.Train). */
import { z } from 'zod';
import { type Config, Configurable, classOf, instance, type Report } from '../hparams/index.js';
import { type BaseOptimizer, Learner } from '../learners/index.js';
import { BaseTracker } from '../summaries/index.js';
import { CheckpointLoadingRules } from './checkpointLoadingRules.js';
import { BaseCheckpointPolicy, duration } from './checkpointPolicies.js';
import { BaseProgram } from './program.js';
import { TrackMetric } from './trackMetric.js';

const interval = z.int().positive();

/** Training settings; fields and defaults are Pax's unless described otherwise. A step count is that of finished steps. */
export class Train extends Configurable.with({
  learner: instance(Learner).describe('Turns gradients into updates.'),
  numTrainSteps: z.int().nonnegative().default(10_000_000).describe('Steps of the whole run.'),
  numSubBatches: z
    .int()
    .positive()
    .default(1)
    .describe(
      'Parts of a batch whose gradients are computed one after the other and summed, so that a step holds the activations ' +
        'of one part.',
    ),
  randomSeed: z
    .int()
    .nonnegative()
    .default(1234)
    .describe('Seed of the initial weights and of everything random in a step.'),
  saveIntervalSteps: interval.default(5000).describe('Steps between checkpoints.'),
  saveMaxToKeep: interval.nullable().default(10).describe('Newest checkpoints to keep; null: all.'),
  saveKeepIntervalDuration: duration
    .nullable()
    .default('12h')
    .describe('Interval of checkpoints to keep for good: 12h, 30m, 90s, 2d, or seconds; null: none.'),
  checkpointPolicies: z
    .array(instance(BaseCheckpointPolicy, null))
    .default([])
    .describe('Further policies: what one of them saves or keeps is saved and kept beside the fields above.'),
  summaryIntervalSteps: interval.default(100).describe('Steps between summaries, which are means over them.'),
  summaryAccumulateIntervalSteps: interval
    .nullable()
    .default(null)
    .describe(
      'Steps between the images, sounds, texts and histograms of layers that a summary gathers, at most 64 of each but of ' +
        'histograms; null: those of its own step.',
    ),
  histogramIntervalSteps: interval
    .nullable()
    .default(null)
    .describe('Steps between histograms of parameters and gradients in TensorBoard; null: none.'),
  logTrainOutputIntervalSteps: interval
    .nullable()
    .default(null)
    .describe('Steps between lines of a log; null: summaryIntervalSteps.'),
  evalIntervalSteps: interval.default(100).describe('Steps between evaluations; the last one is at the end.'),
  maxInvalidSteps: z
    .int()
    .positive()
    .nullable()
    .default(20)
    .describe(
      'Steps in a row with their update left out that end training with an error; null: no number does.',
    ),
  invalidStepBudget: z
    .int()
    .nonnegative()
    .nullable()
    .default(null)
    .describe(
      'How many of the last 1000 steps may have their update left out; one more ends training with an error. null: any.',
    ),
  lossSpikeSigma: z
    .number()
    .nonnegative()
    .default(0)
    .describe(
      'Tells the data rows of a step whose loss is above the mean of the last 128 by this many of their standard deviations, 6 ' +
        'say, and of a step with its update left out; 0 tells none.',
    ),
  corruptionCheckIntervalSteps: interval
    .nullable()
    .default(null)
    .describe(
      'Steps between those that are taken twice and compared bit by bit, to find a machine that computes wrongly; null: ' +
        'none is.',
    ),
  stallSteps: z
    .number()
    .positive()
    .nullable()
    .default(20)
    .describe(
      'Median steps without progress after which the watchdog ends the run as one that hangs; null: it never does. Progress ' +
        'is whatever finishes: a step, a batch of an evaluation, a save, a compilation.',
    ),
  stallSeconds: z
    .number()
    .positive()
    .default(60)
    .describe('Least seconds without progress after which the watchdog ends the run.'),
  onEvalError: z
    .enum(['continue', 'stop'])
    .default('continue')
    .describe(
      'Whether training goes on or stops where an evaluation or a decode fails. The error is reported in both cases; ' +
        'a run that stops saves its state.',
    ),
  evalSkipTrain: z
    .boolean()
    .default(false)
    .describe('Whether to skip the evaluation of a training batch (eval_train).'),
  evalUseEmaStates: z
    .boolean()
    .default(false)
    .describe('Evaluates the moving average of the parameters (emaDecay of the optimizer).'),
  decodeIntervalSteps: interval
    .nullable()
    .default(null)
    .describe('Steps between decodes; null: at the end only.'),
  decodeStartAfterNSteps: z.int().nonnegative().default(0).describe('First step at which to decode.'),
  decodeUseEmaStates: z
    .boolean()
    .default(false)
    .describe('Decodes with the moving average of the parameters.'),
  variableNormSummary: z
    .boolean()
    .default(true)
    .describe('Writes the root mean square of every variable (vars/…).'),
  trackMetric: instance(TrackMetric, null)
    .nullable()
    .default(null)
    .describe('Metric by which the best checkpoint is kept, and training may stop early; null: none.'),
  trackers: z
    .array(instance(BaseTracker, null))
    .default([])
    .describe(
      'Where all scalars go beside metrics.jsonl and TensorBoard, such as PrometheusFile and Trackio.',
    ),
  initFromCheckpoint: z
    .array(instance(CheckpointLoadingRules, null))
    .default([])
    .describe(
      'Checkpoints whose variables are the initial values of a new run, as in fine-tuning; the first one that gives a ' +
        'variable counts.',
    ),
  programs: z
    .array(instance(BaseProgram, null))
    .default([])
    .describe('Programs to run between steps, after evaluations and decodes, such as early stopping.'),
}) {
  static override validate(
    { learner, evalUseEmaStates, decodeUseEmaStates }: Config<Train>,
    report: Report,
  ): void {
    const { optimizer } = learner;
    if (optimizer.emaDecay > 0 || (classOf(optimizer).prototype as BaseOptimizer).evaluatesAverage) return;
    const wanted = { evalUseEmaStates, decodeUseEmaStates };
    for (const [field, isWanted] of Object.entries(wanted)) {
      if (isWanted) {
        report('it needs an average of the parameters: set learner.optimizer.emaDecay, to 0.999 say', field);
      }
    }
  }

  /** Whether evaluations, or decodes, take the average of the parameters. */
  usesEmaStates(program: 'eval' | 'decode'): boolean {
    return this.hp.learner.evaluatesAverage || this.hp[`${program}UseEmaStates`];
  }
}
