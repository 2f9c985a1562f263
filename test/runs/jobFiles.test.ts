/** @file The records of a run. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fromJSON } from '../../src/index.js';
import { oneProcess, temporaryDirectory } from '../command.js';
import { engines } from '../compiler/engines.js';
import { longTest } from '../longTest.js';

const run = oneProcess('src/main.ts');

test('a run records its experiment, its final configs, and the origins of constants', async () => {
  const directory = temporaryDirectory();
  const flags = [
    '--set',
    'modelDims=8',
    '--set',
    'task.train.numTrainSteps=2',
    '--set',
    'datasets[0].batchSize=3',
  ];
  const { code, stderr } = await run(['--exp=Tiny', `--job_log_dir=${directory}`, ...flags]);
  expect(code, stderr).toBe(0);

  const record = JSON.parse(readFileSync(join(directory, 'experiment.json'), 'utf8'));
  expect(record).toMatchObject({
    name: 'tiny.Tiny',
    mode: 'train',
    overrides: ['--set modelDims=8', '--set task.train.numTrainSteps=2', "--set 'datasets[0].batchSize=3'"],
    versions: { node: process.versions.node },
  });
  expect(record.gitRevision).toMatch(/^[0-9a-f]{40}$/);
  // The whole record will do, and the library's classes are known by its import.
  const { task, datasets } = fromJSON(record) as {
    task: { train: { numTrainSteps: number } };
    datasets: { batchSize: number }[];
  };
  expect([task.train.numTrainSteps, datasets[0]!.batchSize]).toEqual([2, 3]);

  const params = readFileSync(join(directory, 'model_params.txt'), 'utf8').split('\n');
  expect(params).toContain('task.train.numTrainSteps : 2');
  expect(params).toContain('datasets[0].batchSize : 3');
  expect(params).toContain('decodeDatasets[0] : TextInput');
  expect(readFileSync(join(directory, 'experiment_cls_vars.txt'), 'utf8')).toBe(
    'Tiny:\n  numTrainSteps: 12\n  dataPath: "corpus/*.txt"\n  learningRate: 0.01\n  numSamples: 1\n' +
      '--set modelDims=8:\n  modelDims: 8\n',
  );
  expect(existsSync(join(directory, 'summaries/train'))).toBe(true);
});

longTest('a resume with changed settings tells them, and keeps the earlier record', async () => {
  const directory = temporaryDirectory();
  const trained = async (...sets: string[]) => {
    const { code, stdout, stderr } = await run([
      ...['--exp=Tiny', `--job_log_dir=${directory}`, '--engine=onnx'],
      ...sets.flatMap((set) => ['--set', set]),
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout.split('\n').filter((line) => line.startsWith('Resuming'));
  };
  const earlier = () => readdirSync(directory).filter((name) => /^experiment_\d+\.json$/.test(name));
  const steps = (name: string) => JSON.parse(readFileSync(join(directory, name), 'utf8')).overrides;
  expect(await trained('numTrainSteps=2')).toEqual([]);
  expect(await trained('numTrainSteps=2')).toEqual([]);
  expect(earlier()).toEqual([]);
  expect(await trained('numTrainSteps=3', 'learningRate=0.5')).toEqual([
    'Resuming with changed settings: task.train.learner.optimizer.learningRate: 0.01 → 0.5, ' +
      'task.train.numTrainSteps: 2 → 3. The earlier record is kept as experiment_1.json.',
  ]);
  expect(await trained('numTrainSteps=4', 'learningRate=0.5')).toEqual([
    'Resuming with changed settings: task.train.numTrainSteps: 3 → 4. The earlier record is kept as experiment_2.json.',
  ]);
  expect(earlier()).toEqual(['experiment_1.json', 'experiment_2.json']);
  expect(['experiment_1.json', 'experiment_2.json', 'experiment.json'].map(steps)).toEqual([
    ['--set numTrainSteps=2'],
    ['--set numTrainSteps=3', '--set learningRate=0.5'],
    ['--set numTrainSteps=4', '--set learningRate=0.5'],
  ]);
});

for (const [title, { engine, available }] of engines) {
  const name = `gradients that are not finite change nothing and are counted; the run goes on (${title})`;
  test.skipIf(!available)(name, () => skipsSteps(engine), 120_000);
}

async function skipsSteps(engine: string): Promise<void> {
  const directory = temporaryDirectory();
  const flags = [
    '--exp=Tiny',
    `--engine=${engine}`,
    `--job_log_dir=${directory}`,
    '--set',
    'learningRate=1e38',
    '--set',
    'numTrainSteps=6',
  ];
  const { code, stdout, stderr } = await run(flags);
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/Step \d: update left out, loss \S+, gradient norm (NaN|Infinity) \(1 so far\)\./);
  const last = readFileSync(join(directory, 'metrics.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((l) => JSON.parse(l))
    .findLast((l) => l.program === 'train');
  expect(last).toMatchObject({ step: 6, 'learning/is_valid_step': 0 });
  expect(last['learning/skipped_steps']).toBeGreaterThan(3);
}
