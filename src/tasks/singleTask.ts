/** @file SingleTask: one model with its training and decoding settings (paxml's tasks_lib.SingleTask). */
import { z } from 'zod';
import type { FillOptions, FlatArray, FlatLayout } from '../compiler/index.js';
import {
  build,
  type ConcreteClass,
  type Config,
  ConfigError,
  Configurable,
  type ConfigValues,
  didYouMean,
  instance,
  isSet,
  type Report,
  sub,
} from '../hparams/index.js';
import {
  drawVariables,
  fillVariables,
  listVariables,
  type Variable,
  WeightCollection,
} from '../layers/index.js';
import { type LearnableVariable, NON_TRAINABLE, type SlotLayouts } from '../learners/index.js';
import { BaseModel, LanguageModel } from '../models/index.js';
import { Decode } from './decode.js';
import { BaseEarlyStoppingFn } from './earlyStopping.js';
import { BaseEvalMetric } from './evaluation.js';
import { Infer, InferWriter } from './inference.js';
import { BaseLossAggregator } from './lossAggregators.js';
import { Mesh } from './mesh.js';
import { Train } from './train.js';
import { VariationalNoise } from './variationalNoise.js';

/** Evaluations (Pax's SingleTask.Evaluate). */
export class Evaluate extends Configurable.with({
  randomSeed: z
    .int()
    .nonnegative()
    .default(1234)
    .describe('Seed of what a model draws in evaluations, such as masks.'),
  exampleOutputs: z
    .array(z.string().min(1))
    .default([])
    .describe(
      "The model's tensors of each example that evaluations write to eval_out, such as scores; none: no files.",
    ),
}) {}

