/** @file Asks for many entries of a cache, as other processes do at the same time; checks that each is whole. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Cache, type Wanted } from '../../../../src/compiler/native/toolchain/programCache.js';

const cache = Cache.open(process.env);
const count = Number(process.argv[2]);
for (let i = 0; i < count; i++) {
  const wanted: Wanted = { kind: 'program', name: `entry ${i}`, dependencies: [], compiler: 'cc' };
  const { library } = await cache.entry(wanted, async (folder) => {
    // Each process makes another one, as compilers may.
    writeFileSync(join(folder, cache.libraryName(wanted)), `${i} of ${process.pid} `.repeat(1000));
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 4));
  });
  const text = readFileSync(library, 'utf8');
  if (text.length < 6000 || !text.startsWith(`${i} of `)) throw new Error(`${library} is damaged`);
}
console.log(`${count} entries`);
