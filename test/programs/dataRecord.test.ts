/** @file Records of data: what is none is told, whatever stands in its place. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { dataRecordPath, recordData, recordedData } from '../../src/programs/dataRecord.js';
import { temporaryDirectory } from '../command.js';

const directory = temporaryDirectory();
const path = dataRecordPath(directory, 'train');

test('reads back a record; there may be none', () => {
  expect(recordedData(directory, 'train')).toBeUndefined();
  recordData(directory, 'train', { vocabSize: 15 });
  expect(recordedData(directory, 'train')).toEqual({ vocabSize: 15 });
});

test.each<[string, () => void, string]>([
  ['cut off', () => writeFileSync(path, '{'), 'Expected property name'],
  ['of other fields', () => writeFileSync(path, '{"vocabSize":-1}'), 'Too small: expected number to be >0'],
  ['a named pipe', () => execFileSync('mkfifo', [path]), `${path} is not a regular file but a named pipe`],
  ['a directory', () => mkdirSync(path), `${path} is not a regular file but a directory`],
  [
    'a device without an end',
    () => symlinkSync('/dev/zero', path),
    `${path} is not a regular file but a device`,
  ],
  ['a link to itself', () => symlinkSync('train.json', path), 'ELOOP'],
  ['a link to nowhere', () => symlinkSync('nowhere', path), 'ENOENT'],
])('%s: told with what to do', (_, make, reason) => {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(dirname(path), { recursive: true });
  make();
  const read = () => recordedData(directory, 'train');
  expect(read).toThrow(reason);
  expect(read).toThrow(`${path}: not the record of an input (`);
  expect(read).toThrow(/\)\. Restore it, or delete it to record the data as it is now\.$/);
});
