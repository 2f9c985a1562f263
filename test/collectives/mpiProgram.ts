/** @file Ranks that check their collectives: sums of sizes around every border, blocks, and data of rank 0. */

import { broadcastBytes, gatherJson, launchOf, MpiRanks, mpiSource } from '../../src/collectives/index.js';
import { mpiLibrary } from '../../src/compiler/native/toolchain/mpiLibrary.js';
import { treeSum } from '../../src/tasks/subBatches.js';

const found = await mpiLibrary(mpiSource);
if ('reason' in found) throw new Error(found.reason);
const ranks = await MpiRanks.open(found.library);
const { rank, count } = ranks;
const problems: string[] = [];
const check = (fits: boolean, what: string) => {
  if (!fits) problems.push(`rank ${rank} of ${count}: ${what}`);
};
const launch = launchOf();
check((launch?.count ?? 1) === count && (launch?.rank ?? 0) === rank, `launch ${JSON.stringify(launch)}`);

/** Values whose sum depends on its order. */
const parts = (size: number): Float32Array[] =>
  Array.from({ length: count }, (_, r) =>
    Float32Array.from({ length: size }, (_, i) => Math.sin(1 + 17 * r + i) * 10 ** ((3 * r + i) % 9)),
  );
for (const size of [0, 1, 2, 3, 7, 64, 1000, 4097, 300_001]) {
  const own = parts(size)[rank]!;
  await ranks.allReduce(own);
  const expected = treeSum(parts(size));
  check(
    Buffer.compare(Buffer.from(own.buffer), Buffer.from(new Float32Array(expected).buffer)) === 0,
    `sums of ${size}`,
  );
}
// Calls that are not waited for keep their order.
const [a, b] = [Float32Array.of(rank), Float32Array.of(1)];
await Promise.all([ranks.allReduce(a), ranks.allReduce(b)]);
check(a[0] === (count * (count - 1)) / 2 && b[0] === count, 'two sums at once');
for (const block of [0, 1, 5, 70_000]) {
  const all = new Uint8Array(block * count);
  all.fill(rank + 1, block * rank, block * (rank + 1));
  await ranks.allGather(all);
  check(
    all.every((byte, i) => byte === Math.floor(i / block) + 1),
    `blocks of ${block}`,
  );
}
const told = await broadcastBytes(
  ranks,
  rank === 0 ? Uint8Array.from({ length: 100_000 }, (_, i) => i) : new Uint8Array(),
);
check(told.length === 100_000 && told.every((byte, i) => byte === i % 256), 'data of rank 0');
const texts = await gatherJson(ranks, 'ä'.repeat(rank));
check(texts.join() === Array.from({ length: count }, (_, r) => 'ä'.repeat(r)).join(), `texts ${texts}`);
check(ranks.notes.length > 0 && ranks.notes.every(({ end }) => end !== undefined), 'notes');
for (const problem of problems) console.error(problem);
if (rank === 0) console.log(`${ranks.version} with ${count} ranks`);
await ranks.finish();
process.exitCode = problems.length > 0 ? 1 : 0;
