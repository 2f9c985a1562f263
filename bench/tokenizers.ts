/** @file `npm run bench:tokenizers`: training, and tokens packed into rows, beside the Rust `tokenizers`, one thread each. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from '../src/hparams/index.js';
import { type BaseTokenizer, ByteTokenizer, PretrainedTokenizer, resolveFiles } from '../src/inputs/index.js';
import { trainBpe, WordCounts } from '../src/inputs/text/vocabularies/bpeTrainer.js';
import { tokenizerJson } from '../src/inputs/text/vocabularies/tokenizerJson.js';
import { hasPeers, peersPython } from './programs.js';
import { median } from './results.js';

const MOST_BYTES = 50e6;
const ROUNDS = 3;
const SEQ_LEN = 1024;

/** The first files of a pattern that have `MOST_BYTES` together. */
function corpus(pattern: string): { readonly path: string; readonly bytes: Uint8Array }[] {
  let size = 0;
  return resolveFiles([pattern])
    .map(({ path }) => ({ path, bytes: readFileSync(path) }))
    .filter(({ bytes }) => {
      if (!Buffer.from(bytes.toString()).equals(bytes)) return false;
      size += bytes.length;
      return size <= MOST_BYTES;
    });
}

const sizeOf = (documents: readonly { readonly bytes: Uint8Array }[]): number =>
  documents.reduce((sum, { bytes }) => sum + bytes.length, 0);

function seconds(act: () => void): number {
  const begun = performance.now();
  act();
  return (performance.now() - begun) / 1000;
}

/** Tokens of documents, in rows of SEQ_LEN. */
function pack(tokenizer: BaseTokenizer, documents: ReturnType<typeof corpus>): Int32Array[] {
  const rows: Int32Array[] = [];
  let row = new Int32Array(SEQ_LEN);
  let used = 0;
  for (const { path, bytes } of documents) {
    const ids = tokenizer.encodeFile({ path, name: path, bytes });
    for (let at = 0; at < ids.length; ) {
      const part = ids.subarray(at, at + SEQ_LEN - used);
      row.set(part, used);
      used += part.length;
      at += part.length;
      if (used < SEQ_LEN) continue;
      rows.push(row);
      row = new Int32Array(SEQ_LEN);
      used = 0;
    }
  }
  return rows;
}

const directory = mkdtempSync(join(tmpdir(), 'luthier-tokenizers-'));
const show = (line: string): void => void process.stdout.write(`${line}\n`);
try {
  const declarations = corpus('node_modules/**/*.d.ts');
  const sources = corpus('node_modules/**/*.{ts,js,mjs,cjs,md,json}');
  const file = join(directory, 'tokenizer.json');
  for (const vocabSize of [8192, 32_768]) {
    const taken = seconds(() => {
      const counts = new WordCounts();
      for (const { bytes } of sources) counts.add(bytes);
      const merges = trainBpe(counts, { firstId: 0, vocabSize, minFrequency: 2 });
      writeFileSync(file, tokenizerJson({ specialTokens: [], merges }));
    });
    show(
      `Luthier: ${vocabSize} tokens learned from ${(sizeOf(sources) / 1e6).toFixed(1)} MB in ${taken.toFixed(2)} s`,
    );
  }
  for (const config of [ByteTokenizer.config(), PretrainedTokenizer.config({ file })]) {
    const rates = Array.from({ length: ROUNDS }, () => {
      const tokenizer = build(config);
      // Reading the vocabulary is no part of it; the cache of words is empty in each round.
      tokenizer.encode('');
      return sizeOf(declarations) / 1e6 / seconds(() => pack(tokenizer, declarations));
    });
    show(
      `Luthier: ${tokenizerName(config)}, packed: ${median(rates).toFixed(1)} MB/s of ${(sizeOf(declarations) / 1e6).toFixed(1)} MB`,
    );
  }
  if (hasPeers) {
    const lists = { declarations, sources };
    for (const [name, documents] of Object.entries(lists))
      writeFileSync(join(directory, name), documents.map(({ path }) => path).join('\n'));
    const peer = fileURLToPath(new URL('peers/rust_tokenizers.py', import.meta.url));
    const env = { ...process.env, TOKENIZERS_PARALLELISM: 'false', RAYON_NUM_THREADS: '1' };
    spawnSync(peersPython, [peer, directory, String(SEQ_LEN)], { stdio: 'inherit', env });
  } else show(`The Rust tokenizers are left out: there is no ${peersPython}; bench/peers/setup.sh makes it.`);
} finally {
  rmSync(directory, { recursive: true, force: true });
}

function tokenizerName(config: object): string {
  return 'file' in config ? 'BPE, 32,768 tokens' : 'bytes';
}
