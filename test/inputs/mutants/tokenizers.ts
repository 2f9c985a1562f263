/** @file Mutants of tokenizer files, of each model, with parts that grow, search and cut. */
import { build } from '../../../src/hparams/index.js';
import { PretrainedTokenizer } from '../../../src/inputs/index.js';
import { documents } from '../text/vocabularies/tokenizerDocuments.js';
import { prose, trainedJson } from '../text/vocabularies/trainedBpe.js';
import { type MutantKind, type Seed, textSite } from './mutantKind.js';

const TEXT = 'The quick brown fox, the lazy dog. <end> 12 × 345';

function seed(name: string, contents: string): Seed {
  const bytes = Buffer.from(contents);
  const sites = [...contents.matchAll(/(?<=":|[[,])-?\d+(?=[,\]}])/g)].map(({ 0: text, index }, i) => {
    const from = Buffer.byteLength(contents.slice(0, index));
    return textSite(bytes, `number ${i}`, from, from + text.length, true);
  });
  return { name, bytes, sites };
}

/** Documents that show models, and all kinds of parts in turn. */
const NAMES = [
  ...['bpe in words', 'bpe with bytes', 'word pieces in words', 'words in words', 'unigrams in words'],
  ...['normalizer type:Replace', 'normalizer type:BertNormalizer', 'pre-tokenizer type:Split'],
  ...['decoder type:Sequence', 'post-processor type:TemplateProcessing'],
];

export const tokenizers: MutantKind = {
  name: 'tokenizers',
  seeds() {
    const chosen = NAMES.map((name) => documents.find(([title]) => title.startsWith(name))!);
    return [
      seed('trained.json', trainedJson([prose], 280, ['<end>'])),
      ...chosen.map(([, contents], i) => seed(`${i}.json`, contents)),
    ];
  },
  read(path) {
    const tokenizer = build(PretrainedTokenizer.config({ file: path }));
    const ids = tokenizer.encode(TEXT);
    return { vocabSize: tokenizer.vocabSize, ids, text: tokenizer.decode(ids) };
  },
  problemOf(values) {
    const { vocabSize, ids } = values as { readonly vocabSize: number; readonly ids: Int32Array };
    if (vocabSize > 200_000) return `there are ${vocabSize} ids`;
    return ids.every((id) => id >= 0 && id < vocabSize) ? undefined : `the ids are ${ids}`;
  },
  tries: 2000,
  short: 30,
};
