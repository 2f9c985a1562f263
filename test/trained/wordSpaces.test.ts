/** @file Continuations by a tokenizer whose first word has no space: as decoder_out has them, wherever they are asked for. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadRun, type TrainedRun } from '../../src/trained/index.js';
import { type Server, serve } from '../../src/trained/server/server.js';
import { project, temporaryDirectory } from '../command.js';
import { type Decoded, decodedRun } from './tinyRun.js';

/** The 255 most frequent words of the corpus, each with the space before it, as SentencePiece writes it. */
function wordTokenizer(): string {
  const counts = new Map<string, number>();
  for (const word of readFileSync(join(project, 'corpus/counting.txt'), 'utf8').split(' '))
    counts.set(`▁${word}`, (counts.get(`▁${word}`) ?? 0) + 1);
  const words = [...counts].sort(([, a], [, b]) => b - a).slice(0, 255);
  const metaspace = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true };
  return JSON.stringify({
    added_tokens: [],
    ...{ pre_tokenizer: metaspace, decoder: metaspace },
    model: {
      ...{ type: 'WordLevel', unk_token: '<unk>' },
      vocab: Object.fromEntries([['<unk>'], ...words].map(([word], id) => [word, id])),
    },
  });
}

let run: TrainedRun;
let server: Server;
let decoded: Decoded[];

beforeAll(async () => {
  const own = temporaryDirectory();
  const from = (path: string) => JSON.stringify(join(project, path));
  const file = join(own, 'tokenizer.json');
  writeFileSync(file, wordTokenizer());
  mkdirSync(join(own, 'experiments'));
  writeFileSync(
    join(own, 'experiments/words.ts'),
    `import { derive } from ${from('../../../src/index.ts')};
     import { PretrainedTokenizer } from ${from('../../../src/inputs/index.ts')};
     import { Tiny } from ${from('experiments/tiny.ts')};
     const words = (datasets) =>
       datasets.map((dataset) => derive(dataset, (p) => {
         p.tokenizer = PretrainedTokenizer.config({ file: ${JSON.stringify(file)} });
       }));
     /** Learns words. */
     export class Words extends Tiny.preset({ dataPath: ${from('corpus/*.txt')} }) {
       override datasets() { return words(super.datasets()); }
       override decodeDatasets() { return words(super.decodeDatasets()); }
     }`,
  );
  const made = await decodedRun('words.Words', { numTrainSteps: 12 }, own);
  decoded = made.decoded;
  run = await loadRun(made.directory, { batchSize: 2, experiments: [join(own, 'experiments')] });
  const options = { host: '127.0.0.1', port: 0, maxBody: 10_000, maxTokens: 24, maxWaiting: 16 };
  server = await serve(run, { ...options, log: () => {} });
}, 120_000);

afterAll(async () => {
  await server.close(0);
  await run.dispose();
});

/** The texts of the events of a streamed answer. */
async function streamed(body: object): Promise<string[]> {
  const response = await fetch(`${server.url}/v1/completions`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
    body: JSON.stringify({ ...body, stream: true }),
  });
  const lines = (await response.text()).trim().split('\n\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line.slice('data: '.length)).choices[0].text);
}

test('the space between a prompt and its continuation is kept', async () => {
  expect(decoded.length).toBeGreaterThan(0);
  for (const { prefix, decoded: whole, decoded_substr: text } of decoded) {
    expect(text).toMatch(/^ /);
    expect(prefix + text).toBe(whole);
    expect(await run.generate(prefix)).toBe(text);
    const pieces: string[] = [];
    for await (const piece of run.stream(prefix)) pieces.push(piece);
    expect(pieces[0]).toMatch(/^ /);
    expect(pieces.join('')).toBe(text);
    const response = await fetch(`${server.url}/v1/completions`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body: JSON.stringify({ prompt: prefix }),
    });
    const { choices } = (await response.json()) as { choices: { text: string }[] };
    expect(choices[0]!.text).toBe(text);
    expect((await streamed({ prompt: prefix })).join('')).toBe(text);
  }
});

test('a stop text may begin with that space', async () => {
  const { prefix, decoded_substr: text } = decoded[0]!;
  const stop = text.slice(0, 3);
  expect(await run.generate(prefix, { stop })).toBe('');
  expect((await streamed({ prompt: prefix, stop })).join('')).toBe('');
});
