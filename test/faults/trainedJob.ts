/** @file Training by the command, under faults: processes bounded in time, and jobs that they go on from to the same bits. */
import { cpSync, existsSync, mkdirSync, mkdtempSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { openToolchain } from '../../src/compiler/native/toolchain/index.js';
import { type Finished, startCommand } from '../command.js';
import { stateAt, untimedLines } from '../programs/runs.js';

/** How a process ended; `said` is all that it wrote. */
export interface Ended extends Finished {
  readonly hung: boolean;
  readonly said: string;
}

/** Runs a script of the repository to its end; one that takes minutes hangs, and is killed. */
export async function bounded(
  args: readonly string[],
  script?: string,
  env?: Readonly<Record<string, string>>,
): Promise<Ended> {
  const running = startCommand(args, undefined, script, env);
  let hung = false;
  const timer = setTimeout(() => {
    hung = true;
    running.child.kill('SIGKILL');
  }, 180_000);
  const finished = await running.finished;
  clearTimeout(timer);
  return { ...finished, hung, said: `${finished.stdout}${finished.stderr}` };
}

/** What no damage and no failing call may bring about. */
export function crashes({ hung, signal, code, stderr }: Omit<Ended, 'said' | 'stdout'>): string[] {
  return [
    ...(hung ? ['it hangs'] : []),
    ...(signal === null ? [] : [`it was ended by ${signal}`]),
    ...(code === 0 || code === 1 ? [] : [`exit code ${code}`]),
    ...(/^ {4}at /m.test(stderr) ? [`a stack: ${stderr}`] : []),
    ...(/other values/.test(stderr) ? [stderr] : []),
  ];
}

/** A cache that is damaged has its programs, and the runtime, compiled again. */
const quick = { LUTHIER_CFLAGS: '-O0' };

/** Where a run writes: its job_log_dir, and the folder of its caches. */
export interface Places {
  readonly job: string;
  readonly cache: string;
}

/** The step until which jobs have come before they are disturbed. Every second one is saved. */
const BEGUN = 4;
/** The step at which they end. */
export const END = 6;

/** Trains in C by the command until a step; from the newest checkpoint, where there is one. */
export function train(
  { job, cache }: Places,
  lastStep: number,
  env: Readonly<Record<string, string>> = {},
  flags: readonly string[] = [],
): Promise<Ended> {
  const sets = [`numTrainSteps=${lastStep}`, 'task.train.saveIntervalSteps=2'].flatMap((set) => [
    '--set',
    set,
  ]);
  const args = ['--exp=tiny.Tiny', '--mode=train', '--engine=native', `--job_log_dir=${job}`];
  return bounded([...args, ...sets, ...flags], undefined, {
    ...env,
    XDG_CACHE_HOME: cache,
    ...quick,
  });
}

/** A job that was not disturbed, as it had begun and as it ended, for copies to be damaged. */
export class TrainedJob {
  #copies = 0;

  private constructor(
    private readonly folder: string,
    private readonly begun: Places,
    private readonly ended: Places,
  ) {}

  /** Trains it below a folder. */
  static async in(folder: string): Promise<TrainedJob> {
    const own = mkdtempSync(join(folder, 'trained-'));
    const begun = { job: join(own, 'begun'), cache: join(own, 'cache') };
    mkdirSync(begun.cache, { mode: 0o700 });
    // Jobs of all suites have the runtime that one of them has compiled.
    const toolchain = await openToolchain({ ...process.env, ...quick });
    if (!('reason' in toolchain)) {
      const runtime = dirname(toolchain.runtime.library);
      mkdirSync(join(begun.cache, 'luthier'), { mode: 0o700 });
      cpSync(runtime, join(begun.cache, 'luthier', basename(runtime)), { recursive: true });
    }
    expect(await train(begun, BEGUN)).toMatchObject({ code: 0, stderr: '' });
    const ended = { job: join(own, 'ended'), cache: begun.cache };
    cpSync(begun.job, ended.job, { recursive: true });
    expect(await train(ended, END)).toMatchObject({ code: 0, stderr: '' });
    return new TrainedJob(own, begun, ended);
  }

  /** Copies for one try. @param isNew the job has not begun; its programs are compiled all the same. */
  copy(isNew = false): Places {
    const own = join(this.folder, `${this.#copies++}`);
    const places = { job: join(own, 'job'), cache: join(own, 'cache') };
    cpSync(this.begun.cache, places.cache, { recursive: true });
    if (!isNew) cpSync(this.begun.job, places.job, { recursive: true });
    return places;
  }

  /** How a job that has ended differs from the one that was not disturbed. @param lines whether its metrics must be the same */
  differences({ job }: Places, lines = true): string[] {
    if (!existsSync(join(job, 'checkpoints', `checkpoint_0000000${END}`)))
      return ['it ended without its last step'];
    const found: string[] = [];
    if (!stateAt(job, END).equals(stateAt(this.ended.job, END))) found.push('it ended with other bits');
    const [ours, others] = [job, this.ended.job].map(trainLines);
    if (lines && !isDeepStrictEqual(ours, others))
      found.push(`it ended with other metrics, of the steps ${ours!.map(({ step }) => step)}`);
    return found;
  }
}

/** A job that goes on from an earlier step evaluates at other steps. */
const trainLines = (job: string) => untimedLines(job).filter(({ program }) => program === 'train');
