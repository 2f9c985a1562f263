/** @file Programs of bench:engines: training steps, evaluation steps and decoding steps, compiled as jobs compile them. */
import { type HostTensor, newHostArray, sizeOf } from '../src/compiler/index.js';
import { GREEDY, Stepper } from '../src/decoding/index.js';
import { build, type Config } from '../src/hparams/index.js';
import { initVariables } from '../src/layers/index.js';
import { Adam, Learner } from '../src/learners/index.js';
import type { BaseModel } from '../src/models/index.js';
import { ForwardCalls } from '../src/programs/forwardCalls.js';
import { compileStep } from '../src/programs/stepCalls.js';
import { trainStateOf } from '../src/programs/taskState.js';
import { compileOptions, type JobOptions } from '../src/runs/options.js';
import { evalKey, evalStep, SingleTask, Train } from '../src/tasks/index.js';
import { convolutional, type Modelled, perceptron, recurrent } from './engineModels.js';
import { gptModel, initialParams } from './gptJob.js';
import type { Precision } from './results.js';
import { type Shape, shapes } from './shapes.js';

/** A compiled program. */
export interface Opened {
  /** Runs it about `count` times. @returns how many times it ran */
  run(count: number): Promise<number>;
  dispose(): Promise<void>;
}

/** A program to compile. */
export interface Job {
  readonly name: string;
  open(options: Pick<JobOptions, 'engine' | 'explain'>, runs: number): Promise<Opened>;
}

const tiny: Shape = { layers: 2, heads: 2, width: 32, context: 32, batch: 4, vocabulary: 65, steps: 0 };

function gpt(shape: Shape, precision: Precision): Modelled {
  const { batch, context, vocabulary } = shape;
  const ones = (): HostTensor => ({
    shape: [batch, context],
    dtype: 'float32',
    data: newHostArray('float32', sizeOf([batch, context])).fill(1) as Float32Array,
  });
  const ids = (): HostTensor => ({
    shape: [batch, context],
    dtype: 'int32',
    data: Int32Array.from({ length: batch * context }, (_, i) => (i * 7) % vocabulary),
  });
  const zeros = { ...ones(), data: new Float32Array(batch * context) };
  return {
    model: gptModel(shape, precision),
    batch: { ids: ids(), labels: ids(), weights: ones(), paddings: zeros },
  };
}

function jobOptions(
  model: Config<BaseModel>,
  runs: number,
  options: Pick<JobOptions, 'engine' | 'explain'>,
): JobOptions {
  const learner = Learner.config({ optimizer: Adam.config({ learningRate: 1e-3 }) });
  const task = SingleTask.config({ model, train: Train.config({ learner, numTrainSteps: runs }) });
  return {
    name: 'bench',
    task,
    datasets: [],
    decodeDatasets: [],
    moduleUrl: import.meta.url,
    jobLogDir: '',
    mode: 'train',
    overrides: [],
    classVars: '',
    ...options,
  };
}

/** A task and its memory, with initial values. */
function stateOf(options: JobOptions) {
  const task = build(options.task);
  const state = trainStateOf(task);
  for (const [path, values] of initVariables(task.model, 0)) state.views[path]!.set(values);
  return { task, state };
}

function training(name: string, { model, batch }: Modelled): Job {
  return {
    name: `${name}, training`,
    open: async (given, runs) => {
      const options = jobOptions(model, runs, given);
      const { task, state } = stateOf(options);
      const { call, mostSteps, executable, updater } = await compileStep(
        options,
        task,
        state,
        'bench',
        batch,
      );
      return {
        run: async (count) => {
          const steps = Math.min(count, mostSteps);
          for (let i = 0; i < steps; i++) updater.prepare(i, i);
          await call.run(steps);
          return steps;
        },
        dispose: () => executable.dispose(),
      };
    },
  };
}

function evaluation(name: string, { model, batch }: Modelled): Job {
  return {
    name: `${name}, evaluation`,
    open: async (given, runs) => {
      const options = jobOptions(model, runs, given);
      const { task, state } = stateOf(options);
      const parts = { options, task, params: state, name: 'eval_step', step: evalStep(task), runs };
      const call = await new ForwardCalls(parts).of('bench', batch);
      return {
        run: async () => {
          await call.run('bench', batch, evalKey());
          return 1;
        },
        dispose: async () => {},
      };
    },
  };
}

function decoding(name: string, shape: Shape, precision: Precision, rows: number): Job {
  return {
    name: `${name}, decoding ${rows} ${rows === 1 ? 'row' : 'rows'}`,
    open: async (given, runs) => {
      const model = build(gptModel(shape, precision));
      const stepper = await Stepper.create({
        model,
        params: initialParams(model),
        rows,
        seqlen: shape.context,
        rule: GREEDY,
        compileOptions: (program) => compileOptions(given, program, runs),
      });
      return {
        run: async (count) => {
          const tokens = Math.min(count, shape.context - 1);
          await stepper.extendDrawing(new Int32Array(rows), 0, tokens);
          return tokens;
        },
        dispose: () => stepper.dispose(),
      };
    },
  };
}

/** Small and large programs of each kind, on which the costs in src/compiler/engines/engineCost.ts were fitted. */
export function engineJobs(): Job[] {
  const { nano } = shapes as Record<'nano', Shape>;
  const models: [string, Modelled][] = [
    ['tiny LM', gpt(tiny, 'f32')],
    ['nano LM', gpt(nano, 'f32')],
    ['nano LM, bfloat16', gpt(nano, 'bf16')],
    ['small MLP', perceptron(32, 64, 64, 2)],
    ['large MLP', perceptron(128, 784, 1024, 2)],
    ['small conv net', convolutional(24, 16, 1, [8, 16])],
    ['large conv net', convolutional(32, 32, 3, [32, 64, 64])],
    ['small LSTM', recurrent(16, 16, 32)],
    ['large LSTM', recurrent(32, 32, 256)],
  ];
  return [
    ...models.flatMap(([name, model]) => [training(name, model), evaluation(name, model)]),
    decoding('tiny LM', tiny, 'f32', 1),
    decoding('nano LM', nano, 'f32', 1),
    decoding('nano LM', nano, 'f32', 16),
    decoding('nano LM, bfloat16', nano, 'bf16', 1),
  ];
}
