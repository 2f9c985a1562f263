/** @file `npm run bench:inputs`: reading, packing, shuffling and resuming, beside grain, PyTorch and the Rust tokenizers. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { prngKey } from '../src/compiler/random/prng.js';
import { resolveFiles } from '../src/inputs/index.js';
import { drawBelow } from '../src/inputs/random.js';
import { trainBpe, WordCounts } from '../src/inputs/text/vocabularies/bpeTrainer.js';
import { tokenizerJson } from '../src/inputs/text/vocabularies/tokenizerJson.js';
import { markdownTable } from '../src/review/text/reportFormat.js';
import type { ReadingRate, Resumption } from './luthierInputs.js';
import { hasPeers, inputLoaders, luthierInputs, measure, type Program, peersPython } from './programs.js';
import { whenStopped } from './stopping.js';

const VOCAB_SIZE = 16_384;
const MILLION_STEPS = ['resumePacked', 'resumeRows'];

const { values: flags } = parseArgs({
  options: {
    /** A corpus of 1 GB in place of 10 GB, and half the time for each rate. */
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
});
const seconds = flags.quick ? '3' : '6';
const directory = mkdtempSync(join(tmpdir(), 'luthier-inputs-'));
const corpus = join(directory, 'documents.jsonl');
const large = join(directory, 'large.jsonl');
const tokenizerFile = join(directory, 'tokenizer.json');

const show = (text: string): void => void process.stdout.write(`${text}\n`);

/** Documents of 0.5 to 8 kB, sizes log-uniform, cut from the declarations in node_modules; and their vocabulary. */
function writeCorpus(): Buffer {
  const texts = resolveFiles(['node_modules/**/*.d.ts']).map(({ path }) => readFileSync(path, 'utf8'));
  const text = texts.join('');
  const lines: string[] = [];
  for (let at = 0; at < text.length; ) {
    const size = Math.floor(500 * 16 ** (drawBelow(prngKey(1), lines.length, 2 ** 32) / 2 ** 32));
    lines.push(`${JSON.stringify({ text: text.slice(at, at + size) })}\n`);
    at += size;
  }
  const bytes = Buffer.from(lines.join(''));
  writeFileSync(corpus, bytes);
  const counts = new WordCounts();
  counts.add(Buffer.from(text));
  const merges = trainBpe(counts, { firstId: 0, vocabSize: VOCAB_SIZE, minFrequency: 2 });
  writeFileSync(tokenizerFile, tokenizerJson({ specialTokens: [], merges }));
  return bytes;
}

/** The documents again and again. */
function writeLarge(documents: Buffer): void {
  const file = openSync(large, 'w');
  for (let size = 0; size < (flags.quick ? 1e9 : 1e10); size += documents.length) writeSync(file, documents);
  closeSync(file);
}

async function own<T>(name: string, of = corpus): Promise<T> {
  return measure<T>(cached(luthierInputs(name, of, tokenizerFile, seconds)));
}

/** With a cache of its own, so that it finds no index of an earlier run. */
const cached = (program: Program): Program => ({
  ...program,
  env: { ...program.env, XDG_CACHE_HOME: join(directory, 'cache') },
});

const peer = <T>(name: string): Promise<T> =>
  measure<T>(inputLoaders(name, corpus, tokenizerFile, seconds, '32', '1024'));

/** Megabytes of tokens a second of wall and of CPU time, at so many bytes a token. */
function megabytes(rate: ReadingRate, bytesPerToken: number): string[] {
  const size = (rate.filled * rate.batchSize * rate.seqLen * bytesPerToken) / 1e6;
  return [
    (rate.perSec * size).toFixed(1),
    (rate.perCpuSec * size).toFixed(1),
    `${(100 * rate.filled).toFixed(1)} %`,
  ];
}

/** Texts tokenized and packed. */
async function packing(): Promise<void> {
  const bytesPerToken = await own<number>('bytesPerToken');
  const rows = [
    ['bytes', ...megabytes(await own('bytes'), 1)],
    ['bytes, one worker', ...megabytes(await own('bytesOneWorker'), 1)],
    ['bytes, two workers', ...megabytes(await own('bytesTwoWorkers'), 1)],
    ['BPE', ...megabytes(await own('bpe'), bytesPerToken)],
  ];
  if (hasPeers) {
    const { perSec, perCpuSec } = await peer<ReadingRate>('bpe');
    rows.push(['BPE, Rust tokenizers', (perSec / 1e6).toFixed(1), (perCpuSec / 1e6).toFixed(1), '–']);
  }
  show(markdownTable(rows, ['packed into rows of 1,024', 'MB/s', 'MB per CPU second', 'filled']));
}

/** Texts as rows of bytes, shuffled and batched. */
async function batching(): Promise<void> {
  const row = (name: string, { perSec, perCpuSec }: ReadingRate): string[] => [
    name,
    (32 * perSec).toFixed(0),
    (32 * perCpuSec).toFixed(0),
  ];
  const rows = [
    row('Luthier, main thread', await own('records')),
    row('Luthier, two workers', await own('recordsTwoWorkers')),
  ];
  if (hasPeers) {
    rows.push(row('grain, two workers', await peer('grain')));
    rows.push(row('PyTorch, two workers', await peer('torch')));
  }
  show(markdownTable(rows, ['shuffled, batches of 32', 'records/s', 'records per CPU second']));
}

/** A large corpus: its first opening, and a million steps on. */
async function resuming(documents: Buffer): Promise<void> {
  writeLarge(documents);
  const rows: string[][] = [];
  for (const name of ['open', ...MILLION_STEPS]) {
    const { seconds, before, after, later } = await own<Resumption>(name, large);
    rows.push([name, seconds.toFixed(2), ...[before, after, later].map((mb) => mb.toFixed(0))]);
  }
  show(
    markdownTable(rows, [
      flags.quick ? '1 GB' : '10 GB',
      's to the first batch',
      'MB before',
      'MB after it',
      'MB 500 batches on',
    ]),
  );
}

async function others(): Promise<void> {
  const order = await own<{ perSec: number; perCpuSec: number; grown: number }>('order');
  show(
    `A billion indices: ${(order.perSec / 1e6).toFixed(1)} million a second, ${(order.perCpuSec / 1e6).toFixed(1)} million ` +
      `a CPU second, in ${order.grown.toFixed(1)} MB.`,
  );
  const { stepMs, waited } = await own<{ stepMs: number; waited: number }>('nano');
  show(`nano: ${stepMs.toFixed(2)} ms a step, of which ${(100 * waited).toFixed(2)} % wait for a batch.`);
}

const loadNow = (): string => loadavg()[0]!.toFixed(1);

const clean = (): void => rmSync(directory, { recursive: true, force: true });
whenStopped(clean);
try {
  show(`Load before: ${loadNow()}.`);
  const documents = writeCorpus();
  const sections = { packing, batching, resuming: () => resuming(documents), others };
  for (const [name, run] of Object.entries(sections)) if (name.includes(flags.only)) await run();
  if (!hasPeers) show(`The peers are left out: there is no ${peersPython}; bench/peers/setup.sh makes it.`);
  show(`Load after: ${loadNow()}.`);
} finally {
  clean();
}
