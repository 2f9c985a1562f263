/** @file Metrics of log-likelihoods: their mean, and classification by rank. */
import { z } from 'zod';
import { InputError } from '../../inputErrors.js';
import { BaseScoreMetric } from './taskMetric.js';

/** The mean of the scores: nats an example. */
export class MeanScore extends BaseScoreMetric {
  override compute(_targets: readonly unknown[], scores: readonly number[]): number {
    return scores.reduce((sum, score) => sum + score, 0) / scores.length;
  }
}

const choice = z.object({ question: z.union([z.string(), z.number()]), isCorrect: z.boolean() });

/**
 * Share of the questions of which the choice with the highest score is correct, the first one of several; each choice is
 * an example. The postprocessor gives `{ question, isCorrect }` (T5's rank_classification).
 */
export class RankClassification extends BaseScoreMetric {
  override compute(targets: readonly unknown[], scores: readonly number[]): number {
    const best = new Map<string | number, { readonly score: number; readonly isCorrect: boolean }>();
    for (const [i, target] of targets.entries()) {
      const { question, isCorrect } = choiceOf(target);
      const score = scores[i]!;
      const before = best.get(question);
      if (before === undefined || score > before.score) best.set(question, { score, isCorrect });
    }
    return [...best.values()].filter(({ isCorrect }) => isCorrect).length / best.size;
  }
}

function choiceOf(target: unknown): z.infer<typeof choice> {
  const { data } = choice.safeParse(target);
  if (data !== undefined) return data;
  throw new InputError(
    `RankClassification: expected a target { question, isCorrect }, got ${JSON.stringify(target)?.slice(0, 80)}. ` +
      "Let the task's postprocessor give it.",
  );
}
