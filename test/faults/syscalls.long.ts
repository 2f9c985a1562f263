/** @file System calls that fail while a run saves and reports: nothing that it said was saved is lost, and each is told. */
import { appendFileSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Checkpointer } from '../../src/checkpoints/index.js';
import { type Finished, project, temporaryDirectory } from '../command.js';
import { metricLines } from '../programs/runs.js';
import { draw, title, tries } from './campaign.js';
import { callsIn, canInject, type Fault, faultEnv } from './preload.js';
import { isStateOf, stateOf } from './savedState.js';
import { savingRun } from './savingRun.js';
import { bounded, crashes, END, TrainedJob, train } from './trainedJob.js';

const KINDS = ['open', 'create', 'read', 'write', 'fsync', 'ftruncate', 'rename', 'mkdir', 'unlink', 'rmdir'];
type How = Fault['how'];

/** What may happen to each kind of call. */
const HOWS: Readonly<Record<string, readonly How[]>> = {
  open: ['EACCES', 'EIO', 'EINTR', 'kill'],
  create: ['ENOSPC', 'EROFS', 'EACCES', 'EDQUOT', 'kill'],
  read: ['EIO', 'EINTR', 'short', 'kill'],
  write: ['ENOSPC', 'EIO', 'short', 'kill', 'EINTR', 'EDQUOT'],
  fsync: ['EIO', 'ENOSPC', 'kill'],
  ftruncate: ['EIO', 'kill'],
  rename: ['ENOSPC', 'EIO', 'EACCES', 'kill'],
  mkdir: ['ENOSPC', 'EROFS', 'EACCES', 'kill'],
  unlink: ['EACCES', 'EIO', 'kill'],
  rmdir: ['EIO', 'kill'],
};

/** A call at which something happens: the nth of a run that is new, or goes on from step 6. */
interface Place {
  readonly from: 0 | 6;
  readonly nth: number;
  readonly call: string;
  readonly path: string;
}

const folder = temporaryDirectory();
let count = 0;

/** Runs until a step in `directory`, under a fault. */
async function run(directory: string, lastStep: number, fault?: Omit<Fault, 'calls'>) {
  const log = join(folder, `calls-${count++}`);
  const env = fault === undefined ? {} : faultEnv(folder, directory, { calls: KINDS, ...fault }, log);
  const args = [directory, String(lastStep)];
  return { ...(await bounded(args, 'test/faults/savingProgram.ts', env)), calls: callsIn(log) };
}

const newDirectory = () => mkdtempSync(join(folder, 'job-'));

/** A directory in which a run ended at step 6, with a line and a part of one that the next run cuts off. */
const template = join(folder, 'template');

function begin(from: 0 | 6): string {
  const directory = newDirectory();
  if (from === 6) cpSync(template, directory, { recursive: true });
  return directory;
}

/** All calls of an undisturbed run. */
async function placesOf(from: 0 | 6): Promise<Place[]> {
  const directory = begin(from);
  const { calls, code, stderr } = await run(directory, from + 6, { nth: 0, how: 'kill' });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return calls.map(({ call, path }, at) => ({ from, nth: at + 1, call, path: path.slice(directory.length) }));
}

const stepsSaid = ({ stdout }: Finished) =>
  [...stdout.matchAll(/^saved (\d+)$/gm)].map(([, step]) => Number(step));

/** What is wrong with the newest checkpoint: it must be whole, at least of `atLeast`, and have that step's values. */
async function checkpointProblem(directory: string, atLeast: number): Promise<string | undefined> {
  const reader = new Checkpointer({
    directory: join(directory, 'checkpoints'),
    experiment: 'faults',
    readOnly: true,
  });
  try {
    if (reader.latestStep() === undefined) return atLeast < 0 ? undefined : `step ${atLeast} is lost`;
    const state = stateOf();
    const { step } = await reader.restore(state);
    if (step < atLeast) return `step ${atLeast} was saved, and the newest is ${step}`;
    return isStateOf(step, state) ? undefined : `step ${step} has other values`;
  } catch (error) {
    return `the newest checkpoint: ${(error as Error).message}`;
  }
}

