/** @file A process that writes one file of each durable kind. Arguments: the folder, below which each kind has its own. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Checkpointer, writeParams } from '../../src/checkpoints/index.js';
import { piecesOf } from '../../src/checkpoints/pipelinedFile.js';
import { keepRanges, writeTogether } from '../../src/files/index.js';
import { saveConfigFile } from '../../src/hparams/documents/files.js';
import { cachedFile } from '../../src/inputs/records/dataCache.js';
import { RecordFileWriter } from '../../src/inputs/records/recordFile.js';
import { OutputShards } from '../../src/programs/infer/outputShards.js';
import { setAside } from '../../src/programs/setAside.js';
import { writeJobFile } from '../../src/runs/jobDirectory.js';
import type { JobOptions } from '../../src/runs/options.js';
import { settledVersion } from '../../src/system/index.js';
import { writersOf } from '../checkpoints/severalWriters.js';
import { stateAt, stateOf } from './savedState.js';

async function save(
  directory: string,
  steps: readonly number[],
  { allowPrevious = false, saveMaxToKeep = 10 } = {},
): Promise<void> {
  const checkpointer = new Checkpointer({
    directory,
    experiment: 'faults',
    saveMaxToKeep,
    saveKeepIntervalDuration: null,
    notify: () => {},
  });
  if (allowPrevious) await checkpointer.restore(stateOf(), { allowPrevious });
  for (const step of steps) await checkpointer.save(stateAt(step), { inputState: { step }, progress: {} });
  await checkpointer.close();
}

/** A file that is on the disk, as far as its kind is concerned. */
function present(path: string, text: string): string {
  writeJobFile(path, text);
  return path;
}

/** Writes a kind in its folder, which is not there yet. */
type Write = (folder: string) => unknown;

const kinds: Readonly<Record<string, Write>> = {
  'a file of a job': (folder) => writeJobFile(join(folder, 'job', 'experiment.json'), '{}'),
  'a checkpoint': (folder) => save(join(folder, 'job', 'checkpoints'), [2]),
  'a checkpoint that two processes write': async (folder) => {
    const checkpointer = new Checkpointer({ directory: folder, experiment: 'faults' });
    const state = stateAt(2);
    await checkpointer.save(state, { inputState: {}, progress: {}, writers: writersOf(state, 2) });
    await checkpointer.close();
  },
  'a checkpoint in the place of a broken one': async (folder) => {
    await save(folder, [2, 4]);
    rmSync(join(folder, 'checkpoint_00000004', 'state.safetensors'));
    await save(folder, [4], { allowPrevious: true });
  },
  'a checkpoint that replaces an older one': (folder) => save(folder, [2, 4], { saveMaxToKeep: 1 }),
  'a checkpoint of many parameters': (folder) => {
    const size = 5 << 20;
    return writeParams({
      ...{ directory: folder, experiment: 'faults' },
      layout: { entries: [{ name: 'w', shape: [size], offset: 0, size }], size },
      values: () => piecesOf(new Uint8Array(4 * size)),
    });
  },
  'later checkpoints set aside': async (jobLogDir) => {
    await save(join(jobLogDir, 'checkpoints'), [2, 4]);
    present(join(jobLogDir, 'metrics.jsonl'), '{"step":2}\n{"step":4}\n');
    setAside({ jobLogDir, checkpoint: 2 } as JobOptions, 2);
  },
  'metrics without their end': (folder) =>
    keepRanges(present(join(folder, 'metrics.jsonl'), 'abcdef'), [{ start: 0, end: 2 }]),
  'metrics without their middle': (folder) =>
    keepRanges(present(join(folder, 'metrics.jsonl'), 'abcdef'), [
      { start: 0, end: 2 },
      { start: 4, end: 6 },
    ]),
  'sources rewritten together': (folder) =>
    writeTogether(
      ['a/one.ts', 'b/two.ts'].map((name) => {
        return { path: present(join(folder, name), 'before'), before: 'before', text: 'after' };
      }),
    ),
  'a shard of records': (folder) => {
    mkdirSync(folder);
    const writer = new RecordFileWriter(join(folder, 'shard'));
    writer.add({ a: 1 }, 0);
    writer.finish('digest');
  },
  'a file of the data cache': (folder) => {
    process.env.XDG_CACHE_HOME = folder;
    mkdirSync(folder, { mode: 0o700 });
    const path = present(join(folder, 'source'), 'text');
    const source = { path, version: settledVersion(path)! };
    const kept = cachedFile({ name: 'kind', mostBytes: 1 }, source, [], (to) => writeFileSync(to, 'made'));
    // Its name is a digest.
    writeJobFile(join(folder, 'made'), kept);
  },
  'outputs of an inference': (folder) => {
    const outputs = new OutputShards({
      ...{ directory: join(folder, 'job', 'out'), format: 'jsonl', numShards: 2 },
      origin: { settings: '', savedAt: '', data: '' },
    });
    for (let batches = 1; batches < 4; batches++) {
      outputs.add(Buffer.from('{}\n'), { batches, examples: batches, state: {} }, {});
      outputs.save();
    }
    outputs.finish({});
    outputs.close();
  },
  'a config that a user saves': (folder) => {
    mkdirSync(folder);
    saveConfigFile({ a: 1 }, join(folder, 'config.json'));
  },
};

const [root] = process.argv.slice(2) as [string];
for (const [kind, write] of Object.entries(kinds)) await write(join(root, kind));
