/** @file Metrics of a trained run on a task. */

import {
  type Encoder,
  type LanguageTask,
  matchMetrics,
  type ScoredRow,
  scoredMetrics,
  scoredTexts,
  type TaskMetrics,
} from '../../tasks/index.js';
import type { TrainedRun } from '../trainedRun.js';

/** Settings that choose the likeliest token, whatever those of the run are. */
const GREEDY = {
  temperature: 0,
  repetitionPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  logitBias: {},
};

/** Metrics of a task. */
export interface TaskResult {
  readonly task: string;
  readonly kind: LanguageTask['kind'];
  readonly examples: number;
  readonly metrics: TaskMetrics;
}

/**
 * Evaluates a task: of multiple choice `acc`, by the largest log-likelihood, and `acc_norm`, by that over the choice's characters,
 * each with its standard error; of texts `word_perplexity`, `byte_perplexity` and `bits_per_byte`; of generated answers
 * `exact_match`, without the white space around both.
 *
 * @throws RequestError for a model that continues no texts; InputError for characters that its tokenizer lacks
 */
export async function evaluateTask(run: TrainedRun, task: LanguageTask): Promise<TaskResult> {
  const metrics = await metricsOf(run, task);
  return { task: task.name, kind: task.kind, examples: task.examples.length, metrics };
}

async function metricsOf(run: TrainedRun, task: LanguageTask): Promise<TaskMetrics> {
  if (task.kind !== 'exactMatch')
    return scoredMetrics(task, await sumsOf(run, scoredTexts(task, encoderOf(run))));
  const continued: string[] = [];
  for (const { prompt, maxTokens, stop } of task.examples)
    continued.push(await run.generate(prompt, { ...GREEDY, maxTokens, stop }));
  return matchMetrics(task.examples, continued);
}

function encoderOf(run: TrainedRun): Encoder {
  const { tokenizer, maxTokens } = run;
  return {
    encode: (text) => tokenizer.encode(text),
    prefixId: tokenizer.bosId ?? tokenizer.eosId ?? 0,
    maxTokens,
  };
}

/** Sums of the log-likelihoods of rows, by the place of their text. */
async function sumsOf(run: TrainedRun, rows: readonly (readonly ScoredRow[])[]): Promise<number[]> {
  const scores = await run.logLikelihoods(rows.flat());
  let done = 0;
  return rows.map(({ length }) => {
    const own = scores.slice(done, done + length);
    done += length;
    return own.reduce((sum, score) => sum + score, 0);
  });
}