const entries = (directory: string) => readdirSync(directory, { recursive: true }).map(String);

const temporaries = (directory: string) => entries(directory).filter((name) => /tmp$|tmp_/.test(name));

/** Event files whose records don't end with the file. */
function tornEvents(directory: string): string[] {
  return entries(directory).filter((name) => {
    if (!name.includes('tfevents')) return false;
    const bytes = readFileSync(join(directory, name));
    let at = 0;
    while (at + 8 <= bytes.length) at += 16 + Number(bytes.readBigUInt64LE(at));
    return at !== bytes.length;
  });
}

function metricsProblem(directory: string, lastStep: number): string | undefined {
  const steps = metricLines(directory).map(({ step }) => step);
  const expected = Array.from({ length: lastStep }, (_, at) => at + 1);
  return JSON.stringify(steps) === JSON.stringify(expected) ? undefined : `metrics.jsonl has steps ${steps}`;
}

/** What went wrong with a run at whose `place` something happened, and with the run after it. */
async function problemsOf(place: Place, how: How, times: number): Promise<string[]> {
  const directory = begin(place.from);
  const last = place.from + 6;
  const first = await run(directory, last, { nth: place.nth, how, times });
  const problems: (string | undefined)[] = [];
  const { code, signal, said, stderr } = first;
  if (first.hung) problems.push('it hangs');
  if (how !== 'kill' && signal !== null) problems.push(`it was ended by ${signal}`);
  const known = Math.max(place.from === 6 ? 6 : -1, ...stepsSaid(first));
  problems.push(await checkpointProblem(directory, known));
  if (how === 'short' || how === 'EINTR') {
    if (code !== 0 || said.includes('told')) problems.push(`it is not overcome: ${said}`);
  } else if (how !== 'kill') {
    // Where directories can't be opened, their entries are not synced: nothing that a user could mend.
    const isDirectory = !/\.(json|jsonl|safetensors|tmp)$|tfevents/.test(place.path);
    // A mark of a reader or a deletion is for other processes, and goes with this one.
    const isMark = /\.(lease|deletion)_/.test(place.path);
    const isQuiet = isMark || (how === 'EACCES' && place.call === 'open' && isDirectory);
    if (!isQuiet && (!said.includes(how) || !said.includes(directory)))
      problems.push(`it is not told: ${said}`);
    if (code !== 0 && code !== 1) problems.push(`exit code ${code}`);
    if (/^ {4}at /m.test(stderr)) problems.push(`it is told with a stack: ${stderr}`);
    // Of several calls that fail, the later ones may be those that remove what the first had made.
    const removes = times === 1 && !['unlink', 'rmdir'].includes(place.call);
    if (removes && temporaries(directory).length > 0) problems.push(`it leaves ${temporaries(directory)}`);
    problems.push(...tornEvents(directory).map((name) => `${name} is torn`));
  }
  if (code === 0) problems.push(metricsProblem(directory, last));
  const next: string[] = [];
  await savingRun(directory, last, (line) => next.push(line)).catch((error) =>
    next.push(`told: ${error.message}`),
  );
  if (next.some((line) => line.includes('told'))) problems.push(`the next run: ${next.join('\n')}`);
  problems.push(await checkpointProblem(directory, last), metricsProblem(directory, last));
  if (temporaries(join(directory, 'checkpoints')).length > 0)
    problems.push(`the next run leaves ${temporaries(join(directory, 'checkpoints'))}`);
  const where = `${place.call} no. ${place.nth} on ${place.path} from step ${place.from}, ${how} x ${times}`;
  return problems.filter((problem) => problem !== undefined).map((problem) => `${where}: ${problem}`);
}

