/** @file Fingerprints of what an experiment computes and reads: the same in two versions where that is the same. */
import { createHash } from 'node:crypto';
import type { ConfiguredExperiment } from '../../cli/index.js';
import { fingerprint, operationsOf } from '../../compiler/fingerprint.js';
import { fillNow, flatViews, prngKey, sizeOf, type TensorSpec, type Tree } from '../../compiler/index.js';
import { type TensorFunction, traceProgram } from '../../compiler/tracedProgram.js';
import { build, type Config, classOf, copyWith } from '../../hparams/index.js';
import { arraysOf, type BaseInput, type Batch, type BatchSpecs, nextBatch } from '../../inputs/index.js';
import { initialValues } from '../../layers/core/variables.js';
import type { Variable } from '../../layers/index.js';
import { trainingDataset } from '../../programs/programDataset.js';
import { evalStep, type SingleTask, trainStep } from '../../tasks/index.js';
import { failureOf } from '../failure.js';
import type { Fingerprint, PartDigest } from './protocol.js';
import { Shared } from './shared.js';

/** Models of at most this many parameters have all their initial values drawn. */
const MOST_DRAWN = 1 << 20;
/** Of larger ones, variables of more elements are drawn in a smaller shape, unless their distribution says all. */
const MOST_OF_VARIABLE = 1 << 12;
/** Sizes of that smaller shape. */
const SMALL_AXIS = 16;
/** Rows of the batch that is read. */
const MOST_ROWS = 16;

/** Finished steps after which learning rates and the like are compared: the first ten, then ever fewer up to a million. */
const STEPS = [...Array(10).keys(), ...Array.from({ length: 60 }, (_, i) => Math.round(10 * 10 ** (i / 12)))];

