/** @file Rows of a task that a language model scores or continues, and its metrics by them, as lm-evaluation-harness defines these. */
import { continuationRow, type Encoder, rollingRows, type ScoredRow } from './scoredRows.js';
import type { ExactMatch, LanguageTask, MultipleChoice, PerplexityText } from './taskFile.js';

/** Metrics by name. */
export type TaskMetrics = Readonly<Record<string, number>>;

/** A task whose texts are scored, and not continued. */
export type ScoredTask = Exclude<LanguageTask, { readonly kind: 'exactMatch' }>;

/** The rows of each text that is scored: of the choices of all examples one after the other, or of the texts. */
export function scoredTexts(task: ScoredTask, encoder: Encoder): ScoredRow[][] {
  if (task.kind === 'perplexity') return task.examples.map(({ text }) => rollingRows(encoder, text));
  return task.examples.flatMap(({ context, choices, delimiter }) =>
    choices.map((choice) => [continuationRow(encoder, context, delimiter + choice)]),
  );
}

/** Metrics by the log-likelihoods in nats of the texts of `scoredTexts`. */
export const scoredMetrics = (task: ScoredTask, scores: readonly number[]): TaskMetrics =>
  task.kind === 'multipleChoice'
    ? choiceMetrics(task.examples, scores)
    : perplexityMetrics(task.examples, scores);

function choiceMetrics(examples: readonly MultipleChoice[], scores: readonly number[]): TaskMetrics {
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

function perplexityMetrics(examples: readonly PerplexityText[], scores: readonly number[]): TaskMetrics {
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

/** The share of continuations, without their stops, that are answers. */
export const matchMetrics = (examples: readonly ExactMatch[], continued: readonly string[]): TaskMetrics =>
  share(
    'exact_match',
    examples.map(({ answer }, i) => {
      const answers = typeof answer === 'string' ? [answer] : answer;
      return Number(answers.some((each) => each.trim() === continued[i]!.trim()));
    }),
  );

/** The mean, and the standard error of it. */
function share(name: string, rights: readonly number[]): Record<string, number> {
  const mean = rights.reduce((sum, right) => sum + right, 0) / rights.length;
  const error = Math.sqrt((mean * (1 - mean)) / (rights.length - 1));
  return { [name]: mean, ...(rights.length > 1 && { [`${name}_stderr`]: error }) };
}