/** Two at a time. */
async function all<T>(items: readonly T[], act: (item: T) => Promise<string[]>): Promise<string[]> {
  const waiting = [...items];
  const found: string[] = [];
  const work = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift())
      for (const problem of await act(item)) {
        // At once: a campaign may be ended before it is through.
        console.error(problem);
        found.push(problem);
      }
  };
  await Promise.all([work(), work()]);
  return found;
}

/** A call of training by the command: on the job that has begun, on a new one, or on the cache or the corpus. */
interface CommandFault extends Omit<Fault, 'calls' | 'nth'> {
  readonly what: string;
  readonly call: string;
  readonly nth?: number;
  readonly on?: 'job' | 'cache' | 'corpus';
  /** The job is new. */
  readonly isNew?: boolean;
  /** The compiled programs are not in the cache. */
  readonly compiles?: boolean;
  /** It ends well, without a word: what fails can be done without. */
  readonly isQuiet?: boolean;
}

const ALWAYS = 1e6;

const commandFaults: readonly CommandFault[] = [
  {
    what: 'a periodic save',
    isNew: true,
    call: 'write',
    part: 'checkpoint_00000002/state',
    how: 'ENOSPC',
    times: 9,
  },
  { what: 'all saves', call: 'write', part: '/checkpoints/', how: 'EDQUOT', times: ALWAYS },
  {
    what: 'a line of metrics',
    isNew: true,
    call: 'write',
    part: 'metrics.jsonl',
    how: 'ENOSPC',
    nth: 2,
    times: 2,
  },
  { what: 'half a line of metrics', call: 'write', part: 'metrics.jsonl', how: 'short' },
  { what: 'all metrics', call: 'write', part: 'metrics.jsonl', how: 'ENOSPC', times: ALWAYS },
  { what: 'a record of events', call: 'write', part: 'tfevents', how: 'EIO', nth: 2 },
  {
    what: 'the rename of a checkpoint',
    isNew: true,
    call: 'rename',
    part: 'checkpoint_00000004',
    how: 'EIO',
  },
  { what: 'the last rename', call: 'rename', part: 'checkpoint_00000006', how: 'EIO', times: ALWAYS },
  { what: 'a sync', call: 'fsync', part: 'checkpoint_00000006', how: 'kill' },
  { what: 'a sync of a new job', isNew: true, call: 'fsync', part: 'checkpoint_00000004', how: 'kill' },
  {
    what: 'the removal of a checkpoint',
    call: 'unlink',
    part: 'checkpoint_00000002',
    how: 'EIO',
    times: ALWAYS,
  },
  { what: 'restoring', call: 'read', part: 'checkpoint_00000004/state', how: 'EIO' },
  { what: 'the description', call: 'create', part: 'experiment.json', how: 'EACCES' },
  { what: 'the record of the data', isNew: true, call: 'create', part: 'data/train', how: 'ENOSPC' },
  { what: 'a directory', isNew: true, call: 'mkdir', part: 'summaries', how: 'EROFS' },
  { what: 'the lock', call: 'create', part: '.train.lock', how: 'EACCES' },
  { what: 'the corpus', on: 'corpus', call: 'read', how: 'EIO' },
  { what: 'a compilation', on: 'cache', compiles: true, call: 'write', how: 'ENOSPC', times: ALWAYS },
  { what: 'a compiled program', on: 'cache', compiles: true, call: 'rename', part: 'program-', how: 'kill' },
  { what: 'marks', on: 'cache', call: 'create', part: 'use-', how: 'ENOSPC', times: ALWAYS, isQuiet: true },
];

const errnoName = (how: How) => (how === 'EDQUOT' ? /EDQUOT|quota/i : new RegExp(how));

