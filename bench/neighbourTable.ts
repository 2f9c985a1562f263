/** @file What a table of neighbours finds of the letters that bert.Letters predicts: `npx tsx bench/neighbourTable.ts`. */
import { fileURLToPath } from 'node:url';
import { Sentences } from '../experiments/sequences.js';
import { build } from '../src/hparams/index.js';

/**
 * The share of held-out letters that are the commonest of the training sentences between the same two neighbours. The table is
 * given both neighbours, which a model may see masked, and has the tenth of the letters right that BERT's masks leave in place.
 *
 * @param numHeldOut first sentences, which are held out.
 */
export function neighbourBaseline(numHeldOut = 1024): number {
  const table = build(Sentences.config()).open();
  const lettersOf = (i: number) => {
    const text = ` ${table.read(i).inputs} `;
    return Array.from({ length: text.length - 2 }, (_, at) => ({
      letter: text[at + 1]!,
      neighbours: text[at]! + text[at + 2]!,
    }));
  };
  const counts = new Map<string, Map<string, number>>();
  for (let i = numHeldOut; i < table.numRecords; i++)
    for (const { letter, neighbours } of lettersOf(i)) {
      const seen = counts.get(neighbours) ?? new Map<string, number>();
      counts.set(neighbours, seen.set(letter, (seen.get(letter) ?? 0) + 1));
    }
  const commonest = new Map(
    [...counts].map(([neighbours, seen]) => [
      neighbours,
      [...seen].reduce((a, b) => (b[1] > a[1] ? b : a))[0],
    ]),
  );
  const heldOut = Array.from({ length: numHeldOut }, (_, i) => lettersOf(i)).flat();
  const right = heldOut.filter(({ letter, neighbours }) => commonest.get(neighbours) === letter);
  return 0.1 + (0.9 * right.length) / heldOut.length;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(neighbourBaseline().toFixed(3));
