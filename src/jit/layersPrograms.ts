/** @file Programs of layers models: steps, tests and predictions of a model as tfjs-layers computes them. */
import { CompilerError, type HostTensor, type Tensor } from '../compiler/index.js';
import { type Batch, type Losses, listOf, single } from './batches.js';
import { type JitOptions, type Jitted, jit, jitPredictions, type ModelOptions } from './jit.js';
import { holdStates } from './statefulLayers.js';

/** Members of tfjs-layers' models in use here, some of them private. */
export interface TrainableModel {
  readonly name: string;
  readonly inputs: readonly unknown[];
  readonly outputs: readonly unknown[];
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly model?: TrainableModel;
  getClassName(): string;
  readonly optimizer?: unknown;
  readonly collectedTrainableWeights?: readonly unknown[];
  lossFunctions?: unknown;
  metricsTensors?: unknown;
  testFunction?: (data: readonly unknown[]) => Tensor[];
  build(shape?: unknown): void;
  fit(x: any, y: any, args?: any): Promise<any>;
  evaluate(x: any, y: any, args?: any): any;
  predict(x: any, args?: any): any;
  fitDataset(dataset: any, args: any): Promise<any>;
  evaluateDataset(dataset: any, args?: any): Promise<any>;
  standardizeUserData(
    ...args: any[]
  ): Promise<readonly [Tensor[], Tensor[], readonly (Tensor | null)[] | null]>;
  makeTrainFunction(): (data: readonly unknown[]) => Tensor[];
  makeTestFunction(): void;
  fitLoop(...args: any[]): Promise<any>;
  testLoop(...args: any[]): unknown;
  predictLoop(...args: any[]): unknown;
}

/** Calls `f` with these methods in place of the model's own. */
export async function withMethods<T>(
  model: TrainableModel,
  methods: Partial<TrainableModel>,
  f: () => T | Promise<T>,
): Promise<T> {
  const names = Object.keys(methods) as (keyof TrainableModel)[];
  const own = new Map(names.map((name) => [name, Object.getOwnPropertyDescriptor(model, name)]));
  Object.assign(model, methods);
  try {
    return await f();
  } finally {
    for (const [name, descriptor] of own) {
      if (descriptor === undefined) delete (model as unknown as Record<string, unknown>)[name];
      else Object.defineProperty(model, name, descriptor);
    }
  }
}

/** The programs of a model as it is compiled (`model.compile`) now. */
export class ModelPrograms {
  private readonly made = new Map<
    string,
    { readonly state: readonly unknown[]; readonly call: Jitted<any, any> }
  >();

  constructor(
    private readonly model: TrainableModel,
    private readonly options: ModelOptions,
  ) {
    holdStates(model);
  }

  /** Number of programs that are kept. */
  get size(): number {
    return [...this.made.values()].reduce((sum, { call }) => sum + call.numPrograms, 0);
  }

  private async program(
    name: string,
    state: readonly unknown[],
    make: (options: JitOptions) => Jitted<any, any>,
  ): Promise<(batch: Batch) => Promise<any>> {
    let entry = this.made.get(name);
    if (entry === undefined || state.some((part, i) => part !== entry!.state[i])) {
      await entry?.call.dispose();
      const { bucket, ...options } = this.options;
      entry = { state, call: make({ ...options, name }) };
      this.made.set(name, entry);
    }
    return entry.call as never;
  }

  /** The model's class: tfjs's loops run while methods of the model are replaced. */
  private get own(): TrainableModel {
    return Object.getPrototypeOf(this.model) as TrainableModel;
  }

  private state(): unknown[] {
    const { optimizer, lossFunctions, metricsTensors, collectedTrainableWeights = [] } = this.model;
    return [
      optimizer,
      lossFunctions,
      metricsTensors,
      collectedTrainableWeights.length,
      ...collectedTrainableWeights,
    ];
  }

  train(): Promise<(batch: Batch) => Losses> {
    const step = (arrays: Tensor[]): Tensor[] => this.own.makeTrainFunction.call(this.model)(arrays);
    return this.program('fit', this.state(), (options) => jit(step, options));
  }

  test(): Promise<(batch: Batch) => Losses> {
    const test = (arrays: Tensor[]): Tensor[] => {
      // The model keeps the function that it has.
      const view = Object.create(this.model) as TrainableModel;
      this.own.makeTestFunction.call(view);
      return view.testFunction!(arrays);
    };
    return this.program('evaluate', this.state(), (options) => jit(test, options));
  }

  predict(): Promise<(batch: Batch) => Promise<readonly HostTensor[]>> {
    const predict = (arrays: Tensor[]): readonly unknown[] =>
      listOf(this.model.predictLoop(single(arrays), arrays[0]!.shape[0]));
    const { bucket } = this.options;
    return this.program('predict', [], (options) =>
      jitPredictions(predict, { ...options, ...(bucket && { bucket }) }),
    );
  }

  async dispose(): Promise<void> {
    for (const { call } of this.made.values()) await call.dispose();
    this.made.clear();
  }
}

/** The model that runs: a tf.Sequential holds one, which it makes when it is first used. */
export function coreOf(model: TrainableModel): TrainableModel {
  if (typeof model?.getClassName !== 'function' || typeof model.predict !== 'function')
    throw new CompilerError('compileModel: expected a tf.Sequential, tf.LayersModel or tf.GraphModel.');
  if (model.getClassName() !== 'Sequential') return model;
  if (!model.model) model.build();
  return model.model!;
}
