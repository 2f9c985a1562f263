/** @file Sharded outputs of jobs that end at any place: nothing is lost, nothing is there twice. */
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { OutputShards } from '../../../src/programs/infer/outputShards.js';
import { temporaryDirectory } from '../../command.js';

const BATCHES = 5;
const given = { settings: 'a', savedAt: 'b', data: 'c' };

const open = (directory: string, origin = given, numShards = 2): OutputShards =>
  new OutputShards({ directory, format: 'jsonl', numShards, origin });

/** Adds the batches of two examples behind the outputs' position, up to `last`; `saves` after each. */
function add(outputs: OutputShards, last: number, saves: boolean): void {
  for (let batches = (outputs.position?.batches ?? 0) + 1; batches <= last; batches++) {
    const records = [2 * batches - 2, 2 * batches - 1].map((id) => `{"example_id":${id}}\n`).join('');
    const position = { batches, examples: 2 * batches, state: { at: batches } };
    outputs.add(Buffer.from(records), position, { logits: { shape: [2, 3], dtype: 'float32' } });
    if (saves) outputs.save();
  }
}

function finish(outputs: OutputShards): void {
  add(outputs, BATCHES, false);
  outputs.finish({ input_name: 'test' });
  outputs.close();
}

const filesOf = (directory: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), 'utf8')]),
  );

test('batches in turn; a job goes on behind what was saved, whatever was written since', () => {
  const whole = join(temporaryDirectory(), 'out');
  finish(open(whole));
  const files = filesOf(whole);
  expect(Object.keys(files)).toEqual([
    'features.json',
    'metadata.json',
    'output.jsonl-00000-of-00002',
    'output.jsonl-00001-of-00002',
  ]);
  expect(files['output.jsonl-00001-of-00002']!.match(/\d+/g)).toEqual(['2', '3', '6', '7']);
  expect(JSON.parse(files['metadata.json']!)).toEqual({
    ...{ input_name: 'test', output_format: 'jsonl', output_num_shards: 2, num_examples: 10, origin: given },
  });
  for (let killed = 1; killed <= BATCHES; killed++) {
    const directory = join(temporaryDirectory(), 'out');
    const first = open(directory);
    add(first, killed, true);
    add(first, Math.min(killed + 1, BATCHES), false);
    first.close();
    writeFileSync(
      join(`${directory}.partial`, `progress.json.host-${2 ** 22 + 1}.tmp`.replace('host-', '')),
      '{',
    );
    const second = open(directory);
    expect([second.isComplete, second.position]).toEqual([
      false,
      { batches: killed, examples: 2 * killed, state: { at: killed } },
    ]);
    finish(second);
    expect(filesOf(directory)).toEqual(files);
    expect(open(directory).isComplete).toBe(true);
  }
});

test('what is damaged, too short, of another origin or number of shards counts as none', () => {
  const parent = temporaryDirectory();
  const kept = join(parent, 'kept');
  const first = open(kept);
  add(first, 3, true);
  first.close();
  const progress = readFileSync(join(`${kept}.partial`, 'progress.json'), 'utf8');
  const damages: Record<string, (partial: string) => void> = {
    none: () => {},
    empty: (partial) => writeFileSync(join(partial, 'progress.json'), ''),
    'another position': (partial) =>
      writeFileSync(join(partial, 'progress.json'), progress.replace('"batches":3', '"batches":2')),
    'a folder': (partial) => {
      rmSync(join(partial, 'progress.json'));
      mkdirSync(join(partial, 'progress.json'));
    },
    'too short': (partial) => writeFileSync(join(partial, 'output.jsonl-00001-of-00002'), '{}'),
    'a file': (partial) => {
      rmSync(partial, { recursive: true });
      writeFileSync(partial, '');
    },
  };
  const positions = Object.entries(damages).map(([name, damage]) => {
    const directory = join(parent, 'out');
    cpSync(`${kept}.partial`, `${directory}.partial`, { recursive: true });
    damage(`${directory}.partial`);
    const outputs = open(directory);
    const found = [name, outputs.position?.batches ?? null];
    finish(outputs);
    expect(filesOf(directory)['output.jsonl-00000-of-00002']!.match(/\d+/g)).toEqual([
      '0',
      '1',
      '4',
      '5',
      '8',
      '9',
    ]);
    rmSync(directory, { recursive: true });
    return found;
  });
  expect(Object.fromEntries(positions)).toEqual({
    ...{
      none: 3,
      empty: null,
      'another position': null,
      'a folder': null,
      'too short': null,
      'a file': null,
    },
  });
  const other = open(kept, { ...given, data: 'd' });
  expect(other.position).toBe(null);
  other.close();
});

test('outputs of another origin are replaced as a whole; a folder that lacks its name alone gets it', () => {
  const directory = join(temporaryDirectory(), 'out');
  finish(open(directory, given, 3));
  const second = open(directory, { ...given, savedAt: 'later' });
  expect(second.isComplete).toBe(false);
  finish(second);
  expect(readdirSync(directory)).toContain('output.jsonl-00001-of-00002');
  expect(readdirSync(directory)).not.toContain('output.jsonl-00001-of-00003');
  // As where a job was killed between its last two steps.
  renameSync(directory, `${directory}.partial`);
  expect(open(directory, { ...given, savedAt: 'later' }).isComplete).toBe(true);
  expect(readdirSync(join(directory, '..'))).toEqual(['out']);
  const blocked = join(directory, 'metadata.json', 'out');
  expect(() => open(blocked)).toThrow(`${blocked} cannot be written: `);
  appendFileSync(join(directory, 'metadata.json'), '{');
  const anew = open(directory, { ...given, savedAt: 'later' });
  expect(anew.isComplete).toBe(false);
  anew.close();
});
