/**
 * @file What a table of neighbours restores of the spans that t5.MadeText hides, and what the best filler does:
 * `npx tsx bench/spanFilling.ts`.
 */
import { fileURLToPath } from 'node:url';
import { MadeText } from '../experiments/t5.js';
import { build, type Config } from '../src/hparams/index.js';
import { type BaseInput, EndOfData } from '../src/inputs/index.js';
import { bayesFiller, type CorruptedText } from './sentenceAutomaton.js';

const sentinel = /<extra_id_\d+>/;

/** The texts of a dataset's first batches. */
async function textsOf(dataset: Config<BaseInput>, numBatches: number): Promise<CorruptedText[]> {
  const input = build(dataset);
  const texts: CorruptedText[] = [];
  for (let i = 0; i < numBatches; i++) {
    const batch = await input.getNext().catch((error) => {
      if (error instanceof EndOfData) return null;
      throw error;
    });
    if (batch === null) break;
    const pieces = (path: 'src.ids' | 'tgt.labels') => {
      const [half, name] = path.split('.') as ['src' | 'tgt', string];
      const { shape, data } = (batch as unknown as Batches)[half][name]!;
      const [rows, length] = shape as [number, number];
      const vocabulary = input.vocabularyFor(path)!;
      return Array.from({ length: rows }, (_, b) =>
        vocabulary.decode([...data.subarray(b * length, (b + 1) * length)]).split(sentinel),
      );
    };
    const [inputs, targets] = [pieces('src.ids'), pieces('tgt.labels')];
    // A last batch is filled up with empty rows.
    for (const [b, target] of targets.entries())
      if (target.length > 1) texts.push({ visible: inputs[b]!.slice(0, -1), hidden: target.slice(1) });
  }
  return texts;
}

type Batches = Record<'src' | 'tgt', Record<string, { shape: readonly number[]; data: Int32Array }>>;

/** A span's neighbours, `reach` letters on each side, for each reach from the farthest to none. */
function neighboursOf({ visible }: CorruptedText, span: number): string[] {
  const [left, right] = [visible[span]!, visible[span + 1] ?? ''];
  return [4, 3, 2, 1, 0].map(
    (reach) => `${left.slice(left.length - Math.min(reach, left.length))}|${right.slice(0, reach)}`,
  );
}

/** Fills in the commonest span of the training texts between the most neighbours that they have. */
function tableFiller(training: readonly CorruptedText[]): (text: CorruptedText) => string[] {
  const counts = new Map<string, Map<string, number>>();
  for (const text of training)
    for (const [k, span] of text.hidden.entries())
      for (const neighbours of neighboursOf(text, k)) {
        const seen = counts.get(neighbours) ?? new Map<string, number>();
        counts.set(neighbours, seen.set(span, (seen.get(span) ?? 0) + 1));
      }
  const commonest = (seen: Map<string, number>) => [...seen].reduce((a, b) => (b[1] > a[1] ? b : a))[0];
  return (text) =>
    text.hidden.map((_, k) => {
      const known = neighboursOf(text, k).find((neighbours) => counts.has(neighbours))!;
      return commonest(counts.get(known)!);
    });
}

/** The share of spans that a filler has right. */
function shareFilled(texts: readonly CorruptedText[], fill: (text: CorruptedText) => string[]): number {
  const right = texts.flatMap((text) => {
    const filled = fill(text);
    return text.hidden.map((span, k) => span === filled[k]);
  });
  return right.filter(Boolean).length / right.length;
}

/** Shares of the held-out spans of t5.MadeText that a table and the best filler restore. */
async function spanBaselines(): Promise<{ readonly table: number; readonly best: number }> {
  const experiment = new MadeText();
  const training = await textsOf(experiment.datasets()[0]!, 1500);
  const heldOut = await textsOf(experiment.decodeDatasets()[0]!, Number.POSITIVE_INFINITY);
  return { table: shareFilled(heldOut, tableFiller(training)), best: shareFilled(heldOut, bayesFiller()) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { table, best } = await spanBaselines();
  console.log(`a table of neighbours ${table.toFixed(3)}, the best filler ${best.toFixed(3)}`);
}
