// @ts-check
/**
 * @file The Rust library `tokenizers` in a process of its own, for a file can make it abort, take all memory or never answer. A
 * thread of the process watches what each request takes; beyond its bounds it writes which one and ends the process.
 */
'use strict';

const { writeSync } = require('node:fs');
const { isMainThread, Worker, workerData } = require('node:worker_threads');

/** Milliseconds between looks at a request. */
const EVERY = 20;
/** Places in the watcher's figures: processor time in microseconds and resident bytes at which a request ends. */
const TIME = 0;
const MEMORY = 1;

/** @param {{ isBusy: Int32Array, bounds: Float64Array }} watched */
function watch({ isBusy, bounds }) {
  for (;;) {
    Atomics.wait(isBusy, 0, 0);
    Atomics.wait(isBusy, 0, 1, EVERY);
    if (Atomics.load(isBusy, 0) === 0) continue;
    const { user, system } = process.cpuUsage();
    const isLarge = process.memoryUsage.rss() > Number(bounds[MEMORY]);
    if (!isLarge && user + system <= Number(bounds[TIME])) continue;
    writeSync(2, isLarge ? 'over memory' : 'over time');
    process.kill(process.pid, 'SIGKILL');
  }
}

function serve() {
  const isBusy = new Int32Array(new SharedArrayBuffer(4));
  const bounds = new Float64Array(new SharedArrayBuffer(16));
  new Worker(__filename, { workerData: { isBusy, bounds }, execArgv: [] }).unref();
  /** @type {Map<number, import('tokenizers').Tokenizer>} */
  const tokenizers = new Map();

  /** @param {import('./rustWorker.js').RustRequest} request */
  async function answer(request) {
    if (request.type === 'load') {
      // Here its failure, on a platform that it has no build for, is an answer.
      const { Tokenizer } = require('tokenizers');
      tokenizers.set(request.handle, Tokenizer.fromString(request.contents));
      return null;
    }
    const tokenizer = /** @type {import('tokenizers').Tokenizer} */ (tokenizers.get(request.handle));
    if (request.type === 'decode') return tokenizer.decode([...request.ids], false);
    if (request.type === 'encode') {
      const encoding = await tokenizer.encode(request.text, null, { addSpecialTokens: false });
      return Int32Array.from(encoding.getIds());
    }
    tokenizers.delete(request.handle);
    return null;
  }

  /** @param {{ request: import('./rustWorker.js').RustRequest, microseconds: number, bytes: number }} message */
  async function handle({ request, microseconds, bytes }) {
    const { user, system } = process.cpuUsage();
    bounds[TIME] = user + system + microseconds;
    bounds[MEMORY] = process.memoryUsage.rss() + bytes;
    Atomics.store(isBusy, 0, 1);
    Atomics.notify(isBusy, 0);
    let told;
    try {
      told = { value: await answer(request) };
    } catch (error) {
      told = { error: /** @type {Error} */ (error).message };
    }
    Atomics.store(isBusy, 0, 0);
    Atomics.notify(isBusy, 0);
    process.send?.(told);
  }

  process.on('message', handle);
  process.on('disconnect', () => process.exit());
  // They are sent to a terminal's whole group, and a run that saves before it stops still reads: it ends this process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
}

if (isMainThread) serve();
else watch(workerData);
