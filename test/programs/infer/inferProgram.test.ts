/** @file Inference over datasets: outputs of each example once, in shards, wherever a job is interrupted. */
import {
  appendFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, expect, test, vi } from 'vitest';
import { build, type Config } from '../../../src/hparams/index.js';
import { TfRecordSource } from '../../../src/inputs/index.js';
import { runCheckpointJob } from '../../../src/programs/checkpointJob.js';
import type { JobOptions } from '../../../src/runs/options.js';
import type { StopSignal } from '../../../src/system/index.js';
import { InferWriter, ModelPredictions, type SingleTask } from '../../../src/tasks/index.js';
import { loadEvalOutputs } from '../../../src/trained/exampleOutputs.js';
import { loadInferOutputs } from '../../../src/trained/inferOutputs.js';
import { loadRun } from '../../../src/trained/loadRun.js';
import { temporaryDirectory } from '../../command.js';
import { Reviews } from '../../fixtures/classifiers/experiments/classifiers.js';
import { classifiers, reviews, trainedOn } from '../../trained/classifierRuns.js';

const STEP = 1;
let jobLogDir: string;
let data: string;
/** Outputs of the validation split: 10 reviews in batches of 4, the last one padded. */
let directory: string;

beforeAll(async () => {
  data = reviews(temporaryDirectory());
  jobLogDir = await trainedOn(Reviews, data, { numTrainSteps: STEP });
  directory = join(jobLogDir, 'output/validation/checkpoint_00000001');
});

type Writer = Parameters<typeof InferWriter.config>[0];

/** Infers in this process. @param asked times that the job asks for a signal before one comes @returns lines of the console */
function infer(writer: Writer, asked?: number): Promise<string[]> {
  return run('infer', (task) => (task.inferWriter = InferWriter.config(writer)), asked);
}

async function run(
  mode: JobOptions['mode'],
  set: (task: Config<SingleTask>) => unknown,
  asked = Number.POSITIVE_INFINITY,
): Promise<string[]> {
  const task = Object.assign(new Reviews(), { data, numTrainSteps: STEP }).task();
  set(task);
  const [training, validation] = Object.assign(new Reviews(), { data }).datasets();
  validation!.batchSize = 4;
  const options: JobOptions = {
    ...{ name: 'classifiers.Reviews', jobLogDir, mode, engine: 'onnx' },
    ...{ task, datasets: [training!, validation!], decodeDatasets: [], overrides: [], classVars: '' },
    moduleUrl: new URL('experiments/classifiers.ts', `${pathToFileURL(classifiers)}/`).href,
  };
  let left = asked;
  const stop: Pick<StopSignal, 'received' | 'postpone'> = {
    get received() {
      return left-- > 0 ? undefined : 'SIGTERM';
    },
    postpone: () => {},
  };
  const said: string[] = [];
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => said.push(String(text)) > 0);
  try {
    await runCheckpointJob(options, stop as StopSignal);
  } finally {
    write.mockRestore();
  }
  return said.join('').trim().split('\n');
}

/** Bytes of the shards by name. */
const shards = (): Record<string, string> =>
  Object.fromEntries(
    readdirSync(directory)
      .filter((name) => name.startsWith('output.'))
      .map((name) => [name, readFileSync(join(directory, name), 'latin1')]),
  );

const jsonl: Writer = { outputFormat: 'jsonl', outputNumShards: 2 };
const partial = (): string => `${directory}.partial`;

test('batches go to shards in turn, without padding; both formats hold the predictions of the examples', async () => {
  const lines = await infer(jsonl);
  expect(lines[0]).toBe('infer_validation: logits float32[2]: 8 bytes an example');
  expect(lines[1]).toMatch(
    new RegExp(`^infer_validation at step 1: 10 examples, [\\d.]+ s, [\\d.]+k? examples/s, in ${directory}$`),
  );
  const ids = Object.values(shards()).map((text) =>
    [...text.matchAll(/"example_id":(\d+)/g)].map(([, id]) => Number(id)),
  );
  expect(ids).toEqual([
    [0, 1, 2, 3, 8, 9],
    [4, 5, 6, 7],
  ]);
  const { step, numShards, examples } = loadInferOutputs(directory);
  expect({ step, numShards }).toEqual({ step: STEP, numShards: 2 });
  const loaded = await loadRun(jobLogDir, { experiments: [join(classifiers, 'experiments')] });
  const texts = readFileSync(data, 'utf8').trim().split('\n').slice(-10);
  const predicted = await loaded.predict(texts.map((line) => ({ text: line.split('"')[1] })));
  await loaded.dispose();
  for (const [i, { outputs }] of predicted.entries())
    for (const [j, logit] of (outputs.logits as number[]).entries())
      expect((examples[i]!.logits as number[])[j]).toBeCloseTo(logit, 5);

  // Other settings replace the outputs; arrays of the batch stand beside predictions.
  const runner = ModelPredictions.config({ outputs: ['logits'], batchArrays: ['labels', 'text.ids'] });
  await infer({ inferenceRunner: runner, outputNumShards: 3 });
  expect(Object.keys(shards())).toEqual([0, 1, 2].map((shard) => `output.tfrecord-0000${shard}-of-00003`));
  const records = loadInferOutputs(directory);
  expect(records.examples.map(({ example_id, logits }) => ({ example_id, logits }))).toEqual(examples);
  const features = {
    labels: { dtype: 'int64' as const },
    'text.ids': { dtype: 'int64' as const, shape: [24] },
  };
  const source = TfRecordSource.config({ files: [join(directory, 'output.tfrecord-*')], features } as never);
  const table = build(source).open();
  const labels = Array.from({ length: table.numRecords }, (_, i) => table.read(i).labels);
  table.close();
  expect(labels).toEqual([0, 1, 2, 3, 8, 9, 4, 5, 6, 7].map((i) => (i % 2 === 0 ? 1 : 0)));
  const named = JSON.parse(readFileSync(join(directory, 'features.json'), 'utf8')).featuresDict.features;
  expect(named['text.ids']).toEqual({
    pythonClassName: 'tensorflow_datasets.core.features.tensor_feature.Tensor',
    tensor: { shape: { dimensions: ['24'] }, dtype: 'int32', encoding: 'none' },
  });
});

