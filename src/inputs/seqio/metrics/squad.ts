/** @file Metrics of answers to questions (SQuAD, Rajpurkar et al. 2016), as T5 computes them. */
import { BasePredictMetric, meanOver } from './taskMetric.js';
import { fMeasure, ngramCounts, overlap, wordsOf } from './wordCounts.js';

/** The words of an answer: in lower case, without ASCII punctuation and articles. */
function answerWords(text: string): string[] {
  const plain = text.toLowerCase().replace(/[!-/:-@[-`{-~]/g, '');
  return wordsOf(plain.replace(/(?<![\p{L}\p{N}_])(?:a|an|the)(?![\p{L}\p{N}_])/gu, ' '));
}

/** Share of the predictions whose words are those of an answer. A target is an answer, or a list of them. */
export class SquadExactMatch extends BasePredictMetric {
  override compute(targets: readonly unknown[], predictions: readonly unknown[]): number {
    return meanOver(targets, predictions, (answers, prediction) => {
      const words = answerWords(prediction).join(' ');
      return answers.some((answer) => answerWords(answer).join(' ') === words) ? 1 : 0;
    });
  }
}

/** The mean F1 of the words of predictions, 0 to 1, each against the answer that fits best; 0 where no word is shared. */
export class SquadF1 extends BasePredictMetric {
  override compute(targets: readonly unknown[], predictions: readonly unknown[]): number {
    return meanOver(targets, predictions, (answers, prediction) => {
      const words = answerWords(prediction);
      const own = ngramCounts(words, 1);
      const f1 = answers.map((answer) => {
        const wanted = answerWords(answer);
        return fMeasure(overlap(ngramCounts(wanted, 1), own), words.length, wanted.length);
      });
      return Math.max(...f1);
    });
  }
}
