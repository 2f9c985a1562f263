/** @file Metrics of a language model on a task, as lm-evaluation-harness defines them. */
import type { TrainedRun } from '../trainedRun.js';
import { continuationRow, type Encoder, rollingRows, type ScoredRow } from './scoredRows.js';
import type { ExactMatch, LanguageTask, MultipleChoice, PerplexityText } from './taskFile.js';

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
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * Evaluates a task: of multiple choice `acc`, by the largest log-likelihood, and `acc_norm`, by that over the choice's characters,
 * each with its standard error; of texts `word_perplexity`, `byte_perplexity` and `bits_per_byte`; of generated answers
 * `exact_match`, without the white space around both.
 *
 * @throws RequestError for a model that continues no texts; InputError for characters that its tokenizer lacks
 */
export async function evaluateTask(run: TrainedRun, task: LanguageTask): Promise<TaskResult> {
  const metrics =
    task.kind === 'multipleChoice'
      ? await choiceMetrics(run, task.examples)
      : task.kind === 'perplexity'
        ? await perplexityMetrics(run, task.examples)
        : await matchMetrics(run, task.examples);
  return { task: task.name, kind: task.kind, examples: task.examples.length, metrics };
}

function encoderOf(run: TrainedRun): Encoder {
  const { tokenizer, maxTokens } = run;
  return {
    encode: (text) => tokenizer.encode(text),
    prefixId: tokenizer.bosId ?? tokenizer.eosId ?? 0,
    maxTokens,
  };
}

/** Sums of the log-likelihoods of rows, by the place of their example. */
async function sumsOf(run: TrainedRun, rows: readonly (readonly ScoredRow[])[]): Promise<number[]> {
  const scores = await run.logLikelihoods(rows.flat());
  let done = 0;
  return rows.map(({ length }) => {
    const own = scores.slice(done, done + length);
    done += length;
    return own.reduce((sum, score) => sum + score, 0);
  });
}

async function choiceMetrics(
  run: TrainedRun,
  examples: readonly MultipleChoice[],
): Promise<Record<string, number>> {
  const encoder = encoderOf(run);
  const rows = examples.flatMap(({ context, choices, delimiter }) =>
    choices.map((choice) => [continuationRow(encoder, context, delimiter + choice)]),
  );
  const scores = await sumsOf(run, rows);
  let done = 0;
  const rights = examples.map(({ choices, answer }) => {
    const own = scores.slice(done, done + choices.length);
    done += choices.length;
    // Characters are code points, as Python counts them.
    const normalized = own.map((score, i) => score / [...choices[i]!].length);
    return [own, normalized].map((each) => Number(each.indexOf(Math.max(...each)) === answer));
  });
  return {
    ...share(
      'acc',
      rights.map(([right]) => right!),
    ),
    ...share(
      'acc_norm',
      rights.map(([, right]) => right!),
    ),
  };
}

async function perplexityMetrics(
  run: TrainedRun,
  examples: readonly PerplexityText[],
): Promise<Record<string, number>> {
  const encoder = encoderOf(run);
  const scores = await sumsOf(
    run,
    examples.map(({ text }) => rollingRows(encoder, text)),
  );
  const loss = -scores.reduce((sum, score) => sum + score, 0);
  const count = (of: (text: string) => number): number =>
    examples.reduce((sum, { text }) => sum + of(text), 0);
  const [words, bytes] = [
    count((text) => text.split(/\s+/).length),
    count((text) => Buffer.byteLength(text)),
  ];
  return {
    word_perplexity: Math.exp(loss / words),
    byte_perplexity: Math.exp(loss / bytes),
    bits_per_byte: loss / bytes / Math.LN2,
  };
}

async function matchMetrics(
  run: TrainedRun,
  examples: readonly ExactMatch[],
): Promise<Record<string, number>> {
  const rights: number[] = [];
  for (const { prompt, answer, maxTokens, stop } of examples) {
    const continued = await run.generate(prompt, { ...GREEDY, maxTokens, stop });
    const answers = typeof answer === 'string' ? [answer] : answer;
    rights.push(Number(answers.some((each) => each.trim() === continued.trim())));
  }
  return share('exact_match', rights);
}

/** The mean, and the standard error of it. */
function share(name: string, rights: readonly number[]): Record<string, number> {
  const mean = rights.reduce((sum, right) => sum + right, 0) / rights.length;
  const error = Math.sqrt((mean * (1 - mean)) / (rights.length - 1));
  return { [name]: mean, ...(rights.length > 1 && { [`${name}_stderr`]: error }) };
}
