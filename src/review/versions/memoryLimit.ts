/** @file Memory limit of this process, kept by a thread that a busy main thread does not hold up. */
import { Worker } from 'node:worker_threads';

const watch = `
const { writeSync } = require('node:fs');
const { workerData: gigabytes } = require('node:worker_threads');
setInterval(() => {
  if (process.memoryUsage.rss() <= gigabytes * 1e9) return;
  writeSync(2, \`It took more than \${gigabytes} GB of memory; luthier diff --memory=GIGABYTES gives it more.\\n\`);
  process.kill(process.pid, 'SIGKILL');
}, 50);
`;

/** Kills this process once it holds more than so many gigabytes, with a message on stderr. */
export function limitMemory(gigabytes: number): void {
  new Worker(watch, { eval: true, workerData: gigabytes, execArgv: [] }).unref();
}
