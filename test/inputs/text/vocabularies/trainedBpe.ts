/** @file Small trained tokenizers for tests. */
import { trainBpe, WordCounts } from '../../../../src/inputs/text/vocabularies/bpeTrainer.js';
import { tokenizerJson } from '../../../../src/inputs/text/vocabularies/tokenizerJson.js';

/** The tokenizer.json of a byte-level BPE that is trained on documents. */
export function trainedJson(
  documents: readonly string[],
  vocabSize: number,
  specialTokens: readonly string[] = [],
): string {
  const corpus = new WordCounts();
  for (const document of documents) corpus.add(new TextEncoder().encode(document));
  const merges = trainBpe(corpus, { firstId: specialTokens.length, vocabSize, minFrequency: 2 });
  return tokenizerJson({ specialTokens, merges });
}

/** Text of a language whose words repeat. */
export const prose = Array.from(
  { length: 200 },
  (_, i) =>
    `export interface Row${i % 7} {\n    readonly name: string;\n    it's${i % 3}: number; // Größe ${i}\n}\n`,
).join('\n');
