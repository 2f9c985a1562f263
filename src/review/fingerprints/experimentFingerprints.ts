/** @file Fingerprints of an experiment's computations and data, for comparison across versions. */

import { checkInputSettings, Shared } from '../../analysis/index.js';
import type { ConfiguredExperiment } from '../../cli/index.js';
import {
  type FlatLayout,
  fillNow,
  heldViews,
  isElementwise,
  prngKey,
  sizeOf,
  type TensorSpec,
} from '../../compiler/index.js';
import { build, type Config, classOf, withOrigin } from '../../hparams/index.js';
import type { BaseInput, BatchSpecs } from '../../inputs/index.js';
import { initialValues, type Variable } from '../../layers/index.js';
import { trainedTasks, trainingDataset } from '../../programs/index.js';
import {
  evalStep,
  MultiTask,
  type SingleTask,
  stepNumberSpec,
  trainStep,
  WeightedMeans,
} from '../../tasks/index.js';
import { checkText, decodingProgramsDigest, drawnDigest, promptSpecs } from './decodingFingerprint.js';
import {
  digest,
  fingerprintsOf,
  programOf,
  reasonOf,
  type Traced,
  type TracedStep,
  traceStep,
} from './digests.js';
import { hostMetricsDigest } from './evaluationFingerprint.js';
import type { Fingerprint, PartDigest, TrainingFingerprint } from './fingerprintedParts.js';
import { inputDigest, readingAhead } from './inputFingerprint.js';
import { hostUpdateDigest } from './updateFingerprint.js';

const KEY: TensorSpec = { shape: [2], dtype: 'int32' };

/** Models of at most this many parameters have all their initial values drawn. */
const MOST_DRAWN = 1 << 20;
/** Of larger ones, variables of more elements are drawn in a smaller shape, unless their distribution says all. */
const MOST_OF_VARIABLE = 1 << 12;
/** The smallest of its sizes. */
const SMALL_AXIS = 16;

function paramsOf(task: SingleTask): Record<string, TensorSpec> {
  return Object.fromEntries(
    task.variables.map(({ path, shape, dtype, storage }) => [
      path,
      { shape, dtype, ...(storage && { storage }) },
    ]),
  );
}

/** The fingerprints of the programs of several tasks that are trained in turn; of one, its own. */
function together(all: readonly Traced[]): Traced {
  if (all.length === 1) return all[0]!;
  return {
    hash: digest(all.map(({ hash }) => hash)),
    operations: digest(all.map(({ operations }) => operations)),
    places: Object.assign({}, ...all.map(({ places }) => places)),
  };
}

/** A task, traced once for batches of the same shapes. */
class TracedTask {
  private readonly steps = new Shared<Traced>();
  private readonly trained = new Shared<TracedStep>();
  private readonly params: Record<string, TensorSpec>;

  constructor(private readonly task: SingleTask) {
    this.params = paramsOf(task);
  }

  /** Loss, metrics, summaries and gradients of a training step of each task that the input trains. */
  training(input: BaseInput): Traced {
    return together(this.trainingSteps(input));
  }

  /** The training step of each of them. */
  trainingSteps(input: BaseInput): readonly TracedStep[] {
    return trainedTasks(this.task, input).map(({ part = '', task, batch }) =>
      this.trained.of([part, batch], () => {
        const params = task === this.task ? this.params : paramsOf(task);
        return traceStep(trainStep(task), { params, batch, prngKey: KEY, ...stepNumberSpec(task) });
      }),
    );
  }

  /** Metrics of an evaluation step, and those that the host computes of its outputs. */
  evaluation(batch: BatchSpecs): Traced {
    return this.once('evaluation', batch, () => {
      const program = programOf(evalStep(this.task), { params: this.params, batch, prngKey: KEY });
      const { hash, ...others } = fingerprintsOf(program);
      return { hash: digest(hash, hostMetricsDigest(this.task, program, batch)), ...others };
    });
  }

  /** The updates of all tasks' optimizers. */
  update(): Traced {
    const parts = [undefined, ...this.task.auxiliaryNames];
    const updates = parts.map((part) =>
      this.once(`update ${part ?? ''}`, {}, () => {
        const layout = this.task.layout(part);
        const { f, inputs } = this.task.taskOf(part).hp.train.hp.learner.update(layout);
        const program = programOf(f, inputs);
        const { hash, ...others } = fingerprintsOf(program);
        // In another order, only sums over several variables have other bits, those of norms that are told aside.
        const isOrdered = !isElementwise(program, (path) => path.startsWith('groups.'), 'isValid');
        return { hash: digest(isOrdered ? layout : membersOf(layout), hash), ...others };
      }),
    );
    return together(updates);
  }

  /** A digest of the programs that decode batches of these many prompts. */
  decoding(batchSize: number, prompt: Readonly<Record<string, TensorSpec>> | undefined): string {
    return decodingProgramsDigest(this.task, this.params, batchSize, prompt);
  }

