/** @file Watchdog of a training run: a thread of its own ends the run where nothing has finished for long. */
import { url as debuggerUrl } from 'node:inspector';
import { extname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { JobError, type JobRanks, type ProgressNotes } from '../../runs/index.js';
import { type StrayFailures, warn } from '../../system/index.js';
import { startWorker } from '../../workers/index.js';
import { hangLog, nameOfRank, silentRanks } from '../ranks/collectiveRecord.js';
import { Board } from './board.js';
import { type Leave, leaver } from './leave.js';
import type { WatchedLimits, WatchMessage } from './watchWorker.js';

const MODULE = new URL(`./watchWorker${extname(import.meta.url)}`, import.meta.url);

/** The unit whose durations are those of steps. */
const STEP_UNIT = 'step';

/** Until a rank that hangs ends the job: others that wait for each other tell where, too. */
const OTHERS_MS = 1500;

/** A run is watched from here on; a shorter one needs no thread. */
const STARTS_AFTER_MS = 1000;

/** Settings of a watched run. */
export interface WatchOptions {
  readonly jobLogDir: string;
  readonly limits: WatchedLimits;
  /** Finished steps. */
  readonly step: () => number;
  /** Of a job of several processes. */
  readonly ranks?: JobRanks | undefined;
  /** Takes the error of a hang, for whatever awaits a batch or a program. */
  readonly strays: StrayFailures;
}

/** Nothing of a run has finished for too long. */
export class HangError extends JobError {}

/** Notes progress, and rejects `hung` once there has been none for too long. */
export class Watchdog implements ProgressNotes {
  readonly #board = new Board();
  readonly #units: { readonly unit: string; readonly patience: number }[] = [];
  #step: () => number = () => 0;
  #timer: NodeJS.Timeout | undefined;
  #worker: Worker | undefined;
  #fail: (error: HangError) => void = () => {};
  #leave: Leave | undefined;
  /** Rejected where the run hangs; else it is never settled. */
  readonly hung = new Promise<never>((_, reject) => {
    this.#fail = reject;
  });

  constructor() {
    // The error goes to the loop, which may not run yet.
    this.hung.catch(() => {});
  }

  async during<T>(unit: string, act: () => Promise<T>, patience = 1): Promise<T> {
    const began = performance.now();
    this.#units.push({ unit, patience });
    this.#note();
    try {
      return await act();
    } finally {
      this.#units.pop();
      if (unit === STEP_UNIT) this.#board.addDuration((performance.now() - began) / 1000);
      this.#board.beat();
      this.#note();
    }
  }

  finished(): void {
    this.#board.beat();
  }

  /** Starts to watch; not beside a debugger, whose breakpoints are no hangs. */
  watch(options: WatchOptions): void {
    if (debuggerUrl() !== undefined) return;
    this.#step = options.step;
    this.#note();
    this.#timer = setTimeout(() => this.#start(options), STARTS_AFTER_MS).unref();
  }

  /** Ends the thread; after a hang, once the process is about to end. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#leave === undefined) await this.#worker?.terminate();
  }

  #note(): void {
    const { unit = 'the loop', patience = 1 } = this.#units.at(-1) ?? {};
    this.#board.note({ unit, patience, step: this.#step() });
  }

  #start({ jobLogDir, limits, strays, ranks }: WatchOptions): void {
    const log = hangLog(jobLogDir, ranks?.rank ?? 0);
    const who = ranks === undefined ? 'The run' : nameOfRank(ranks);
    const worker = startWorker(MODULE, {
      name: 'watchdog',
      workerData: {
        ...{ memory: this.#board.memory, limits, log, who, jobLogDir },
        ...(ranks && { ranks: { rank: ranks.rank, library: ranks.library } }),
      },
    });
    // Without its thread the run is not watched, and goes on.
    worker.on('error', (error) => warn(`The run goes on without its watchdog: ${error.stack}`));
    worker.on('message', ({ text }: WatchMessage) => {
      worker.postMessage('heard');
      leaver().then(async (leave) => {
        if (ranks !== undefined) await sleep(OTHERS_MS);
        const error = new HangError(text + (ranks === undefined ? '' : silentRanks(jobLogDir, ranks)));
        this.#leave = leave;
        // A thread that hangs in a system call or in machine code would keep the process from ending.
        process.once('exit', (code) => leave(code));
        strays.fail(error);
        this.#fail(error);
      });
    });
    // Behind the listener, which would keep the process alive: a run that waits for nothing ends by itself.
    worker.unref();
    this.#worker = worker;
  }
}
