/** @file `npm run bench:columns`: rows of Parquet, unpacked once, then read in a random order. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { build } from '../src/hparams/index.js';
import { ParquetSource } from '../src/inputs/index.js';
import { KeyedPermutation, streamKey } from '../src/inputs/random.js';

const ROWS = 200_000;
const directory = mkdtempSync(join(tmpdir(), 'luthier-bench-'));
process.env.XDG_CACHE_HOME = join(directory, 'cache');

function timed<T>(what: string, act: () => T): T {
  const begun = performance.now();
  const made = act();
  const seconds = (performance.now() - begun) / 1000;
  console.log(`${what}: ${seconds.toFixed(2)} s, ${Math.round(ROWS / seconds)} rows/s`);
  return made;
}

try {
  const numbers = Array.from({ length: ROWS }, (_, n) => n);
  const words = numbers.map((n) => `word${(n * 7919) % 9973} `.repeat(20 + (n % 40)));
  const columnData = [
    { name: 'id', data: numbers },
    { name: 'text', data: words },
    { name: 'score', data: numbers.map((n) => n / 7) },
  ];
  const path = join(directory, 'rows.parquet');
  writeFileSync(path, Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: 20_000 })));
  console.log(`${ROWS} rows of ${(statSync(path).size / 1e6).toFixed(0)} MB, in ${ROWS / 20_000} row groups`);
  const source = build(ParquetSource.config({ files: [path] }));
  timed('unpacked', () => source.open()).close();
  const table = timed('opened again', () => source.open());
  const order = new KeyedPermutation(streamKey(0, 'tokens'), ROWS);
  timed('read in a random order', () => {
    for (let i = 0; i < ROWS; i++) table.read(order.at(i));
  });
  timed('read in order', () => {
    for (let i = 0; i < ROWS; i++) table.read(i);
  });
  table.close();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
