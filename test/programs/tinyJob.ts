/** @file A training job on random tokens in this process, opened part by part as the command opens it. */
import { afterAll } from 'vitest';
import { GreedyDecoder } from '../../src/decoding/index.js';
import type { Config } from '../../src/hparams/index.js';
import { build } from '../../src/hparams/index.js';
import { type BaseInput, SyntheticLmInput } from '../../src/inputs/index.js';
import { Adam, Learner } from '../../src/learners/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { trainedWeights } from '../../src/programs/evaluatedWeights.js';
import { checkDatasets, pendingAt, programsOf } from '../../src/programs/jobPrograms.js';
import { Measurements } from '../../src/programs/measurements.js';
import { Reporter } from '../../src/programs/reporter.js';
import { compileTraining, makeLoop } from '../../src/programs/trainingLoop.js';
import { openStart } from '../../src/programs/trainingStart.js';
import { strayFailures } from '../../src/runs/jobErrors.js';
import type { JobOptions } from '../../src/runs/options.js';
import type { StopSignal } from '../../src/system/index.js';
import { Decode, type Program, SingleTask, Train } from '../../src/tasks/index.js';
import { temporaryDirectory } from '../command.js';

/** Those of bytes, for text. */
const vocabSize = 256;
const seqLen = 8;

/** Random tokens: those of `seed` are the same in every run. */
export const tokens = (name: string, values: Partial<Config<SyntheticLmInput>> = {}) =>
  SyntheticLmInput.config({
    name,
    batchSize: 2,
    seqLen,
    vocabSize,
    ...values,
  } as never) as Config<SyntheticLmInput>;

/** Options of a job of four steps, each with a summary, which keeps all of its checkpoints, one every second step. */
export function tinyOptions(
  train: Partial<Config<Train>> = {},
  { jobLogDir = temporaryDirectory(), mode = 'train' as JobOptions['mode'], emaDecay = 0 } = {},
): JobOptions {
  const lmTpl = gpt2Lm({ vocabSize, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: seqLen });
  const learner = Learner.config({ optimizer: Adam.config({ learningRate: 0.1, emaDecay }) });
  const every = { numTrainSteps: 4, summaryIntervalSteps: 1, saveIntervalSteps: 2, evalIntervalSteps: 2 };
  const task = SingleTask.config({
    model: LanguageModel.config({ lmTpl }),
    train: Train.config({
      learner,
      ...every,
      saveMaxToKeep: null,
      saveKeepIntervalDuration: null,
      evalSkipTrain: true,
      onEvalError: 'stop',
      ...train,
    } as never),
    decode: Decode.config({
      decoder: GreedyDecoder.config({ seqlen: seqLen, eosId: [] } as never),
      prefixLength: 2,
    }),
  });
  return {
    ...{ name: 'tiny', task, moduleUrl: import.meta.url, jobLogDir, mode, overrides: [], classVars: '' },
    datasets: [tokens('train', { isTraining: true })] as Config<BaseInput>[],
    ...{ decodeDatasets: [], engine: 'onnx', numThreads: 1, peakTflops: 1 },
  };
}

const closing: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

/** A stop signal that a test may receive. */
export type Stop = { received: StopSignal['received'] };

/** Opens the parts of training, with programs of a test behind those of the options. */
export async function openJob(
  options: JobOptions,
  more: readonly Program[] = [],
  stop: Stop = { received: undefined },
) {
  const task = build(options.task);
  const lines: string[] = [];
  const start = await openStart(options, task, (line) => lines.push(line));
  const measurements = new Measurements(options, task, trainedWeights(start.state), start.input);
  const list = [...programsOf(options, task), ...more];
  checkDatasets(list, measurements.inputs);
  const { numTrainSteps } = task.hp.train.hp;
  const { step } = start.state;
  const pending = pendingAt(list, { step, isLast: step >= numTrainSteps }, start.restored?.progress);
  const reporter = new Reporter(options, { numTrainSteps, firstStep: step, again: pending });
  reporter.tell = (...told) => void lines.push(...told);
  const strays = strayFailures();
  const program = await compileTraining(options, task, start, strays);
  const parts = { options, task, start, program, list, pending, measurements, reporter, strays };
  const loop = await makeLoop({ ...parts, stop: stop as StopSignal });
  closing.push(() =>
    Promise.allSettled([start.dataset, measurements, loop.programs, reporter].map((part) => part.close())),
  );
  return { ...parts, loop, run: loop.run, lines };
}
