/** @file The watchdog's thread: waits for progress, and where there is none tells the stacks of all threads and ends the run. */
import { writeFileSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { JobRanks } from '../../runs/index.js';
import { collectiveRecord } from '../ranks/collectiveRecord.js';
import { Board } from './board.js';
import { leaver } from './leave.js';
import { MainThread, systemThreads } from './threadStacks.js';

/** How long nothing may finish. */
export interface WatchedLimits {
  /** In median steps. */
  readonly steps: number;
  /** At least so many seconds. */
  readonly seconds: number;
}

/** Data that the thread is started with. */
interface WatchData {
  readonly memory: SharedArrayBuffer;
  readonly limits: WatchedLimits;
  /** File that stacks are written to, beside the console. */
  readonly log: string;
  /** Subject of messages. */
  readonly who: string;
  readonly jobLogDir: string;
  /** Of a job of several processes. */
  readonly ranks?: Pick<JobRanks, 'rank' | 'library'>;
}

/** The error of a hang. */
export interface WatchMessage {
  readonly text: string;
}

const { memory, limits, log, who, jobLogDir, ranks } = workerData as WatchData;
const board = new Board(memory);
const port = parentPort!;

/** Between looks at the board: late by little beside the limit, and by less than a second. */
const EVERY_MS = Math.min(500, 125 * limits.seconds);
/** The main thread answers within this time, unless it runs JavaScript without end or waits in a system call. */
const ANSWER_MS = 300;

const shown = (seconds: number): string => `${Number(seconds.toPrecision(3))} s`;

/** The present limit in seconds, and the same in words. */
function limitNow(): { readonly seconds: number; readonly words: string } {
  const median = board.median() ?? 0;
  const { patience } = board.noted();
  const seconds = patience * Math.max(limits.seconds, limits.steps * median);
  const times = patience === 1 ? '' : `${patience} times the larger of `;
  return {
    seconds,
    words: `${times}${limits.steps} median steps of ${shown(median)}, at least ${shown(limits.seconds)}`,
  };
}

/** Waits until there has been no progress for the limit. @returns the sentence about it */
async function untilHung(): Promise<string> {
  let [beats, idle, last] = [board.beats, 0, performance.now()];
  for (;;) {
    await sleep(EVERY_MS);
    const now = performance.now();
    // A process that was stopped for a while has not hung: time counts as far as this thread runs.
    idle += Math.min(now - last, 2 * EVERY_MS);
    last = now;
    if (board.beats !== beats) [beats, idle] = [board.beats, 0];
    const { seconds, words } = limitNow();
    if (idle < 1000 * seconds) continue;
    const { unit, step } = board.noted();
    return `${who} hangs after step ${step}: nothing has finished for ${shown(idle / 1000)} (the limit is ${words}). It is in: ${unit}.`;
  }
}

function tell(text: string): void {
  for (const write of [() => writeSync(2, `${text}\n`), () => writeFileSync(log, `${text}\n`, { flag: 'a' })])
    try {
      write();
    } catch {
      // Nobody reads it, or the disk is full.
    }
}

async function end(text: string): Promise<never> {
  tell(text);
  (await leaver())(1);
  throw new Error(text);
}

/** Whether the main thread answers in time. */
function answers(ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const heard = (): void => settle(true);
    const timer = setTimeout(() => settle(false), ms);
    const settle = (isHeard: boolean): void => {
      clearTimeout(timer);
      port.off('message', heard);
      resolve(isHeard);
    };
    port.on('message', heard);
  });
}

async function watch(): Promise<void> {
  // Opened early: work that waits for the main thread waits in vain later.
  const recordCollectives = ranks && (await collectiveRecord(jobLogDir, ranks));
  const text = await untilHung();
  tell(text);
  recordCollectives?.();
  const main = new MainThread();
  tell([...(await main.stacks()), ...systemThreads()].join('\n'));
  port.postMessage({ text: `${text} Stacks of its threads are in ${log}.` } satisfies WatchMessage);
  if (!(await answers(ANSWER_MS))) {
    // The promise that waits for this code is never settled; the loop gives it up.
    main.terminate();
    if (!(await answers(1000 * limits.seconds)))
      await end('The main thread does not answer, so nothing was saved; the newest checkpoint counts.');
  }
  await untilHung();
  await end(`${who} hangs in its end, too, and is left.`);
}

void watch();
