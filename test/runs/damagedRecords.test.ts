/** @file Records of a job directory that anything may have written over: each reader says so in one line, and no more. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { explain } from '../../src/files/index.js';
import { recordedData } from '../../src/programs/dataRecord.js';
import { recordedMachine } from '../../src/runs/machine.js';
import { readStatus } from '../../src/runs/runStatus.js';
import { readRun } from '../../src/runs/runSummary.js';
import { SweepRecord } from '../../src/runs/sweepRecord.js';
import { lockHolder } from '../../src/system/index.js';
import { readRunDocument } from '../../src/trained/runDocument.js';
import { temporaryDirectory } from '../command.js';

const contents: readonly [name: string, content: string][] = [
  ['nothing', ''],
  ['null', 'null'],
  ['a number', '5'],
  ['a list', '[]'],
  ['an empty object', '{}'],
  ['a text', '"x"'],
  ['half an object', '{"name": "a",\n "state":'],
  [
    'null in each field',
    '{"name":null,"state":null,"machine":null,"runs":null,"overrides":null,"config":null}',
  ],
  [
    'odd elements',
    '{"name":"a","format":"luthier-sweep","version":1,"sweeps":[],"runs":[5,null],"overrides":[null],"machine":5,"config":{"configs":[null]}}',
  ],
  ['a prototype', '{"__proto__":{"name":"a"},"constructor":1}'],
  ['100,000 lists', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
  ['bytes', '\u0000\u0001\u001b[31m\ufffd\n\n'],
];

/** Readers by the file that they read; what they return or throw is a value of ours or an error of ours. */
const readers: readonly [file: string, read: (directory: string) => unknown][] = [
  ['status.json', readStatus],
  ['status.json', readRun],
  ['experiment.json', readRun],
  ['experiment.json', recordedMachine],
  ['experiment.json', readRunDocument],
  ['metrics.jsonl', readRun],
  ['goodput.jsonl', readRun],
  ['model_params.txt', readRun],
  ['experiment_cls_vars.txt', readRun],
  ['sweep.json', (directory) => new SweepRecord(directory, 'a', [], []).runs],
  ['data/train.json', (directory) => recordedData(directory, 'train')],
  ['.train.lock', (directory) => lockHolder(join(directory, '.train.lock'))],
];

async function told(read: () => unknown): Promise<string[]> {
  try {
    const result = (await read()) as { problems?: readonly string[] } | undefined;
    return [...(result?.problems ?? [])];
  } catch (error) {
    return [explain(error)];
  }
}

test.each(contents)('%s in place of a record is told in one line, by every reader', async (_, content) => {
  for (const [file, read] of readers) {
    const directory = temporaryDirectory();
    const path = join(directory, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    for (const line of await told(() => read(directory))) {
      expect(line.split('\n'), `${file}: ${line}`).toHaveLength(1);
      expect(line, file).not.toMatch(
        /undefined \(reading|is not iterable|not a function|destructure|call stack/,
      );
    }
  }
});

test('a machine that is half known is known by half; one of another form is unknown', () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'experiment.json');
  writeFileSync(path, '{"machine":{"cpu":"M1","later":true}}');
  expect(recordedMachine(directory)).toEqual({ cpu: 'M1' });
  writeFileSync(path, '{"machine":{"cpu":5}}');
  expect(recordedMachine(directory)).toBeUndefined();
});

test('a lock whose file names no process has no holder to be told', async () => {
  const path = join(temporaryDirectory(), '.train.lock');
  writeFileSync(path, '{"host":5,"pid":"x","command":{}}');
  expect(
    await lockHolder(
      path,
      Promise.resolve(() => 'taken' as const),
    ),
  ).toBeUndefined();
});
