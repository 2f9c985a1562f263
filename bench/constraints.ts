/** @file Time that a constraint adds to the draw of a token: on the host, and to write the input of a program that draws. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { writeAllowed } from '../src/decoding/constraints/index.js';
import { type Constraint, Constraints, GREEDY, type SamplingRule, sampleId } from '../src/decoding/index.js';
import { build } from '../src/hparams/index.js';
import { PretrainedTokenizer, resolveFiles } from '../src/inputs/index.js';
import { trainBpe, WordCounts } from '../src/inputs/text/vocabularies/bpeTrainer.js';
import { tokenizerJson } from '../src/inputs/text/vocabularies/tokenizerJson.js';

const { values: flags } = parseArgs({
  options: {
    vocabulary: { type: 'string', default: '50257' },
    texts: { type: 'string', default: '40' },
  },
});
const [vocabSize, count] = [Number(flags.vocabulary), Number(flags.texts)];

let seed = 1;
/** An integer below n. */
const below = (n: number): number => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * n);
};
const WORDS = 'the run of a model is read from its folder and each value has one name'.split(' ');
const words = (n: number): string => Array.from({ length: n }, () => WORDS[below(WORDS.length)]).join(' ');

const person = () => ({
  name: words(2),
  age: below(90),
  notes: words(20),
  tags: Array.from({ length: 1 + below(5) }, () => words(1)),
  address: { street: words(3), city: words(1), isHome: below(2) === 0 },
});
const text = { type: 'string' };

/** Constraints with texts under them. */
const cases: Readonly<Record<string, { constraint: Constraint; sample: () => string }>> = {
  'JSON schema': {
    constraint: {
      jsonSchema: {
        type: 'object',
        properties: {
          name: text,
          age: { type: 'integer' },
          notes: text,
          tags: { type: 'array', items: text },
          address: {
            type: 'object',
            properties: { street: text, city: text, isHome: { type: 'boolean' } },
            required: ['street', 'city', 'isHome'],
            additionalProperties: false,
          },
        },
        required: ['name', 'age', 'notes', 'tags', 'address'],
        additionalProperties: false,
      },
    },
    sample: () => JSON.stringify(person()),
  },
  'any JSON object': { constraint: { json: 'object' }, sample: () => JSON.stringify(person(), undefined, 1) },
  'regular expression': {
    constraint: { regex: '([A-Z][a-z]* )+is [0-9]{1,3} years old\\.' },
    sample: () =>
      `${words(8).replace(/\b[a-z]/g, (letter) => letter.toUpperCase())} is ${below(900)} years old.`,
  },
};
const rules: Readonly<Record<string, SamplingRule>> = {
  likeliest: GREEDY,
  'of the 40 likeliest': { temperature: 0.8, k: 40, p: null },
};

const directory = mkdtempSync(join(tmpdir(), 'luthier-constraints-'));
const file = join(directory, 'tokenizer.json');
const counts = new WordCounts();
for (const { path } of resolveFiles(['node_modules/typescript/lib/*.js', 'docs/**/*.md']))
  counts.add(readFileSync(path));
writeFileSync(
  file,
  tokenizerJson({ specialTokens: [], merges: trainBpe(counts, { firstId: 0, vocabSize, minFrequency: 1 }) }),
);
const tokenizer = build(PretrainedTokenizer.config({ file }));
// The file is read at first use.
tokenizer.encode('');
rmSync(directory, { recursive: true });
const END = vocabSize;
const size = vocabSize + 1;
const bytesOf = (id: number) => (id === END ? undefined : tokenizer.tokenBytes(id));
const logits = Float32Array.from({ length: size }, () => below(1000) / 100);

/** CPU time of a call, ms: other work on the machine stretches the clock. */
function cpu(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

console.log(`a vocabulary of ${size}; CPU time a token, µs`);
for (const [name, { constraint, sample }] of Object.entries(cases)) {
  const texts = Array.from({ length: count }, () => tokenizer.encode(sample()));
  const tokens = texts.slice(1).reduce((sum, ids) => sum + ids.length, 0);
  const micros = (ms: number, of = tokens) => ((1000 * ms) / of).toFixed(0);
  const constraints = new Constraints(size, bytesOf, new Set([END]));
  let compiled!: ReturnType<Constraints['compile']>;
  const making = cpu(() => {
    compiled = constraints.compile(constraint);
  });
  /** Calls `each` before each token of texts. */
  const walk = (of: readonly Int32Array[], each: (bits: Uint32Array | undefined) => void, isFree = false) => {
    for (const ids of of) {
      let at = compiled.begin();
      for (const id of ids) {
        each(isFree ? undefined : at.allowed());
        if (!isFree) at = at.with(id);
      }
    }
  };
  const none = (): void => {};
  const first = cpu(() => walk(texts.slice(0, 1), none));
  const masks = cpu(() => walk(texts.slice(1), none));
  const known = cpu(() => walk(texts.slice(1), none));
  const lines = Object.entries(rules).map(([rule, own]) => {
    const draw = (bits?: Uint32Array) => void sampleId(logits, own, 0.5, undefined, bits);
    walk(texts.slice(1), draw);
    const [free, held] = [true, false].map((isFree) => cpu(() => walk(texts.slice(1), draw, isFree)));
    return `${rule} ${micros(free!)}, under the constraint ${micros(held!)}`;
  });
  const input = new Int32Array(size);
  const written = cpu(() => walk(texts.slice(1), (bits) => writeAllowed(input, 0, size, bits)));
  console.log(
    `${name}: made in ${making.toFixed(0)} ms; masks of the first text ${micros(first, texts[0]!.length)}, of others ${micros(masks)}, ` +
      `known ${micros(known)}; draws: ${lines.join('; ')}; the program's input ${micros(written)}`,
  );
}
