/** @file Files of a job_log_dir that are damaged at random: the run goes on from what is whole, or names the file. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../command.js';
import { draw, title, tries } from './campaign.js';
import { damages, isJson } from './damages.js';
import { savingRun } from './savingRun.js';
import { bounded, crashes, END, type Ended, TrainedJob, train } from './trainedJob.js';

const folder = temporaryDirectory();

/** Runs to a step; in this process, unless the damage may be one that a program waits for, or dies of. */
async function save(directory: string, last: number, kind: string, previous = false): Promise<Ended> {
  const args = [directory, String(last), ...(previous ? ['previous'] : [])];
  if (/pipe|device|gigabytes/.test(kind)) return bounded(args, 'test/faults/savingProgram.ts');
  const said: string[] = [];
  const fate = { hung: false, signal: null };
  try {
    await savingRun(directory, last, (line) => said.push(`${line}\n`), previous);
    return { ...fate, code: 0, stdout: said.join(''), stderr: '', said: said.join('') };
  } catch (error) {
    const stderr = (error as Error).message;
    return { ...fate, code: 1, stdout: said.join(''), stderr, said: `${said.join('')}${stderr}` };
  }
}

/** The steps of the lines that can be read. */
function steps(directory: string): unknown[] {
  const lines = readFileSync(join(directory, 'metrics.jsonl'), 'utf8').split('\n');
  return lines.flatMap((line) => {
    try {
      return (JSON.parse(line) as { step?: unknown }).step ?? [];
    } catch {
      return [];
    }
  });
}

/** What went wrong with a run that goes on from a directory in which a file was damaged. */
async function problemsOf(template: string, { file, kind, at }: Case): Promise<string[]> {
  const directory = mkdtempSync(join(folder, 'job-'));
  cpSync(template, directory, { recursive: true });
  const path = join(directory, file);
  if (damages[kind]!(path, at) === false) return [];
  const problems: string[] = [];
  const first = await save(directory, 8, kind);
  problems.push(...crashes(first));
  const names = first.said.includes(path) || first.said.includes(dirname(path));
  if (first.code === 1) {
    if (!names) problems.push(`the file is not named: ${first.said}`);
    if (/^from/m.test(first.stdout) && file.startsWith('checkpoints'))
      problems.push(`it went on before it failed: ${first.said}`);
  } else if (!first.stdout.startsWith('from 6\n')) problems.push(`it is passed over silently: ${first.said}`);
  const second = first.code === 0 ? first : await save(directory, 8, kind, true);
  if (second !== first) problems.push(...crashes(second));
  if (second.code === 0) {
    if (!/^from [46]$/m.test(second.stdout))
      problems.push(`the newest whole one is not used: ${second.said}`);
    // Lines that were damaged themselves may be missing; none may be there twice, or of another run.
    const found = steps(directory);
    if (new Set(found).size !== found.length) problems.push(`metrics.jsonl has steps ${found}`);
    if (file !== 'metrics.jsonl' && kind !== 'swapped' && found.length !== 8)
      problems.push(`metrics.jsonl has steps ${found}`);
  } else if (file.startsWith('checkpoints/')) {
    problems.push(`it does not go on from the older one: ${second.said}`);
  } else if (!second.said.includes(path)) problems.push(`the file is not named: ${second.said}`);
  return problems;
}

const filesBelow = (directory: string) =>
  readdirSync(directory, { recursive: true })
    .map(String)
    .filter((name) => statSync(join(directory, name)).isFile());

const rights = process.getuid?.() === 0 ? '; as root, files without permissions are read all the same' : '';

/** A file below one of several directories, and what is done to it. */
interface Case {
  readonly file: string;
  readonly kind: string;
  readonly at: number;
}

const fits = ({ file, kind }: Case): boolean =>
  kind.includes('header')
    ? file.endsWith('.safetensors')
    : !/another type|less|not an object/.test(kind) || isJson(file);

/** Every kind of damage in turn, on files drawn at random among those that it fits. */
function casesOf(files: readonly string[], count: number, salt: number): Case[] {
  const arbitrary = fc.record({ file: fc.constantFrom(...files), at: fc.nat(1e6) });
  const kinds = Object.keys(damages);
  const first = draw(fc.nat(kinds.length - 1), 1, salt)[0]!;
  const cases: Case[] = [];
  for (const [i, { file, at }] of draw(arbitrary, count * 10, salt).entries()) {
    const turn = first + cases.length + (i % 3 === 2 ? 1 : 0);
    const one = { file, at, kind: kinds[turn % kinds.length]! };
    if (fits(one) && cases.length < count) cases.push(one);
  }
  return cases;
}

/** Two at a time. */
async function problemsAmong(cases: readonly Case[], act: (one: Case) => Promise<string[]>) {
  const waiting = [...cases];
  const found: string[] = [];
  const work = async () => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift())
      for (const problem of await act(one)) {
        const text = `${one.file}: ${one.kind} (${one.at}): ${problem}`;
        // At once: a campaign may be ended before it is through.
        console.error(text);
        found.push(text);
      }
  };
  await Promise.all([work(), work()]);
  return found;
}

test(title(`damaged files are named, or what is whole is gone on from${rights}`), async () => {
  const template = join(folder, 'template');
  expect(await save(template, 6, '')).toMatchObject({ code: 0, stderr: '' });
  const files = filesBelow(template).filter((name) => !/checkpoint_0+[024]\//.test(name));
  const cases = casesOf(files, tries(100, 7), 100);
  expect(await problemsAmong(cases, (one) => problemsOf(template, one))).toEqual([]);
});

/** What went wrong with a job whose file, or that of the cache, was damaged, and that the command went on with. */
async function commandProblems(trained: TrainedJob, { file, kind, at }: Case): Promise<string[]> {
  const places = trained.copy();
  const path = join(places.job, '..', file);
  if (damages[kind]!(path, at) === false) return [];
  const first = await train(places, END);
  const problems = crashes(first);
  if (first.code === 0) return [...problems, ...trained.differences(places, !file.endsWith('metrics.jsonl'))];
  if (file.startsWith('cache')) return [...problems, `a cache ends the run: ${first.said}`];
  if (!first.said.includes(path) && !first.said.includes(dirname(path)))
    problems.push(`the file is not named: ${first.said}`);
  // Done as it was told: what is no checkpoint is removed, a broken one passed over.
  const isCheckpoint = file.startsWith('job/checkpoints');
  if (!isCheckpoint) rmSync(path, { recursive: true, force: true });
  const second = await train(places, END, {}, isCheckpoint ? ['--restore_previous_checkpoint'] : []);
  if (second.code !== 0) problems.push(`it does not go on: ${second.said}`);
  return [...problems, ...crashes(second), ...trained.differences(places, file !== 'job/metrics.jsonl')];
}

test(
  title(`the command goes on to the same bits from damaged jobs and caches, or names the file${rights}`),
  async () => {
    const trained = await TrainedJob.in(folder);
    const { job } = trained.copy();
    // Translations are tsx's to read, and no one else's to write.
    const all = filesBelow(join(job, '..')).filter(
      (name) => !/use-|checkpoint_0+2\/|typescript\//.test(name),
    );
    const count = tries(20, 2) / 2;
    const cases = ['job', 'cache'].flatMap((where, i) =>
      casesOf(
        all.filter((name) => name.startsWith(where)),
        count,
        101 + i,
      ),
    );
    expect(await problemsAmong(cases, (one) => commandProblems(trained, one))).toEqual([]);
  },
);