  private once(name: string, batch: BatchSpecs, make: () => Traced): Traced {
    return this.steps.of([name, batch], make);
  }
}

/** The variables of a layout by their groups, in no order. */
const membersOf = ({ entries }: FlatLayout): unknown =>
  entries.map(({ offset: _, ...entry }) => JSON.stringify(entry)).sort();

/** Digests the evaluation's means over several batches. */
function meansOfBatches(): unknown {
  const means = new WeightedMeans();
  for (const [value, weight] of [
    [0.7, 3],
    [Number.NaN, 0],
    [-1.9, 0.5],
  ] as const)
    means.add({ metric: { value, weight }, padding: { value, weight: 0 } });
  return means.result();
}

/** Digest of the initial values of a task's parameters and slots. */
async function initialDigest(task: SingleTask): Promise<PartDigest> {
  const layout = task.layout();
  const slots = task.slotLayouts();
  const slotsOf = Object.entries(slots).map(([name, { entries, dtype }]) => [
    ...[name, dtype],
    entries.map(({ name, shape }) => JSON.stringify([name, shape])).sort(),
  ]);
  if (layout.size > MOST_DRAWN)
    return {
      hash: digest(slotsOf, [...rulesOfInitialValues(task)].map((each) => digest(each)).sort()),
      isSampled: true,
    };
  const values = new Float32Array(layout.size);
  const views = heldViews(layout, values);
  await task.initialize(views, { engine: 'eager' });
  const drawn = Object.entries(views).map(([path, view]) => [path, digest(view)].join());
  return { hash: digest(slotsOf, drawn.sort()) };
}

/** A shape that large sizes are smaller in, the larger ones still larger and equal ones still equal. */
function shrunk(shape: readonly number[]): number[] {
  const large = [...new Set(shape)].filter((size) => size > SMALL_AXIS).sort((a, b) => a - b);
  return shape.map((size) => (size > SMALL_AXIS ? SMALL_AXIS + large.indexOf(size) : size));
}

/** Distributions of initial values of large models, with a few draws of each. */
function* rulesOfInitialValues({ model, hp }: SingleTask): Generator<unknown> {
  const small = (variable: Variable): Variable =>
    sizeOf(variable.shape) <= MOST_OF_VARIABLE ? variable : { ...variable, shape: shrunk(variable.shape) };
  for (const { variable, key, initial } of initialValues(model, hp.train.hp.randomSeed, small)) {
    yield [variable.path, variable.shape, variable.storage ?? variable.dtype, [...key]];
    yield initial instanceof Float32Array ? initial : variable.init.draw(key, variable);
  }
  for (const kind of ['normal', 'uniform', 'constant'] as const) {
    const out = new Float32Array(64);
    fillNow({ kind, scale: 1, key: prngKey(0), out });
    yield out;
  }
}

async function digestOf(make: () => PartDigest | Promise<PartDigest>): Promise<PartDigest> {
  try {
    return await make();
  } catch (error) {
    return { notCompared: reasonOf(error), failed: ['all'] };
  }
}

/**
 * All of a task that its steps are traced from, a subclass's own fields included; `train` and `decode` are separate.
 */
function partsOf(task: ConfiguredExperiment['task']): readonly unknown[] {
  const { name: _, train, decode: __, ...own } = task;
  return [classOf(task), own, train.learner, train.numSubBatches];
}

/** Who wrote the configs of layers is not asked, and stacks are dear. */
const buildTask = (task: ConfiguredExperiment['task']): SingleTask =>
  withOrigin('luthier diff', () => build(task));

/** The tasks that a task trains with it. */
function auxiliaryTasks(task: ConfiguredExperiment['task']): Config<SingleTask>[] {
  const cls = classOf(task);
  const isMulti = cls === MultiTask || cls.prototype instanceof MultiTask;
  return isMulti ? Object.values((task as Config<MultiTask>).auxiliaryTasks) : [];
}

/** Fingerprints of experiments, which share common parts of their configs. */
export class Fingerprints {
  private readonly tasks = new Shared<TracedTask>();
  private readonly updates = new Shared<string>();
  private readonly initials = new Shared<Promise<PartDigest>>();
  private readonly inputs = new Shared<Promise<PartDigest>>();
  private readonly decodings = new Shared<string>();
  private readonly draws = new Shared<Promise<string>>();

  /** Fingerprints of what a run goes on with, the same bits for the same ones. @throws as `of` */
  async training(configured: ConfiguredExperiment): Promise<TrainingFingerprint> {
    const { task } = configured;
    const dataset = trainingDataset(configured);
    const traced = this.traced(task);
    const step = (of: (steps: readonly TracedStep[]) => unknown) =>
      digestOf(() => ({ hash: digest(of(traced.trainingSteps(build(dataset)))) }));
    const { randomSeed } = task.train;
    const { hash: _, given, ...rest } = await this.inputs.of([dataset], () => inputDigest(dataset));
    return {
      'loss or gradients': await step((steps) => steps.map(({ trained }) => trained)),
      'metrics or summaries': await step((steps) => steps.map(({ hash }) => hash)),
      'optimizer update': await digestOf(() => this.update(task, traced)),
      'rows of the data': { ...rest, ...(given !== undefined && { hash: given }) },
      'random draws': await step((steps) => (steps.some(({ drawsKeys }) => drawsKeys) ? randomSeed : 'none')),
    };
  }

