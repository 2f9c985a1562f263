/** @file A job's directory: one writer of each kind, told apart before anything is written; leftovers of dead ones go. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openJobDirectory } from '../../src/runs/jobDirectory.js';
import { runCommand, temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';

/** No process has it: numbers end at 2^22. */
const dead = 2 ** 22 + 1;
const host = hostname().replace(/[^\w-]/g, '_');

const refused = (directory: string) =>
  new RegExp(
    `^--job_log_dir=${directory}: in use by process ${process.pid} on ${hostname()} since [\\dT:.-]+Z \\(.*\\). ` +
      'Wait until it has ended, or take another directory.$',
  );

test('it is created; one that can’t be written is reported', async () => {
  const directory = join(temporaryDirectory(), 'a/b');
  (await openJobDirectory(directory, 'train')).close();
  expect(readdirSync(directory)).toEqual(['.train.lock']);
  writeFileSync(join(directory, 'x.txt'), '');
  await expect(openJobDirectory(join(directory, 'x.txt'), 'train')).rejects.toThrow(
    `--job_log_dir=${directory}/x.txt: can't be written: ${directory}/x.txt is not a directory.`,
  );
});

/** Forbids writing in a directory; undefined where that can't be done: root needs chattr(1), and a file system that has it. */
function forbidWriting(directory: string): (() => void) | undefined {
  if (process.getuid?.() !== 0) {
    chmodSync(directory, 0o555);
    return () => chmodSync(directory, 0o755);
  }
  try {
    execFileSync('chattr', ['+i', directory], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  return () => execFileSync('chattr', ['-i', directory]);
}

const directoryToForbid = temporaryDirectory();
const allowWriting = forbidWriting(directoryToForbid);
allowWriting?.();

test(`one in which nothing may be written is told${allowWriting ? '' : ' (not tried: it can’t be forbidden here)'}`, async () => {
  if (allowWriting === undefined) return;
  forbidWriting(directoryToForbid);
  const lock = join(directoryToForbid, '.train.lock');
  const system = `E(ACCES: permission denied|PERM: operation not permitted), open '${lock}'`;
  const [told] = await Promise.allSettled([openJobDirectory(directoryToForbid, 'train')]);
  allowWriting();
  expect(told).toMatchObject({
    reason: {
      name: 'JobError',
      message: expect.stringMatching(
        new RegExp(`^--job_log_dir=${directoryToForbid}: can't be written: ${system} \\(check .*\\)\\.$`),
      ),
    },
  });
});

test('a link to a missing disk, and a lock that is not a file, are reported', async () => {
  const directory = temporaryDirectory();
  const link = join(directory, 'job');
  symlinkSync('/disk/that/is/away', link);
  await expect(openJobDirectory(link, 'train')).rejects.toThrow(
    `--job_log_dir=${link}: can't be written: ${link} is not a directory but a link to /disk/that/is/away, which is none or not there.`,
  );
  execFileSync('mkfifo', [join(directory, '.train.lock')]);
  await expect(openJobDirectory(directory, 'train')).rejects.toThrow(
    `--job_log_dir=${directory}: can't be written: ENXIO: no such device or address, open '${directory}/.train.lock'.`,
  );
});

test('training and sweeps exclude one another; one evaluation and one decoding may run beside them', async () => {
  const directory = temporaryDirectory();
  const training = await openJobDirectory(directory, 'train_and_eval');
  for (const mode of ['train', 'sweep'] as const)
    await expect(openJobDirectory(directory, mode)).rejects.toThrow(refused(directory));
  const beside = [await openJobDirectory(directory, 'eval'), await openJobDirectory(directory, 'decode')];
  for (const mode of ['eval', 'decode_once'] as const)
    await expect(openJobDirectory(directory, mode)).rejects.toThrow(refused(directory));
  for (const opened of [training, ...beside]) opened.close();
  (await openJobDirectory(directory, 'sweep')).close();
});

test('temporary files of ended processes are removed, those of live ones are not', async () => {
  const directory = temporaryDirectory();
  const decoded = join(directory, 'decoder_out/validation');
  mkdirSync(decoded, { recursive: true });
  mkdirSync(join(directory, 'profile'));
  const leave = (name: string): void => writeFileSync(join(directory, name), 'half');
  const removed = [
    `experiment.json.${host}-${dead}.tmp`,
    `sweep.json.${dead}.tmp`,
    `.${dead}.tmp`,
    `decoder_out/validation/a.jsonl.${host}-${dead}.tmp`,
    `profile/trace.json.${host}-${dead}.tmp`,
  ];
  const kept = [
    `eval_experiment.json.${host}-${process.ppid}.tmp`,
    `eval_experiment.json.${process.ppid}.tmp`,
    `metrics.jsonl.elsewhere-${dead}.tmp`,
    'mine.tmp',
    'decoder_out/validation/a.jsonl',
  ];
  for (const name of [...removed, ...kept]) leave(name);
  (await openJobDirectory(directory, 'train')).close();
  expect(removed.filter((name) => existsSync(join(directory, name)))).toEqual([]);
  expect(kept.filter((name) => !existsSync(join(directory, name)))).toEqual([]);
});

longTest('a command on a directory in use ends with 2 and writes nothing', async () => {
  const directory = temporaryDirectory();
  const opened = await openJobDirectory(directory, 'train');
  const before = readFileSync(join(directory, '.train.lock'), 'utf8');
  for (const more of [[], ['--sweep', 'modelDims=8,16']]) {
    const { code, stdout, stderr } = await runCommand([
      '--exp=tiny.Tiny',
      `--job_log_dir=${directory}`,
      ...more,
    ]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr.trimEnd()).toMatch(refused(directory));
  }
  expect(readdirSync(directory)).toEqual(['.train.lock']);
  expect(readFileSync(join(directory, '.train.lock'), 'utf8')).toBe(before);
  opened.close();
});
