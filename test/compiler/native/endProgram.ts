/** @file Ends a process, or a thread of it, that has used the team of threads; what it prints says that it came so far. */
import { isMainThread } from 'node:worker_threads';
import { startWorker } from '../../../src/workers/index.js';
import { openSource, scaling, waiting } from './programs.js';

const way = process.argv[2]!;

async function useTeam(): Promise<void> {
  const backend = await openSource(scaling(4), [new Float32Array([10])], { threads: 3, name: 'end' });
  const run = backend.bind({ inputs: [new Float32Array(4)], outputs: [new Float32Array(4)] });
  for (let i = 0; i < 5; i++) await run();
}

/** Ends in the middle of a run. */
async function endRunning(): Promise<void> {
  const flag = new Uint8Array(1);
  const backend = await openSource(waiting, [], { threads: 2, name: 'end' });
  void backend.bind({ inputs: [flag], outputs: [] })();
  process.on('exit', () => {
    // The process waits for the threads of its pool.
    flag[0] = 1;
  });
  setTimeout(() => {
    console.log(way);
    process.exit(0);
  }, 50);
}

/** A thread that loaded the libraries ends; the team stays for the others. */
async function outliveWorker(): Promise<void> {
  const code = await new Promise((resolve, reject) => {
    const worker = startWorker(new URL(import.meta.url), { argv: [way] });
    worker.once('exit', resolve).once('error', reject);
  });
  await useTeam();
  console.log(code === 0 ? way : `the worker ended with ${code}`);
}

async function main(): Promise<void> {
  if (way === 'worker' && isMainThread) return outliveWorker();
  await useTeam();
  if (way === 'exit') await endRunning();
  else if (isMainThread) console.log(way);
}

void main();
