/** @file Inference over datasets: outputs of each example once, in shards, wherever a job is interrupted. */
import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, expect, test, vi } from 'vitest';
import { build, type Config } from '../../../src/hparams/index.js';
import { type Batch, TfRecordSource } from '../../../src/inputs/index.js';
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

  // Other settings replace the outputs; arrays of the batch stand beside predictions.
  const batchArrays = ['labels', 'text.ids', 'text.paddings'];
  const runner = ModelPredictions.config({ outputs: ['logits'], batchArrays });
  await infer({ inferenceRunner: runner, outputNumShards: 3 });
  expect(Object.keys(shards())).toEqual([0, 1, 2].map((shard) => `output.tfrecord-0000${shard}-of-00003`));
  const records = loadInferOutputs(directory).examples;
  expect(records.map(({ example_id, logits }) => ({ example_id, logits }))).toEqual(examples);

  const loaded = await loadRun(jobLogDir, {
    experiments: [join(classifiers, 'experiments')],
    engine: 'onnx',
  });
  const column = (name: string) => records.flatMap((record) => record[name] as number[]);
  const shape = [10, 24];
  const tokens = { shape, dtype: 'int32', data: Int32Array.from(column('text.ids')) } as const;
  const paddings = { shape, dtype: 'float32', data: Float32Array.from(column('text.paddings')) } as const;
  const { logits } = await loaded.predict({ text: { ids: tokens, paddings } } as Batch);
  await loaded.dispose();
  for (const [i, logit] of column('logits').entries()) expect(logit).toBeCloseTo(logits!.data[i]!, 6);

  const features = { example_id: { dtype: 'int64' as const }, labels: { dtype: 'int64' as const } };
  const source = TfRecordSource.config({ files: [join(directory, 'output.tfrecord-*')], features } as never);
  const table = build(source).open();
  const labels = Array.from({ length: table.numRecords }, (_, i) => table.read(i));
  table.close();
  expect(labels.map(({ example_id }) => example_id)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(labels).toEqual(records.map(({ example_id, labels }) => ({ example_id, labels })));
  expect(new Set(labels.map(({ labels }) => labels))).toEqual(new Set([0, 1]));
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
  rmSync(directory, { recursive: true, force: true });
  const partial = `${directory}.partial`;
  for (let asked = 3; !existsSync(join(partial, 'progress.json')); asked++) await infer(jsonl, asked);
  expect(existsSync(directory)).toBe(false);
  // Records behind those that were saved, as a killed process leaves them.
  for (const name of Object.keys(whole)) appendFileSync(join(partial, name), '{"example_id":');
  expect((await infer(jsonl))[0]).toMatch(/^infer_validation: goes on after [48] examples$/);
  expect(shards()).toEqual(whole);
  expect(existsSync(partial)).toBe(false);
});

test('an evaluation writes outputs of its examples where they are asked for', async () => {
  const folder = join(jobLogDir, 'eval_out/validation');
  // None by default.
  expect(existsSync(folder)).toBe(false);
  await run('eval', (task) => (task.evaluate.exampleOutputs = ['logits', 'labels']));
  const { step, examples } = loadEvalOutputs(folder);
  expect(step).toBe(STEP);
  const inferenceRunner = ModelPredictions.config({ batchArrays: ['labels'] });
  await infer({ ...jsonl, inferenceRunner });
  expect(examples).toEqual(loadInferOutputs(directory).examples);
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
