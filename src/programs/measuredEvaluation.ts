/** @file One evaluation of an input: metrics, batches, time and throughput. */
import { type Batch, batchCount, type InputSource, NONE_SKIPPED, specsOf } from '../inputs/index.js';
import { type EvalResult, Evaluation, type SingleTask } from '../tasks/index.js';
import type { EvalSteps } from './evalStep.js';
import { GatheredMedia, textsOf } from './gatheredMedia.js';
import { Stopwatch } from './stopwatch.js';

/** An evaluation whose clock runs from here on, but for compilation. */
export class MeasuredEvaluation {
  readonly #evaluation: Evaluation;
  readonly #watch = new Stopwatch();
  #media: EvalResult['media'] | undefined;
  #units = 0;

  constructor(
    task: SingleTask,
    private readonly steps: EvalSteps,
    private readonly input: InputSource,
  ) {
    const { evalMetrics, evaluate } = task.hp;
    this.#evaluation = new Evaluation(
      evalMetrics,
      input.scoreMetrics(),
      (path) => input.classNamesFor(path),
      evaluate.hp.exampleOutputs,
    );
    // Training may have changed the parameters.
    steps.refresh();
    this.#watch.start();
  }

  /** Evaluates a batch. */
  async add(batch: Batch): Promise<void> {
    this.#units += batchCount(specsOf(batch), this.input.batchUnit).count;
    const media = await this.steps.run(this.input.name, batch, this.#evaluation, this.#watch);
    this.#media ??= new GatheredMedia(textsOf(this.input)).add(media).take();
  }

  /** The result of all batches. */
  result({
    changes,
    skipped = NONE_SKIPPED,
    end = null,
  }: Partial<Pick<EvalResult, 'changes' | 'skipped' | 'end'>> = {}): EvalResult {
    const { seconds } = this.#watch;
    const throughput = { unit: this.input.batchUnit.unit, perSec: this.#units / seconds };
    const { batches } = this.#evaluation;
    const { metrics, tables, images, examples: evaluatedExamples } = this.#evaluation.result();
    const media = { ...this.#media, ...prefixed(images) };
    return {
      ...{ metrics, tables, media, evaluatedExamples, batches, end, skipped, seconds, throughput },
      changes,
    };
  }
}

/** Pictures under the tags of metrics. */
const prefixed = <T>(values: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`Metrics/${name}`, value]));