  private traced(task: ConfiguredExperiment['task'], built = () => buildTask(task)): TracedTask {
    return this.tasks.of(partsOf(task), () => new TracedTask(built()));
  }

  private update(task: ConfiguredExperiment['task'], traced: TracedTask): PartDigest {
    const learners = [task.train.learner, ...auxiliaryTasks(task).map((each) => each.train.learner)];
    const { hash, ...others } = traced.update();
    const hosts = learners.map((each) => this.updates.of([each], () => hostUpdateDigest(build(each))));
    return { hash: digest(hash, ...hosts), ...others, isSampled: true };
  }

  /** @throws ConfigError and LayerError where the task cannot be built. */
  async of(configured: ConfiguredExperiment): Promise<Fingerprint> {
    const { task, datasets, decodeDatasets } = configured;
    const { randomSeed, evalSkipTrain, programs } = task.train;
    const parts = partsOf(task);
    let built: SingleTask | undefined;
    const theTask = (): SingleTask => (built ??= buildTask(task));
    const traced = this.traced(task, theTask);
    const agreeing = (input: BaseInput): BaseInput => {
      checkInputSettings(theTask(), input);
      return input;
    };
    const training = () => agreeing(build(trainingDataset(configured)));
    const evaluated = datasets.filter((dataset) => !dataset.isTraining || !evalSkipTrain);
    const named = (['datasets', 'decodeDatasets'] as const).flatMap((root) =>
      configured[root].map((dataset, i) => ({
        dataset,
        name: `${root}[${i}]${dataset.name == null ? '' : ` '${dataset.name}'`}`,
      })),
    );
    const inputs = named.map(async ({ dataset, name }) => ({
      name,
      digest: await this.inputs.of([dataset], () => inputDigest(dataset)),
    }));
    return {
      'training step': await digestOf(() => traced.training(training())),
      'optimizer update': await digestOf(() => this.update(task, traced)),
      evaluation: await digestOf(() => {
        const steps = evaluated.map((dataset) =>
          traced.evaluation(agreeing(build(dataset)).paddedBatchSpecs()),
        );
        const hash = digest(
          steps.map((step) => step.hash),
          meansOfBatches(),
        );
        return { hash, places: Object.assign({}, ...steps.map(({ places }) => places)), isSampled: true };
      }),
      'initial values': await this.initials.of([...parts, randomSeed], () =>
        digestOf(() => initialDigest(theTask())),
      ),
      input: inOne(await Promise.all(inputs)),
      'reading ahead': await digestOf(() => readingAhead([...datasets, ...decodeDatasets])),
      decoding: await digestOf(async () => {
        if (decodeDatasets.length === 0) return { hash: 'none' };
        const { decode } = task;
        const traces = decodeDatasets.map((dataset) => {
          const { batchSize } = dataset;
          const input = build(dataset);
          checkText(theTask(), input);
          const prompt = promptSpecs(theTask(), () => input.paddedBatchSpecs());
          const settings = [...parts, decode.decoder, batchSize, prompt ?? []];
          return this.decodings.of(settings, () => traced.decoding(batchSize, prompt));
        });
        const drawn = await this.draws.of([decode], () => drawnDigest(theTask().hp.decode));
        return { hash: digest(traces, drawn), isSampled: true };
      }),
      programs: await digestOf(() => {
        const { evalPrograms, decodePrograms, executor, inputSpecsProvider } = configured;
        const others = [...(evalPrograms ?? []), ...(decodePrograms ?? []), executor, inputSpecsProvider];
        const all = [...programs, ...others].filter((config) => config != null);
        for (const config of all) build(config as unknown as Config<BaseInput>);
        return all.length === 0 ? { hash: 'none', isSampled: true } : { notCompared: 'only jobs run them' };
      }),
    };
  }
}

/** Digest of the readable ones of several datasets, and the names of the others. */
function inOne(inputs: readonly { readonly name: string; readonly digest: PartDigest }[]): PartDigest {
  const missing = inputs.filter(({ digest: { notCompared } }) => notCompared !== undefined);
  const rows = inputs.flatMap(({ name, digest }) =>
    Object.entries(digest.rows ?? {}).map(([row, value]) => [`${name} ${row}`, value] as const),
  );
  return {
    hash: digest(inputs.map(({ digest: { hash } }) => hash ?? null)),
    rows: Object.fromEntries(rows),
    isSampled: true,
    ...(missing.length > 0 && {
      notCompared: missing[0]!.digest.notCompared!,
      failed: missing.map(({ name }) => name),
    }),
  };
}