test('a job that was interrupted goes on where its records end; complete outputs stay', async () => {
  rmSync(directory, { recursive: true, force: true });
  await infer(jsonl);
  const whole = shards();
  expect((await infer(jsonl))[0]).toBe(
    `infer_validation at step 1: ${directory} has the outputs of this checkpoint, data and settings already. Delete it to write them again.`,
  );
  const told: string[] = [];
  for (let asked = 2; ; asked += 2) {
    rmSync(directory, { recursive: true, force: true });
    const first = await infer(jsonl, asked);
    if (first.at(-1)!.includes('10 examples')) break;
    expect(existsSync(directory)).toBe(false);
    // Records behind those that were saved, as a killed process leaves them.
    if (existsSync(join(partial(), 'progress.json')))
      for (const name of Object.keys(whole)) appendFileSync(join(partial(), name), '{"example_id":');
    const [second] = await infer(jsonl);
    told.push(second!);
    expect(shards()).toEqual(whole);
  }
  expect(new Set(told)).toEqual(
    new Set([
      'infer_validation: logits float32[2]: 8 bytes an example',
      'infer_validation: goes on after 4 examples',
      'infer_validation: goes on after 8 examples',
    ]),
  );
});

test('a record of progress that is damaged or of other data counts as none; complete outputs get their name', async () => {
  rmSync(directory, { recursive: true, force: true });
  let asked = 2;
  while (!existsSync(join(partial(), 'progress.json'))) await infer(jsonl, asked++);
  const kept = join(temporaryDirectory(), 'kept');
  cpSync(partial(), kept, { recursive: true });
  const text = readFileSync(join(kept, 'progress.json'), 'utf8');
  const damages = ['', text.replace('"batches":1', '"batches":0'), text.replace(/"data":"./, '"data":"x')];
  for (const damaged of damages) {
    rmSync(directory, { recursive: true, force: true });
    rmSync(partial(), { recursive: true, force: true });
    cpSync(kept, partial(), { recursive: true });
    writeFileSync(join(partial(), 'progress.json'), damaged);
    await infer(jsonl);
    expect(loadInferOutputs(directory).examples.map(({ example_id }) => example_id)).toEqual([
      ...Array(10).keys(),
    ]);
  }
  renameSync(directory, partial());
  expect((await infer(jsonl))[0]).toContain('has the outputs of this checkpoint');
  expect(existsSync(partial())).toBe(false);
  rmSync(join(directory, 'output.jsonl-00001-of-00002'));
  expect(() => loadInferOutputs(directory)).toThrow(
    `${directory}/output.jsonl-00001-of-00002 is not that of complete outputs: ENOENT: no such file or directory`,
  );
});

test('an evaluation writes outputs of its examples where they are asked for', async () => {
  rmSync(directory, { recursive: true, force: true });
  await infer(jsonl);
  const folder = join(jobLogDir, 'eval_out/validation');
  await run('eval', () => {});
  expect(existsSync(folder)).toBe(false);
  await run('eval', (task) => (task.evaluate.exampleOutputs = ['logits', 'labels']));
  const { step, examples } = loadEvalOutputs(folder);
  expect(step).toBe(STEP);
  const inferred = loadInferOutputs(directory).examples;
  expect(examples).toEqual(inferred.map((example, i) => ({ ...example, labels: i % 2 === 0 ? 1 : 0 })));
  await expect(run('eval', (task) => (task.evaluate.exampleOutputs = ['score']))).rejects.toThrow(
    "task.evaluate.exampleOutputs reads 'score', which neither the model gives for each example nor the batch has.",
  );
  expect(() => loadEvalOutputs(join(jobLogDir, 'output'))).toThrow(
    `${jobLogDir}/output has no eval_out_<step>_shard_<n>.jsonl. Evaluate the run first.`,
  );
});

test('what the model does not give is told before anything is written', async () => {
  const named = (outputs: string[]) => infer({ inferenceRunner: ModelPredictions.config({ outputs }) });
  await expect(named(['logit'])).rejects.toThrow(
    "task.inferWriter.inferenceRunner.outputs has 'logit', which TextClassifier does not have. Did you mean 'logits'? It has: logits.",
  );
});
