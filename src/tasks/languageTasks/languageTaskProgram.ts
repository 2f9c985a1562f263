/** @file LanguageTaskProgram: metrics of the model in training on a task of a language model. */
import { GreedyDecoder } from '../../decoding/index.js';
import { build, copyWith, sub } from '../../hparams/index.js';
import { Decode } from '../decode.js';
import { ModelPredictions } from '../inference.js';
import { BaseProgram, type ProgramRun } from '../program.js';
import type { EvalResult } from '../results.js';
import { LanguageTaskInput } from './languageTaskInput.js';
import { SCORE } from './scoredRows.js';
import type { ExactMatch } from './taskFile.js';
import { matchMetrics, type ScoredTask, scoredMetrics, type TaskMetrics } from './taskMetrics.js';

/** What the model makes of the rows of a task. */
interface Measured extends Pick<EvalResult, 'batches' | 'skipped' | 'changes'> {
  readonly metrics: TaskMetrics;
}

/**
 * Evaluates a task as `luthier evaluate` does: `acc` and `acc_norm`, perplexities and `bits_per_byte`, or `exact_match`. They are
 * the program's metrics on the console, in metrics.jsonl and TensorBoard, and for `trackMetric`. Its parameters are those that
 * decodes take.
 */
export class LanguageTaskProgram extends BaseProgram.with({
  input: sub(LanguageTaskInput).describe('The task, and the rows by which the model reads it.'),
}) {
  /** Bad lines are told before the first step. @throws InputError */
  override async start(): Promise<void> {
    build(this.#input).task;
  }

  override async run(run: ProgramRun): Promise<undefined> {
    const { task } = build(this.#input);
    const started = performance.now();
    const { metrics, ...others } =
      task.kind === 'exactMatch' ? await this.#matched(run, task.examples) : await this.#scored(run, task);
    const seconds = (performance.now() - started) / 1000;
    const weight = task.examples.length;
    run.report({
      ...others,
      metrics: Object.fromEntries(
        Object.entries(metrics).map(([name, value]) => [name, { value, weight }] as const),
      ),
      ...{ tables: {}, media: {}, evaluatedExamples: [], end: null, seconds },
      throughput: { unit: 'examples', perSec: weight / seconds },
    });
    return undefined;
  }

  /** All rows, whatever the input says. */
  get #input() {
    return copyWith(this.hp.input, { name: this.hp.input.name ?? 'task', evalLoopNumBatches: -1 });
  }

  async #scored(run: ProgramRun, task: ScoredTask): Promise<Measured> {
    const inference = await run.infer(this.#input, { runner: SCORES });
    const scores: number[] = [];
    let batches = 0;
    for await (const { outputs, rows, exampleIds } of inference.batches()) {
      batches++;
      for (const [i, row] of rows.entries())
        scores[exampleIds[i]!] = (scores[exampleIds[i]!] ?? 0) - outputs[SCORE]!.data[row]!;
    }
    const { changes } = inference;
    return { metrics: scoredMetrics(task, scores), batches, skipped: inference.takeSkipped(), changes };
  }

  async #matched(run: ProgramRun, asked: readonly ExactMatch[]): Promise<Measured> {
    const { examples, skipped, changes } = await run.decode(this.#input, { decode: this.#greedy });
    const continued = examples.map(({ decoded_substr, example_id }) =>
      untilStop(decoded_substr, asked[example_id!]!.stop),
    );
    const batches = Math.ceil(asked.length / this.hp.input.batchSize);
    return { metrics: matchMetrics(asked, continued), batches, skipped, changes };
  }

  /** Greedy, from the end of each prompt to that of a row, by the ends of sequences that the task has. */
  readonly #greedy = ({ hp: { decoder } }: Decode): Decode => {
    const { seqLen: seqlen } = this.hp.input;
    const { eosId } = decoder.hp;
    return build(Decode.config({ decoder: GreedyDecoder.config({ seqlen, eosId }), prefixLength: seqlen }));
  };
}

const SCORES = build(ModelPredictions.config({ outputs: [SCORE] }));

/** A text up to the first of its stops. */
function untilStop(text: string, stops: readonly string[]): string {
  const ends = stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
  return text.slice(0, Math.min(text.length, ...ends));
}
