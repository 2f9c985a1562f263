/** @file Leases: a checkpoint that is read stays, whoever comes first; what killed processes leave holds nothing. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { Checkpointer, createTrainState, leaseCheckpoint } from '../../src/checkpoints/index.js';
import { removeMarks, unlessLeased } from '../../src/checkpoints/leases.js';
import { temporaryDirectory } from '../command.js';
import { slotsLike } from './slotsLike.js';

let directory: string;
let checkpoint: string;
beforeEach(() => {
  directory = temporaryDirectory();
  checkpoint = join(directory, 'checkpoint_00000004');
  mkdirSync(checkpoint);
});

const markNames = () => readdirSync(directory).filter((name) => name.startsWith('.'));

test('a checkpoint is not deleted until its last reader is done', () => {
  const act = () => rmSync(checkpoint, { recursive: true });
  const leases = [leaseCheckpoint(checkpoint), leaseCheckpoint(checkpoint)];
  expect(markNames()).toHaveLength(2);
  for (const lease of leases) {
    expect([unlessLeased(checkpoint, act), existsSync(checkpoint)]).toEqual([false, true]);
    lease.release();
    lease.release();
  }
  expect([unlessLeased(checkpoint, act), existsSync(checkpoint)]).toEqual([true, false]);
  expect(readdirSync(directory)).toEqual([]);
});

test('a lease holds its own checkpoint alone', () => {
  const other = join(directory, 'checkpoint_000000041');
  mkdirSync(other);
  leaseCheckpoint(other);
  expect(unlessLeased(checkpoint, () => {})).toBe(true);
});

test('a reader that comes during a deletion finds no checkpoint', () => {
  const attempts: string[] = [];
  unlessLeased(checkpoint, () => {
    try {
      leaseCheckpoint(checkpoint);
    } catch (error) {
      attempts.push((error as Error).message);
    }
  });
  expect(attempts).toEqual([`${checkpoint}: it has been deleted`]);
  expect(() => leaseCheckpoint(join(directory, 'checkpoint_00000005'))).toThrow('it has been deleted');
  expect(markNames()).toEqual([]);
});

test('marks of processes that were killed hold nothing, and are removed', () => {
  const { pid } = spawnSync(process.execPath, ['--version']);
  for (const kind of ['lease', 'deletion'])
    writeFileSync(join(directory, `.${kind}_checkpoint_00000004.${hostname()}.${pid}.1`), '');
  expect(unlessLeased(checkpoint, () => {})).toBe(true);
  const lease = leaseCheckpoint(checkpoint);
  removeMarks(directory);
  expect(markNames()).toEqual([expect.stringContaining(`.${process.pid}.`)]);
  lease.release();
});

test('a lease of another machine holds for ten minutes after it was renewed', () => {
  const path = join(directory, '.lease_checkpoint_00000004.far.example.org.12.3');
  writeFileSync(path, '');
  const renewedBefore = (minutes: number) => {
    const time = new Date(Date.now() - minutes * 60_000);
    utimesSync(path, time, time);
    return unlessLeased(checkpoint, () => {});
  };
  expect([renewedBefore(9), renewedBefore(11)]).toEqual([false, true]);
});

test('training that keeps one checkpoint leaves the one that is read, and deletes it by the next save', async () => {
  rmSync(checkpoint, { recursive: true });
  const layout = { size: 4, entries: [{ name: 'w', shape: [4], offset: 0, size: 4 }] };
  const state = createTrainState(layout, slotsLike(layout, []));
  const options = { directory, experiment: 'x', saveMaxToKeep: 1, saveKeepIntervalDuration: null };
  const checkpointer = new Checkpointer(options);
  const saveAt = async (step: number) => {
    state.step = step;
    await checkpointer.save(state);
    await checkpointer.waitUntilFinished();
    return checkpointer.steps();
  };
  await saveAt(5);
  const lease = leaseCheckpoint(join(directory, 'checkpoint_00000005'));
  expect(await saveAt(6)).toEqual([5, 6]);
  lease.release();
  expect(await saveAt(7)).toEqual([7]);
  await checkpointer.close();
});
