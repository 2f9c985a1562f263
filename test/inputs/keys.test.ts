/** @file Keys of data: files of caches, and digests by which a run knows its data again. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { digestOf as digestOfParts } from '../../src/inputs/images/imageSources.js';
import {
  CharTokenizer,
  JsonLinesSource,
  PretrainedTokenizer,
  TextLinesSource,
} from '../../src/inputs/index.js';
import { cachedFile, keptFile } from '../../src/inputs/records/dataCache.js';
import { memoryTable } from '../../src/inputs/records/recordTable.js';
import { digestOf } from '../../src/inputs/seqio/taskExamples.js';
import { fingerprint } from '../../src/inputs/text/textCorpus.js';
import { settledVersion } from '../../src/system/index.js';
import { temporaryDirectory } from '../command.js';
import { eachInput, expectKey } from '../keys.js';
import { prose, trainedJson } from './text/vocabularies/trainedBpe.js';

const directory = temporaryDirectory();
beforeEach(() => {
  vi.stubEnv('XDG_CACHE_HOME', join(directory, 'cache'));
});

const write = (name: string, contents: string): string => {
  const path = join(directory, name);
  writeFileSync(path, contents);
  return path;
};

it('a file of a cache is one of its source, that source’s version, and what it is made as', () => {
  const cache = { name: 'tried', mostBytes: 1000 };
  const path = write('source', 'a');
  const base = { path, version: settledVersion(path)!, format: ['records 1', 2] };
  const made = cachedFile(cache, base, base.format, (to) => writeFileSync(to, 'made'));
  expect(keptFile(cache, { ...base }, [...base.format])).toBe(made);
  const others = { path: `${path}2`, version: `${base.version}2`, format: ['records 1', 3] };
  for (const [input, inputs] of eachInput('files of caches', base, others))
    expect(keptFile(cache, inputs, inputs.format), input).toBeUndefined();
});

it('an index of lines is one with blank lines, or without', () => {
  const lines = [write('lines', '{"a":1}\n\n{"a":2}\n')];
  const numRecords = (format: typeof TextLinesSource) =>
    build(format.config({ files: lines })).open().numRecords;
  expectKey(
    'indices of records',
    { format: TextLinesSource },
    { format: JsonLinesSource as never },
    ({ format }) => numRecords(format),
  );
});

it('digests of records, texts and images', () => {
  expectKey(
    'digests of records',
    { value: 1, bigint: 1n, bytes: Uint8Array.of(1, 2) },
    { value: 2, bigint: 2n, bytes: Uint8Array.of(1, 3) },
    (record) => memoryTable([record]).digest,
  );
  const alike = [{ a: 1 }, { a: 1n }, { a: '1' }, { a: Uint8Array.of(1) }, { a: [1] }, { b: 1 }];
  expect(
    new Set([...alike.map((record) => memoryTable([record as never]).digest), memoryTable([]).digest]).size,
  ).toBe(7);
  expectKey(
    'digests of text',
    { tokens: [1, 2, 3], documents: [0, 3], width: Uint8Array },
    { tokens: [1, 2, 4], documents: [0, 1, 3], width: Uint16Array },
    ({ tokens, documents, width }) =>
      fingerprint({ tokens: width.from(tokens), starts: documents }).replace(/^[^(]*/, ''),
  );
  expectKey(
    'digests of images',
    { parts: ['cat\n', Uint8Array.of(1)] },
    { parts: ['cat\n', Uint8Array.of(2)] },
    ({ parts }) => digestOfParts(parts),
  );
  expectKey('digests of tasks', { value: ['a', 1] }, { value: ['a', 2] }, ({ value }) => digestOf(value));
});

it('tokenizers are known by all that says what they make of a text', () => {
  const contents = trainedJson([prose], 300, ['<eos>']);
  expectKey(
    'trained tokenizers',
    { contents, specialTokensAsText: false },
    { contents: trainedJson([prose], 301, ['<eos>']), specialTokensAsText: true },
    ({ contents, specialTokensAsText }) =>
      build(PretrainedTokenizer.config({ file: 'absent.json', contents, specialTokensAsText }))
        .identity()
        .replace(/^.*\(/, ''),
  );
  expectKey('tokenizers of characters', { vocabulary: 'abc' }, { vocabulary: 'abd' }, ({ vocabulary }) =>
    build(CharTokenizer.config({ vocabulary })).identity(),
  );
});