/** A model with the settings of its training and decoding. */
export class SingleTask extends Configurable.with({
  name: z.string().min(1).default('task').describe('A name for messages.'),
  model: sub(BaseModel, () => LanguageModel.config()).describe('The model.'),
  train: instance(Train),
  decode: instance(Decode),
  evaluate: instance(Evaluate),
  infer: instance(Infer),
  inferWriter: instance(InferWriter, null)
    .nullable()
    .default(null)
    .describe("The outputs that --mode=infer writes; null: those of InferWriter's defaults."),
  lossAggregator: instance(BaseLossAggregator, null)
    .nullable()
    .default(null)
    .describe("The metrics that are minimised together; null: the learner's lossName alone."),
  earlyStoppingFn: instance(BaseEarlyStoppingFn, null)
    .nullable()
    .default(null)
    .describe('Decides at evaluations, decodes and summaries whether training ends; null: it goes on.'),
  summaryVerbosity: z
    .int()
    .nonnegative()
    .default(3)
    .describe(
      'Summaries of layers up to this verbosity are computed; their own is 2 unless they say otherwise.',
    ),
  evalMetrics: z
    .record(z.string().min(1), instance(BaseEvalMetric, null))
    .default({})
    .describe("Metrics of whole evaluations by name, besides the model's, which are means."),
  vn: instance(VariationalNoise).describe('Noise on weights in training.'),
  mesh: instance(Mesh)
    .nullable()
    .default(null)
    .describe('The devices that the task is meant for; null: each host is one, with rows of its own.'),
}) {
  /** A config that keeps the type of the given model. */
  declare static config: <C extends ConcreteClass, M extends BaseModel = BaseModel>(
    this: C,
    values?: Partial<ConfigValues<InstanceType<C>>> & { model?: Config<M> },
  ) => Config<InstanceType<C>> & { model: Config<M> };

  static override validate({ lossAggregator, train }: Config<SingleTask>, report: Report): void {
    if (lossAggregator === null || !isSet(train.learner, 'lossName')) return;
    report(
      'it says which metrics are minimised, and so does train.learner.lossName: leave one of them out',
      'lossAggregator',
    );
  }

  #model!: BaseModel;
  #variables!: Variable[];

  override setup(): void {
    this.#model = build(this.hp.model);
    this.#variables = listVariables(this.#model);
    this.noisyPaths();
  }

  /** The model, built. */
  get model(): BaseModel {
    return this.#model;
  }

  /** The model's variables in order of creation. */
  get variables(): readonly Variable[] {
    return this.#variables;
  }

  /** The task that trains on the batches of an input, of several that are interleaved. */
  taskOf(_part: string | undefined): SingleTask {
    return this;
  }

  /** Names of the inputs that tasks beside this one train on. */
  get auxiliaryNames(): readonly string[] {
    return [];
  }

  /** Place of each variable in the flat buffers, grouped as the learner of `taskOf(part)` updates them. @param variables parts of them */
  layout(_part?: string, variables: readonly LearnableVariable[] = this.#variables): FlatLayout {
    return this.hp.train.hp.learner.layout(variables);
  }

  /** Places of all slots of a layout's variables; those of tasks beside this one have their input's name in front: `translation.m`. */
  slotLayouts(layout = this.layout()): SlotLayouts {
    return this.hp.train.hp.learner.slotLayouts(layout);
  }

  /** Paths of the variables that take gradients. */
  trainablePaths(): string[] {
    const { learner } = this.hp.train.hp;
    return this.#variables.filter((v) => learner.isTrainable(v)).map((v) => v.path);
  }

  /** Paths of the tables whose gradients may be rows and indices. */
  tablePaths(): string[] {
    const { learner } = this.hp.train.hp;
    return this.#variables.filter((v) => learner.takesRows(v)).map((v) => v.path);
  }

  /** Paths of the variables that a forward pass may replace. */
  nonTrainablePaths(): string[] {
    const { learner } = this.hp.train.hp;
    return this.#variables.filter((v) => learner.groupOf(v) === NON_TRAINABLE).map((v) => v.path);
  }

  /** Paths of the variables whose values get noise in training. @throws ConfigError where the noise's pattern names none */
  noisyPaths(): string[] {
    const { train, vn } = this.hp;
    return vn.pathsOf(this.#variables.filter((v) => train.hp.learner.groupOf(v) !== NON_TRAINABLE));
  }

  /** Paths of those to which each sub-batch of a step adds. */
  summedPaths(): string[] {
    const isSum = (v: Variable) => v.collections.includes(WeightCollection.REQUIRES_SUM_SYNC);
    return this.#variables.filter(isSum).map((v) => v.path);
  }

  /**
   * Writes the initial values of all variables into `views` (by path); they depend on the seed and each variable's
   * path alone.
   *
   * @param options which engine draws many of them, off the main thread where it can.
   */
  initialize(views: Readonly<Record<string, FlatArray>>, options?: FillOptions): Promise<void> {
    return fillVariables(this.#model, this.hp.train.hp.randomSeed, views, options);
  }

  /** The same values, one variable after the other, of each repetition by itself. @param take as of `drawVariables` */
  draw(take: Parameters<typeof drawVariables>[2], options?: FillOptions): Promise<void> {
    return drawVariables(this.#model, this.hp.train.hp.randomSeed, take, options);
  }

  /** The metric that is minimised, without an aggregator. @throws ConfigError where the model does not have it */
  lossOf<T>(metrics: Readonly<Record<string, T>>): T {
    const { lossName } = this.hp.train.hp.learner.hp;
    return this.#metric(
      metrics,
      lossName,
      `The learner's lossName is '${lossName}'`,
      'train.learner.lossName',
    );
  }

  /** The metrics that the aggregator adds up, with their factors. @throws ConfigError where the model lacks one */
  lossesOf<T>(metrics: Readonly<Record<string, T>>) {
    return Object.entries(this.#factors).map(([name, factor]) => ({
      ...{ name, factor },
      metric: this.#metric(metrics, name, `task.lossAggregator minimises '${name}'`, 'lossAggregator'),
    }));
  }

  /** Whether the loss is a sum of several metrics. */
  get isSumOfLosses(): boolean {
    return Object.keys(this.#factors).length > 1;
  }

  /** The metrics that are minimised, in words. */
  get lossLabel(): string {
    const names = Object.keys(this.#factors).map((name) => `'${name}'`);
    return `loss${names.length > 1 ? 'es' : ''} ${new Intl.ListFormat('en').format(names)}`;
  }

  /** Factors of the metrics whose sum is minimised, by name. */
  get #factors(): Readonly<Record<string, number>> {
    const { lossAggregator, train } = this.hp;
    return lossAggregator?.factors() ?? { [train.hp.learner.hp.lossName]: 1 };
  }

  #metric<T>(metrics: Readonly<Record<string, T>>, name: string, who: string, path: string): T {
    const found = metrics[name];
    if (found !== undefined) return found;
    const names = Object.keys(metrics);
    throw new ConfigError(
      `${who}, and ${this.#model.constructor.name} has no such metric.` +
        `${didYouMean(name, names)} It has: ${names.join(', ')}.`,
      { path: `task.${path}` },
    );
  }
}
