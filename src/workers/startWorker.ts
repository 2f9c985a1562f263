/** @file Worker threads that load TypeScript, under tsx, vitest and plain node alike. */

import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/** Options of a worker: node's own, less those that this module sets. */
export type StartWorkerOptions = Omit<WorkerOptions, 'eval' | 'execArgv'>;

/**
 * Starts the module at `url` in a worker thread.
 *
 * A thread does not inherit tsx's hooks, so it first registers tsx's synchronous `require` hook. The module is
 * therefore loaded as CommonJS: it may use `import` statements and `import.meta.url`, but no top-level `await`. This
 * applies to the JavaScript package, too, where modules required from a user's TypeScript are then the same instances.
 *
 * @param url the worker's module, `` new URL(`./someWorker${extname(import.meta.url)}`, import.meta.url) ``
 * @param options `workerData`, `name`, `transferList`, `resourceLimits` … as for node's `Worker`
 */
export function startWorker(url: URL, options: StartWorkerOptions = {}): Worker {
  const typescript = fileURLToPath(new URL('../system/typescript.cjs', import.meta.url));
  const bootstrap = `require(${JSON.stringify(typescript)}).registerRequires(); require(${JSON.stringify(fileURLToPath(url))});`;
  return new Worker(bootstrap, { ...options, eval: true, execArgv: [] });
}
