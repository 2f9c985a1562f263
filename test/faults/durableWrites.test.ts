/** @file Order of durable writes: bytes are synced before their file has its name, and names before a write is done. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';
import { expect, test } from 'vitest';
import { startCommand, temporaryDirectory } from '../command.js';
import { callsIn, canInject, faultEnv } from './preload.js';
import { diskAfter } from './unsynced.js';

const checkpoint = ['metadata.json', 'progress.json', 'state.safetensors', 'train_input.json'];
const filesOf = (...folders: readonly string[]): string[] =>
  folders.flatMap((folder) => checkpoint.map((name) => `${folder}/${name}`));

/** Each kind of durableProgram.ts: the files that it leaves. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  'a file of a job': ['job/experiment.json'],
  'a checkpoint': filesOf('job/checkpoints/checkpoint_00000002'),
  'a checkpoint that two processes write': filesOf('checkpoint_00000002'),
  'a checkpoint in the place of a broken one': [
    ...filesOf('checkpoint_00000002', 'checkpoint_00000004'),
    ...filesOf('broken_checkpoint_00000004').filter((name) => !name.endsWith('state.safetensors')),
  ],
  'a checkpoint that replaces an older one': filesOf('checkpoint_00000004'),
  'a checkpoint of many parameters': filesOf('checkpoint_00000000').filter(
    (name) => !/progress|input/.test(name),
  ),
  'later checkpoints set aside': [
    ...filesOf('checkpoints/checkpoint_00000002'),
    'metrics.jsonl',
    ...filesOf('replaced_1/checkpoints/checkpoint_00000004'),
    'replaced_1/metrics.jsonl',
  ],
  'metrics without their end': ['metrics.jsonl'],
  'metrics without their middle': ['metrics.jsonl'],
  'sources rewritten together': ['a/one.ts', 'b/two.ts'],
  'a shard of records': ['shard'],
  'a file of the data cache': ['luthier/kind/DIGEST', 'made', 'source'],
  'a config that a user saves': ['config.json'],
  'outputs of an inference': [
    'job/out/features.json',
    'job/out/metadata.json',
    'job/out/output.jsonl-00000-of-00002',
    'job/out/output.jsonl-00001-of-00002',
  ],
};

/**
 * Names that may be lost: a removal is repeated, a cache's file is made again, and a user's file promises its former contents
 * or the new ones.
 */
const LOSABLE = [
  'a checkpoint that replaces an older one/',
  'a config that a user saves/',
  'a file of the data cache/luthier/',
  'a file of the data cache/luthier/kind/',
];

test.runIf(canInject)(
  'a power failure leaves each kind of file whole, and what was written stays',
  async () => {
    const [folder, logs] = [temporaryDirectory(), temporaryDirectory()];
    const trace = join(logs, 'trace');
    const env = faultEnv(logs, folder, { calls: [], nth: 0, how: 'kill', trace }, join(logs, 'calls'));
    const program = 'test/faults/durableProgram.ts';
    const { code, stderr } = await startCommand([folder], undefined, program, env).finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const inFolder = (path: string): string =>
      path.slice(folder.length + 1).replace(/\b[0-9a-f]{32}\b/, 'DIGEST');
    const calls = callsIn(trace);
    const { early, unsynced, files } = diskAfter(calls);
    const expected = Object.entries(KINDS).flatMap(([kind, names]) => names.map((name) => `${kind}/${name}`));
    expect({
      early: early.map(inFolder),
      // The program's folders themselves are not of a kind.
      unsynced: unsynced.map(inFolder).filter((name) => name !== ''),
      files: files.map(inFolder),
    }).toEqual({ early: [], unsynced: LOSABLE, files: expected.sort() });
    const removal = calls.findIndex(({ path }) =>
      path.includes('an older one/.deletion_checkpoint_00000002'),
    );
    expect(removal).toBeGreaterThan(0);
    const before = diskAfter(calls.slice(0, removal)).unsynced.map(inFolder);
    expect(before.filter((name) => name.startsWith('a checkpoint that replaces'))).toEqual([]);
  },
);

const WRITES =
  /\b(?:(writeFile|appendFile|copyFile|cp|rename|writev?|link|symlink|f?truncate)Sync|(createWriteStream|writeFully))\(/g;

/** Reasons to call the system's writes, and the files of src with these calls. All others call the functions of src/files. */
const WRITERS: Readonly<Record<string, readonly string[]>> = {
  'durable, each of a kind above': [
    'checkpoints/durableFile.ts: rename write',
    'checkpoints/filePart.ts: ftruncate rename write',
    'checkpoints/pipelinedFile.ts: write',
    'checkpoints/writeCheckpoint.ts: rename',
    'files/growingFile.ts: ftruncate writeFully',
    'files/write.ts: copyFile ftruncate link rename write writeFile writeFully',
    'hparams/documents/files.ts: rename writeFile',
    'inputs/records/dataCache.ts: rename',
    'inputs/records/recordFile.ts: rename writeFully',
    'programs/infer/outputShards.ts: rename',
    'programs/setAside.ts: copyFile rename',
  ],
  'appended to, and cut to the newest checkpoint by the next run': ['files/append.ts: ftruncate write'],
  'written at the path that the data cache syncs and renames': [
    'inputs/records/decompress.cjs: createWriteStream',
    'inputs/records/fileDigests.ts: writeFile',
    'inputs/records/recordIndex.ts: writeFully',
  ],
  'compiled programs, which are found damaged by their digests': [
    'compiler/native/stored/storedPlan.ts: writeFile',
    'compiler/native/toolchain/cacheEntries.ts: rename',
    'compiler/native/toolchain/compileC.ts: writeFile',
    'compiler/native/toolchain/programCache.ts: rename writeFile',
    'compiler/native/toolchain/runCompiler.ts: appendFile',
    'compiler/native/toolchain/useMarks.ts: writeFile',
  ],
  'views of source files, which are made again where they are missing or damaged': [
    'registry/names/readSource.ts: rename writeFile',
  ],
  'of a process, and worth nothing after it': [
    'inputs/text/vocabularies/rustProcess.cjs: write',
    'search/studies/claims.ts: write',
    'system/foreignCode.ts: write',
    'system/lock.ts: ftruncate write',
    'review/versions/evaluators.ts: copyFile',
    'review/versions/heldApart.ts: symlink',
    'review/versions/ownPackages.ts: copyFile link rename symlink',
    'review/versions/memoryLimit.ts: write',
    'review/versions/worktree.ts: symlink',
    'tools/validate/checkWorker.ts: writeFile',
  ],
  'reports, which the same command makes again or which nothing but people reads': [
    'compiler/program/writeDump.ts: rename writeFile',
    'programs/ranks/collectiveRecord.ts: writeFile',
    'programs/watchdog/watchWorker.ts: write writeFile',
    'review/reports/pictures.ts: writeFile',
  ],
};

const source = fileURLToPath(new URL('../../src/', import.meta.url));

test('no other file of src writes past the functions that sync', () => {
  const found = globSync('**/*.{ts,cjs}', { cwd: source })
    .sort()
    .flatMap((file) => {
      const text = readFileSync(join(source, file), 'utf8');
      const calls = new Set([...text.matchAll(WRITES)].map(([, sync, other]) => sync ?? other));
      return calls.size === 0 ? [] : [`${file}: ${[...calls].sort().join(' ')}`];
    });
  expect(found).toEqual(Object.values(WRITERS).flat().sort());
});
