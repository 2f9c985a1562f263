/** @file A job's directory: one writer of each kind, told apart before anything is written; leftovers of dead ones go. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openJobDirectory } from '../../src/programs/jobDirectory.js';
import { runCommand, temporaryDirectory } from '../command.js';

/** No process has it: numbers end at 2^22. */
const dead = 2 ** 22 + 1;
const host = hostname().replace(/[^\w-]/g, '_');

const refused = (directory: string) =>
  new RegExp(
    `^--job_log_dir=${directory}: in use by process ${process.pid} on ${hostname()} since [\\dT:.-]+Z \\(.*\\). ` +
      'Wait until it has ended, or take another directory.$',
  );

test('it is made; one that can’t be written is named', async () => {
  const directory = join(temporaryDirectory(), 'a/b');
  (await openJobDirectory(directory, 'train')).close();
  expect(readdirSync(directory)).toEqual(['.train.lock']);
  writeFileSync(join(directory, 'x.txt'), '');
  await expect(openJobDirectory(join(directory, 'x.txt'), 'train')).rejects.toThrow(
    `--job_log_dir=${directory}/x.txt: can't be written (EEXIST).`,
  );
});

test('training and sweeps exclude one another; evaluation and decoding may run beside them, once each', async () => {
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

test('what processes were writing that have ended is removed, what others write is not', async () => {
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

test('a command on a directory in use ends with 2 and writes nothing', async () => {
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