/** What went wrong with training at whose call something happened, and with that which goes on from it. */
async function commandProblems(trained: TrainedJob, fault: CommandFault): Promise<string[]> {
  const { what, call, on = 'job', isNew, compiles, isQuiet, nth = 1, ...more } = fault;
  const places = trained.copy(isNew);
  if (compiles)
    for (const name of readdirSync(join(places.cache, 'luthier')).filter((name) =>
      /^(plan|program)-/.test(name),
    ))
      rmSync(join(places.cache, 'luthier', name), { recursive: true });
  const directory = { ...places, corpus: join(project, 'corpus') }[on];
  const log = join(folder, `calls-${count++}`);
  const first = await train(places, END, faultEnv(folder, directory, { ...more, calls: [call], nth }, log));
  const problems = callsIn(log).length < nth ? ['it does not happen'] : [];
  if (fault.how !== 'kill') problems.push(...crashes(first));
  else if (first.signal !== 'SIGKILL') problems.push(`it is not killed: ${first.said}`);
  const isTold = errnoName(fault.how).test(first.said) || (on === 'cache' && /is full/.test(first.said));
  if (!['kill', 'short'].includes(fault.how) && isTold === (isQuiet ?? false))
    problems.push(`${isTold ? 'a word too many' : 'it is not told'}: ${first.said}`);
  if (isQuiet && first.code !== 0) problems.push(`it ends: ${first.said}`);
  const isWhole = first.code === 0;
  const next = isWhole ? first : await train(places, END);
  if (next.code !== 0) problems.push(`the next run: ${next.said}`);
  // Lines that there was never room for are told as lost.
  problems.push(...crashes(next), ...trained.differences(places, !/without \d+ record/.test(first.said)));
  return problems.map((problem) => `${what}, ${fault.how}: ${problem}`);
}

if (canInject) {
  test(
    title('training by the command goes on or ends saved when calls fail, then goes on to the same bits'),
    async () => {
      const trained = await TrainedJob.in(folder);
      const order = draw(fc.nat(), commandFaults.length, 28);
      const shuffled = [...commandFaults.keys()].sort((a, b) => order[a]! - order[b]!);
      const chosen = shuffled.slice(0, tries(commandFaults.length, 2)).map((at) => commandFaults[at]!);
      expect(await all(chosen, (fault) => commandProblems(trained, fault))).toEqual([]);
    },
  );

  test(title('system calls that fail lose nothing, and are told'), async () => {
    expect((await run(template, 6)).code).toBe(0);
    appendFileSync(join(template, 'metrics.jsonl'), '{"program":"eval","step":9}\n{"program":"train","st');
    const places = [...(await placesOf(0)), ...(await placesOf(6))];
    // The first call of each kind on each file; temporaries and event files have other names each time.
    const nameOf = ({ from, call, path }: Place) =>
      `${from} ${call} ${path.replace(/tmp_\w+\.|\d+\.tmp|tfevents.*|\d{8}/g, '')}`;
    const chosen = [...new Map(places.map((place) => [nameOf(place), place])).values()];
    expect(chosen.length).toBeGreaterThanOrEqual(27);
    const of = (place: Place, at: number) => ({
      place,
      how: HOWS[place.call]![at % HOWS[place.call]!.length]!,
    });
    const firsts = chosen.map((place, at) => ({ ...of(place, at), times: 1 }));
    // All of them, or those that the seed chooses.
    const order = draw(fc.nat(), firsts.length, 26);
    firsts.sort((a, b) => order[chosen.indexOf(a.place)]! - order[chosen.indexOf(b.place)]!);
    firsts.splice(tries(firsts.length, 8));
    const random = draw(
      fc.record({ at: fc.nat(places.length - 1), how: fc.nat(100), times: fc.constantFrom(1, 1, 3, 1000) }),
      tries(150, 2),
      27,
    ).map(({ at, how, times }) => ({ ...of(places[at]!, how), times }));
    // What goes wrong all the time can't be overcome; what interrupts forever never ends.
    const fit = random.map((one) => (['short', 'EINTR'].includes(one.how) ? { ...one, times: 1 } : one));
    const found = await all([...firsts, ...fit], ({ place, how, times }) => problemsOf(place, how, times));
    expect(found).toEqual([]);
  });
} else {
  test('system calls that fail: not tried, for there is no C compiler, or this is not Linux', () => {
    expect(canInject).toBe(false);
  });
}
