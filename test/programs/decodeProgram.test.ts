/** @file Decoding a dataset again and again: draws that differ and draws that agree, with the weights of the time. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Engine, flatViews } from '../../src/compiler/index.js';
import { GreedyDecoder, SampleDecoder } from '../../src/decoding/index.js';
import { build } from '../../src/hparams/index.js';
import { TextInput } from '../../src/inputs/index.js';
import { AdamW, Learner } from '../../src/learners/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { DecodeProgram } from '../../src/programs/decodeProgram.js';
import { Measurements } from '../../src/programs/measurements.js';
import { paramsOf } from '../../src/programs/taskState.js';
import type { JobOptions } from '../../src/runs/options.js';
import { Decode, type DecodeResult, type ProgramRun, SingleTask, Train } from '../../src/tasks/index.js';
import { temporaryDirectory } from '../command.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { corpusDirectory } from '../inputs/corpus.js';

const seqLen = 8;
const common = { seqlen: 20, eosId: [] };
/** Rows that are all the same, two batches of two. */
const files = [join(corpusDirectory({ 'one.txt': 'abcdefgh'.repeat(4).concat('a') }), '*.txt')];

interface Setting {
  readonly datasetName?: string;
  readonly randomSeed?: number;
  readonly prefixLength?: number | null;
  readonly isGreedy?: boolean;
  readonly engine?: Engine;
}

/** A program over the rows, its parameters, and a decode by it at a step. */
async function programOf(setting: Setting = {}) {
  const {
    datasetName = 'same',
    randomSeed = 1,
    prefixLength = 4,
    isGreedy = false,
    engine = 'onnx',
  } = setting;
  const lmTpl = gpt2Lm({ vocabSize: 256, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: 20 });
  const decoder = isGreedy
    ? GreedyDecoder.config(common)
    : SampleDecoder.config({ ...common, numSamples: 2, k: 0, minPrefixLen: 1 });
  const config = SingleTask.config({
    model: LanguageModel.config({ lmTpl }),
    train: Train.config({ learner: Learner.config({ optimizer: AdamW.config({ learningRate: 1 }) }) }),
    decode: Decode.config({ decoder, randomSeed, prefixLength }),
  });
  const task = build(config);
  const state = paramsOf(task);
  await task.initialize(flatViews(state.layout, state.params));
  const options: JobOptions = {
    ...{ name: 'same', task: config, datasets: [], decodeDatasets: [], moduleUrl: import.meta.url },
    ...{ jobLogDir: temporaryDirectory(), mode: 'decode', overrides: [], classVars: '', engine },
  };
  const input = { name: datasetName, files, seqLen, batchSize: 2, evalLoopNumBatches: -1, split: 'all' };
  const measurements = new Measurements(options, task, () => state);
  const program = new DecodeProgram(task, TextInput.config(input as never));
  const decode = async (step = 0) => {
    const results: DecodeResult[] = [];
    const run: Partial<ProgramRun> = {
      ...{ step, directory: options.jobLogDir },
      decode: (data) =>
        measurements.decodes.decode(data, { program: program.name, throwIfStopped: () => {} }),
      report: (result) => results.push(result as DecodeResult),
    };
    await program.run(run as ProgramRun);
    return results[0]!.examples;
  };
  return { measurements, params: state.params, decode };
}

type Examples = Awaited<ReturnType<Awaited<ReturnType<typeof programOf>>['decode']>>;

/** The drawn ids of each sample. */
const drawnIn = (examples: Examples): string[] =>
  examples.flatMap(({ sampled, ...only }) =>
    (sampled ?? [only]).map(({ decoded_ids }) => decoded_ids.join(' ')),
  );

test('samples of equal prompts differ within a batch, between batches, datasets and seeds; steps and repetitions agree', async () => {
  const { decode, measurements } = await programOf();
  const first = drawnIn(await decode());
  expect(new Set(first).size).toBe(8);
  expect(drawnIn(await decode())).toEqual(first);
  expect(drawnIn(await decode(7))).toEqual(first);
  await measurements.decodes.close();
  expect(drawnIn(await decode())).toEqual(first);
  await measurements.close();
  for (const setting of [{ datasetName: 'other' }, { randomSeed: 2 }]) {
    const other = await programOf(setting);
    const drawn = drawnIn(await other.decode());
    expect(new Set([...first, ...drawn]).size).toBe(16);
    await other.measurements.close();
  }
});

test('lengths of prompts are drawn for each row of each batch anew', async () => {
  const { decode, measurements } = await programOf({ prefixLength: null });
  const lengths = (await decode()).map(({ prefix_length }) => prefix_length);
  expect(new Set(lengths).size).toBeGreaterThan(2);
  expect((await decode()).map(({ prefix_length }) => prefix_length)).toEqual(lengths);
  await measurements.close();
});

// Compiled programs keep weights packed for their products.
test.runIf(hasCompiler)('a decode after training has the weights of then', async () => {
  const greedy = { isGreedy: true, engine: 'native' } as const;
  const { decode, measurements, params } = await programOf(greedy);
  const before = drawnIn(await decode());
  const trained = params.map((value, i) => value + Math.sin(i));
  params.set(trained);
  const after = drawnIn(await decode(1));
  await measurements.close();
  const fresh = await programOf(greedy);
  fresh.params.set(trained);
  expect(after).toEqual(drawnIn(await fresh.decode(1)));
  expect(after).not.toEqual(before);
  await fresh.measurements.close();
});
