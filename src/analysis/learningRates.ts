/** @file Learning rate over the training of an experiment, as a curve of so many points. */
import type { ConfiguredExperiment } from '../cli/index.js';
import { build } from '../hparams/index.js';

/** Learning rates at points of a training that are equally far apart, from its first step to its last. */
export interface LearningRates {
  readonly steps: number;
  readonly rates: readonly number[];
}

/** Parts into which a training is divided; its ends have a point as well. */
const parts = 64;

/** The curve of a task; undefined where its learner, which other questions are about, cannot tell one. */
export function learningRatesOf({ train }: ConfiguredExperiment['task']): LearningRates | undefined {
  try {
    const learner = build(train.learner);
    const { numTrainSteps: steps } = train;
    const rates = Array.from({ length: parts + 1 }, (_, i) =>
      learner.learningRateAt(Math.round((i * steps) / parts)),
    );
    return rates.every(Number.isFinite) ? { steps, rates } : undefined;
  } catch {
    return undefined;
  }
}
