/** @file Ranks that check their collectives, between steps and within: sums of sizes around every border, blocks, data of rank 0, random programs. */

import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import {
  broadcastBytes,
  collectiveNotes,
  gatherJson,
  launchOf,
  MpiRanks,
  mpiSource,
} from '../../src/collectives/index.js';
import { tryNative } from '../../src/compiler/native/compileNatively.js';
import { mpiLibrary } from '../../src/compiler/native/toolchain/mpiLibrary.js';
import { newHostArray, sizeOf } from '../../src/compiler/program/tensors.js';
import { treeSum } from '../../src/tasks/subBatches.js';
import { caseOf, meaningOf, programOf } from '../compiler/native/ranks/rankCases.js';
import { GraphMaker } from '../compiler/native/ranks/rankPrograms.js';

const found = await mpiLibrary(mpiSource);
if ('reason' in found) throw new Error(found.reason);
const ranks = await MpiRanks.open(found.library);
const { rank, count } = ranks;
const problems: string[] = [];
const check = (fits: boolean, what: string) => {
  if (!fits) problems.push(`rank ${rank} of ${count}: ${what}`);
};
check(process.env.UCX_MEM_EVENTS === 'no', 'UCX may replace brk');
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
for (let root = 0; root < count; root++) {
  const data = Uint8Array.from({ length: 5 }, (_, i) => 10 * rank + i);
  await ranks.broadcast(data, root);
  check(data.join() === [0, 1, 2, 3, 4].map((i) => 10 * root + i).join(), `data of rank ${root}`);
  const bits = Uint8Array.from({ length: 70_000 }, (_, i) => (i % count === rank ? i % 251 : 0));
  await ranks.combine(bits, root);
  check(
    bits.every((byte, i) => byte === (rank === root || i % count === rank ? i % 251 : 0)),
    `bits on rank ${root}`,
  );
}
const texts = await gatherJson(ranks, 'ä'.repeat(rank));
check(texts.join() === Array.from({ length: count }, (_, r) => 'ä'.repeat(r)).join(), `texts ${texts}`);

/** Meshes that the steps of so many ranks are on. */
const MESHES: Readonly<Record<number, readonly (readonly number[])[]>> = {
  2: [[2]],
  3: [[3]],
  4: [
    [2, 2],
    [1, 4],
  ],
};
for (const mesh of MESHES[count] ?? []) {
  // All ranks draw the same cases.
  const cases = fc.sample(caseOf(mesh), { numRuns: 40, seed: Number(process.env.SEED ?? 1) });
  const { graph, given } = programOf(mesh, cases);
  const attempt = await tryNative(graph, { name: 'steps', ranks: ranks.steps, numThreads: 2 });
  if ('reason' in attempt) throw new Error(attempt.reason);
  const results = graph.outputs.map(({ dtype, shape }) => newHostArray(dtype, sizeOf(shape)));
  await attempt.backend.bind({ inputs: given[rank]!, outputs: results })(3);
  cases.forEach((each, i) => {
    const expected = meaningOf(
      each,
      given.map((inputs) => inputs[i]!),
    )[rank]!;
    check(
      results[i]!.every((value, j) => Object.is(value, expected[j])),
      `${JSON.stringify(each)}: ${results[i]}, not ${expected}`,
    );
  });
  await attempt.backend.dispose();
}

// The last 1,000 are remembered.
const before = Date.now();
for (let i = 0; i < 1100; i++) await ranks.allReduce(new Float32Array(1 + (i % 7)));
const notesNow = await collectiveNotes(found.library);
const notes = notesNow();
check(
  count === 1 ||
    (notes.length === 1000 &&
      notes.every(({ name, bytes, members, begin, end }, i) => {
        const isSum = name === 'allReduce' && members === count && bytes === 4 * (1 + ((i + 100) % 7));
        return isSum && begin >= before - 1000 && end! >= begin && end! <= Date.now() + 1;
      })),
  `notes ${JSON.stringify(notes.slice(0, 3))}`,
);

// A step's collectives are among them, and must not meet another call of the rank.
if (count > 1) {
  const maker = new GraphMaker();
  const [sum] = maker.add('AllReduce', [maker.input([8])], { mesh: [count], axes: [0], reduction: 'sum' });
  const attempt = await tryNative(maker.graph(sum!), { name: 'steps', ranks: ranks.steps });
  if ('reason' in attempt) throw new Error(attempt.reason);
  const [x, y] = [new Float32Array(8).fill(rank), new Float32Array(8)];
  const run = attempt.backend.bind({ inputs: [x], outputs: [y] });
  await run();
  const note = () => notesNow().at(-1);
  check(
    y[7] === (count * (count - 1)) / 2 && note()?.bytes === 32,
    `a step's note ${JSON.stringify(note())}`,
  );
  // Rank 1 waits in a call of its own until rank 0 joins it.
  const told = process.env.TOLD_BY_RANK_1!;
  if (rank === 0) while (!existsSync(told)) await setTimeout(20);
  const waiting = ranks.allReduce(new Float32Array(2));
  if (rank === 1) {
    while (note()?.end !== undefined) await setTimeout(20);
    const message = await run().then(
      () => '',
      (error: Error) => error.message,
    );
    const expected =
      `steps: allReduce of 32 bytes along the axes 0 of the mesh ${count} failed on rank 1: ` +
      'another collective of this rank is under way.';
    check(message === expected, message);
    writeFileSync(told, '');
  }
  await waiting;
  await attempt.backend.dispose();
}

for (const problem of problems) console.error(problem);
if (rank === 0) console.log(`${ranks.version} with ${count} ranks`);
await ranks.finish();
process.exitCode = problems.length > 0 ? 1 : 0;
