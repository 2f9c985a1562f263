/** @file `luthier cache-task` in processes of its own: one that is killed, resuming, training from the cache. */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { project, runLuthier, startCommand, temporaryDirectory } from '../../command.js';

const src = fileURLToPath(new URL('../../../src/', import.meta.url));

/** 40 records; record 25 waits for as long as there is a file `hang`. */
const experiment = `
import { existsSync } from 'node:fs';
import { ByteTokenizer, configurable } from '${src}index.ts';
import { AppendEos, CacheDatasetPlaceholder, Feature, IterableSource, SeqioInput, Task, Tokenize } from '${src}inputs/index.ts';
import { Tiny } from '${project}/experiments/tiny.ts';

export class Lines extends IterableSource.with({}) {
  protected override *records() {
    for (let i = 0; i < 40; i++) yield { targets: 'line ' + i };
  }
}

export const waiting = configurable(
  function waiting() {
    return (example: any) => {
      const hangs = example.targets === 'line 25' && existsSync('hang');
      while (hangs && existsSync('hang')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
      return { targets: example.targets + '.' };
    };
  },
  {},
);

export class Cached extends Tiny {
  override datasets() {
    const tokenizer = ByteTokenizer.config();
    const mixtureOrTask = Task.config({
      source: Lines.config(),
      preprocessors: [waiting.config({}), Tokenize.config(), CacheDatasetPlaceholder.config()],
      features: { targets: Feature.config({ tokenizer, addEos: false }) },
    });
    const values = { mixtureOrTask, splitName: 'all', taskFeatureLengths: { targets: 16 }, batchSize: 4 };
    return [SeqioInput.config({ ...values, isTraining: true, cacheDirectory: 'caches' })];
  }
}
`;

test('a process that is killed leaves the shards that are whole; the next run writes the others', async () => {
  const folder = temporaryDirectory();
  mkdirSync(join(folder, 'experiments'));
  writeFileSync(join(folder, 'experiments/mine.ts'), experiment);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'hang'), '');
  const flags = ['cache-task', 'mine.Cached', '--shards=4'];
  const { child, finished } = startCommand([...flags, '--processes=2'], folder, 'src/tools/commandLine.ts');
  const shards = (): string[] => {
    const [cache] = existsSync(join(folder, 'caches')) ? readdirSync(join(folder, 'caches')) : [];
    return cache === undefined ? [] : readdirSync(join(folder, 'caches', cache)).sort();
  };
  const whole = [0, 1, 3].map((s) => `0000${s}-of-00004.records`);
  // The process of shard 2 may open it after the other process has finished its last shard.
  const writer = () =>
    shards()
      .map((file) => /^00002-of-00004\.records\..*-(\d+)\.tmp$/.exec(file)?.[1])
      .find((pid) => pid !== undefined);
  const stuck = () => writer() !== undefined && whole.every((file) => shards().includes(file));
  while (child.exitCode === null && !stuck()) await setTimeout(50);
  if (child.exitCode !== null) expect(await finished).toBe('running');
  process.kill(Number(writer()), 'SIGKILL');
  const killed = await finished;
  expect([killed.code, killed.stderr]).toEqual([
    1,
    'A caching process failed. The process was killed, as the system does where memory runs out. Run the command again: ' +
      'complete shards are kept.\n',
  ]);
  expect(shards().filter((file) => !file.endsWith('.tmp'))).toEqual(whole);
  rmSync(join(folder, 'hang'));

  const train = ['train', '--exp=mine.Cached', '--set', 'datasets[0].useCached=true'];
  const job = (name: string) => [`--job_log_dir=${name}`, '--set', 'numTrainSteps=2'];
  const early = await runLuthier([...train, ...job('early')], folder);
  expect(early.code).toBe(1);
  expect(early.stderr).toMatch(
    /Input 'train': there is no cache of split 'all' of this task in .*caches\/\w{16}; the name tells .* Make it: npx luthier cache-task EXP --dataset=train/,
  );

  const resumed = await runLuthier(flags, folder);
  expect(resumed.stdout).toMatch(
    /^mine\.Cached, dataset 'train': 1 shard written, 3 kept\ncaches\/\w{16}: split 'all', 40 examples of 40 records, 4 shards of \S+ kB together\n {2}targets: 310 tokens, 7\.75 an example, the longest 8\n$/,
  );
  expect(shards()).toEqual([...whole.slice(0, 2), '00002-of-00004.records', whole[2]!, 'manifest.json']);
  expect(await runLuthier([...train, ...job('later')], folder)).toMatchObject({ code: 0 });
});