function digest(...parts: readonly unknown[]): string {
  const hash = createHash('sha256');
  for (const part of parts) {
    if (ArrayBuffer.isView(part)) hash.update(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
    else hash.update(`${JSON.stringify(part)}\n`);
  }
  return hash.digest('base64');
}

/** A program's fingerprints. */
interface Traced {
  readonly hash: string;
  readonly operations: string;
}

function trace(f: unknown, specs: unknown): Traced {
  const program = traceProgram(f as TensorFunction, specs as Tree<TensorSpec>);
  return { hash: fingerprint(program), operations: operationsOf(program) };
}

/** A task, traced once for batches of the same shapes. */
class TracedTask {
  private readonly steps = new Map<string, Traced>();
  private readonly params: Record<string, TensorSpec>;

  constructor(private readonly task: SingleTask) {
    this.params = Object.fromEntries(
      task.variables.map(({ path, shape, dtype }) => [path, { shape, dtype }]),
    );
  }

  /** Loss, metrics, summaries and gradients of a training step. */
  training(batch: BatchSpecs): Traced {
    return this.once('training', batch, () => {
      const prngKey: TensorSpec = { shape: [2], dtype: 'int32' };
      return trace(trainStep(this.task), { params: this.params, batch, prngKey });
    });
  }

  /** Metrics of an evaluation step. */
  evaluation(batch: BatchSpecs): Traced {
    return this.once('evaluation', batch, () => trace(evalStep(this.task), { params: this.params, batch }));
  }

  /** The optimizer's update, and the numbers that the host hands it at each step. */
  update(): Traced {
    return this.once('update', {}, () => {
      const { learner } = this.task.hp.train.hp;
      const { optimizer } = learner.hp;
      const layout = this.task.layout();
      const { f, inputs } = learner.update(layout);
      const numbers = STEPS.map((step) => [
        learner.learningRateAt(step),
        ...(['decay', 'noDecay'] as const).map((group) => optimizer.hostScalars(step, group)),
      ]);
      const { hash, operations } = trace(f, inputs);
      return { hash: digest(layout, hash, numbers), operations };
    });
  }

  private once(name: string, batch: BatchSpecs, make: () => Traced): Traced {
    const key = JSON.stringify([name, batch]);
    let found = this.steps.get(key);
    if (found === undefined) this.steps.set(key, (found = make()));
    return found;
  }
}

/** What a task's parameters and slots start with. */
async function initialDigest(task: SingleTask): Promise<PartDigest> {
  const { learner } = task.hp.train.hp;
  const params = Float32Array.of(1, 2, 3);
  const slots = Object.fromEntries(learner.slotNames.map((name) => [name, new Float32Array(3)]));
  learner.initializeSlots({ params, slots });
  const layout = task.layout();
  if (layout.size > MOST_DRAWN) return { hash: digest(slots, ...rulesOfInitialValues(task)) };
  const values = new Float32Array(layout.size);
  await task.initialize(flatViews(layout, values), { engine: 'eager' });
  return { hash: digest(slots, layout, values) };
}

/** What large models draw from, with a few numbers of each distribution. */
function* rulesOfInitialValues({ model, hp }: SingleTask): Generator<unknown> {
  const small = (variable: Variable): Variable =>
    sizeOf(variable.shape) <= MOST_OF_VARIABLE
      ? variable
      : { ...variable, shape: variable.shape.map((size) => Math.min(size, SMALL_AXIS)) };
  for (const { variable, key, initial } of initialValues(model, hp.train.hp.randomSeed, small)) {
    yield [variable.path, variable.shape, variable.dtype, [...key]];
    yield initial instanceof Float32Array ? initial : variable.init.draw(key, variable);
  }
  for (const kind of ['normal', 'uniform', 'constant'] as const) {
    const out = new Float32Array(64);
    fillNow({ kind, scale: 1, key: prngKey(0), out });
    yield out;
  }
}

/** The first rows of a dataset. */
async function rowsDigest(config: Config<BaseInput>): Promise<PartDigest> {
  try {
    const { batchSize } = config;
    const input = build(batchSize > MOST_ROWS ? copyWith(config, { batchSize: MOST_ROWS }) : config);
    try {
      const batch: Batch | undefined = await nextBatch(input);
      const arrays = batch === undefined ? [] : [...arraysOf(batch)];
      return {
        hash: digest(...arrays.flatMap(([path, { shape, dtype, data }]) => [[path, shape, dtype], data])),
      };
    } finally {
      await input.close();
    }
  } catch (error) {
    return { notCompared: reasonOf(error) };
  }
}

/** What went wrong, in a line. */
function reasonOf(error: unknown): string {
  return failureOf(error).message.split('\n')[0]!;
}

async function told(make: () => PartDigest | Promise<PartDigest>): Promise<PartDigest> {
  try {
    return await make();
  } catch (error) {
    return { notCompared: reasonOf(error) };
  }
}

/** Fingerprints of experiments, which share what their configs have in common. */
export class Fingerprints {
  private readonly tasks = new Shared<TracedTask>();
  private readonly initials = new Shared<Promise<PartDigest>>();
  private readonly inputs = new Shared<Promise<PartDigest>>();

  /** @throws ConfigError and LayerError where the task cannot be built. */
  async of(configured: ConfiguredExperiment): Promise<Fingerprint> {
    const { task, datasets, decodeDatasets } = configured;
    const { learner, randomSeed, evalSkipTrain } = task.train;
    const parts = [classOf(task), task.model, learner];
    let built: SingleTask | undefined;
    const theTask = (): SingleTask => (built ??= build(task));
    const traced = this.tasks.of(parts, () => new TracedTask(theTask()));
    const training = () => build(trainingDataset(configured)).batchSpecs();
    const evaluated = datasets.filter((dataset) => !dataset.isTraining || !evalSkipTrain);
    const inputs = [...datasets, ...decodeDatasets].map((dataset) =>
      this.inputs.of([dataset], () => rowsDigest(dataset)),
    );
    return {
      'training step': await told(() => traced.training(training())),
      'optimizer update': await told(() => traced.update()),
      evaluation: await told(() => {
        const steps = evaluated.map((dataset) => traced.evaluation(build(dataset).batchSpecs()).hash);
        return { hash: digest(steps) };
      }),
      'initial values': await this.initials.of([...parts, randomSeed], () =>
        told(() => initialDigest(theTask())),
      ),
      input: inOne(await Promise.all(inputs)),
    };
  }
}

/** What could be read of several datasets. */
function inOne(digests: readonly PartDigest[]): PartDigest {
  const missing = digests.find(({ notCompared }) => notCompared !== undefined);
  return { ...missing, hash: digest(digests.map(({ hash }) => hash ?? null)) };
}
