/** @file The thread that ends a process which a project's code blocks; JavaScript, which starts without tsx. */
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

/** @type {import('./foreignCode.js').Watched} */
const { words, text, milliseconds } = workerData;

for (;;) {
  const now = Atomics.load(words, 0);
  if (now % 2 === 0) Atomics.wait(words, 0, now);
  else if (Atomics.wait(words, 0, now, milliseconds) === 'timed-out') {
    writeSync(2, Buffer.from(text.slice(0, Atomics.load(words, 1))));
    process.kill(process.pid, 'SIGKILL');
  }
}
