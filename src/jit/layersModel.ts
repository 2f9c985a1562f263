/** @file Models of tfjs-layers whose methods run compiled. */
import { CompilerError, type HostArray, type HostTensor, type Tensor, tf } from '../compiler/index.js';
import { type JitOptions, type Jitted, jit } from './jit.js';

/** Arrays, one for each input, target and sample weight; null where a target has no weights. */
type Batch = readonly (HostTensor | null | undefined)[];
type Losses = Promise<readonly HostTensor[]>;

/** What is used of tfjs-layers' models, which hide part of it. */
interface TrainableModel {
  readonly inputs: readonly unknown[];
  readonly outputs: readonly unknown[];
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
  standardizeUserData(x: any, y: any): Promise<readonly [Tensor[], Tensor[], unknown]>;
  makeTrainFunction(): (data: readonly unknown[]) => Tensor[];
  makeTestFunction(): void;
  fitLoop(...args: any[]): Promise<any>;
  testLoop(...args: any[]): unknown;
  predictLoop(...args: any[]): unknown;
}

/** A model of tfjs-layers whose methods run compiled. */
export interface CompiledModel {
  /** As `model.predict`. */
  predict(x: Tensor | Tensor[], args?: { batchSize?: number }): Promise<Tensor | Tensor[]>;
  /** As `model.evaluate`. */
  evaluate(
    x: Tensor | Tensor[],
    y: Tensor | Tensor[],
    args?: { batchSize?: number },
  ): Promise<Tensor | Tensor[]>;
  /** As `model.fit`, with all its arguments. Gives tfjs's History. */
  fit(x: any, y: any, args?: any): Promise<any>;
  /** As `model.trainOnBatch`. */
  trainOnBatch(x: any, y: any): Promise<number | number[]>;
  /** Frees all programs; the model stays. */
  dispose(): Promise<void>;
}

/** Calls `f` with these methods in place of the model's own. */
async function withMethods<T>(
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

const hostOf = async (tensor: Tensor): Promise<HostTensor> => ({
  shape: tensor.shape,
  dtype: tensor.dtype as HostTensor['dtype'],
  data: (await tensor.data()) as HostArray,
});

const hostsOf = (tensors: readonly (Tensor | null | undefined)[]): Promise<Batch> =>
  Promise.all(tensors.map((tensor) => (tensor ? hostOf(tensor) : tensor)) as Promise<HostTensor>[]);

/** The rows of arrays at `indices`. */
function rowsOf(arrays: Batch, indices: ArrayLike<number>): Batch {
  return arrays.map((array) => {
    if (!array) return array;
    const size = array.data.length / array.shape[0]!;
    const data = array.data.slice(0, indices.length * size);
    for (let i = 0; i < indices.length; i++)
      data.set(array.data.subarray(indices[i]! * size, (indices[i]! + 1) * size), i * size);
    return { ...array, shape: [indices.length, ...array.shape.slice(1)], data };
  });
}

const range = (begin: number, end: number): number[] =>
  Array.from({ length: end - begin }, (_, i) => begin + i);

/** Begin and end of each batch. */
const batchesOf = (count: number, size: number): [number, number][] =>
  Array.from({ length: Math.ceil(count / size) }, (_, i) => [i * size, Math.min(count, (i + 1) * size)]);

const single = <T>(items: readonly T[]): T | T[] => (items.length === 1 ? items[0]! : [...items]);

const listOf = <T>(items: T | readonly T[]): readonly T[] => (Array.isArray(items) ? items : [items as T]);

/** Losses and metrics of all batches: means over the rows. */
async function testAll(test: (batch: Batch) => Losses, arrays: Batch, batchSize: number): Promise<number[]> {
  const count = arrays[0]!.shape[0]!;
  const sums: number[] = [];
  for (const [begin, end] of batchesOf(count, batchSize)) {
    const losses = await test(rowsOf(arrays, range(begin, end)));
    losses.forEach(({ data }, i) => {
      sums[i] = (sums[i] ?? 0) + (end - begin) * data[0]!;
    });
  }
  return sums.map((sum) => sum / count);
}

/** The programs of a model as it is compiled (`model.compile`) now. */
class ModelPrograms {
  private readonly made = new Map<
    string,
    { readonly state: readonly unknown[]; readonly call: Jitted<any, any> }
  >();

  constructor(
    private readonly model: TrainableModel,
    private readonly options: JitOptions,
  ) {}

  private async program(
    name: string,
    state: readonly unknown[],
    f: (arrays: any) => unknown,
  ): Promise<(batch: Batch) => Promise<any>> {
    let entry = this.made.get(name);
    if (entry === undefined || state.some((part, i) => part !== entry!.state[i])) {
      await entry?.call.dispose();
      entry = { state, call: jit(f as never, { ...this.options, name }) };
      this.made.set(name, entry);
    }
    return entry.call as never;
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
    return this.program('fit', this.state(), (arrays) => this.model.makeTrainFunction()(arrays));
  }

  test(): Promise<(batch: Batch) => Losses> {
    return this.program('evaluate', this.state(), (arrays) => {
      this.model.makeTestFunction();
      return this.model.testFunction!(arrays);
    });
  }

  predict(): Promise<(batch: Batch) => Promise<readonly HostTensor[]>> {
    return this.program('predict', [], (arrays: Tensor[]) =>
      listOf(this.model.predictLoop(single(arrays), arrays[0]!.shape[0])),
    );
  }

  async dispose(): Promise<void> {
    for (const { call } of this.made.values()) await call.dispose();
    this.made.clear();
  }
}

/** The model that runs: a tf.Sequential holds one, which it makes when it is first used. */
function coreOf(model: TrainableModel): TrainableModel {
  if (typeof model?.getClassName !== 'function' || typeof model.predict !== 'function')
    throw new CompilerError('compileModel: expected a tf.Sequential, tf.LayersModel or tf.GraphModel.');
  if (model.getClassName() !== 'Sequential') return model;
  if (!model.model) model.build();
  return model.model!;
}

/** Disposes of tensors that standardizing made: those that were not given. */
function disposeMade(tensors: readonly Tensor[], given: unknown): void {
  const own = tf.tensor_util.getTensorsInContainer(given as never);
  for (const tensor of tensors) if (!own.some(({ id }) => id === tensor.id)) tensor.dispose();
}

/** A callback of tfjs's loop that does nothing; the loop takes any object with its methods. */
const IDLE = Object.fromEntries(
  ['TrainBegin', 'TrainEnd', 'EpochBegin', 'EpochEnd', 'BatchBegin', 'BatchEnd'].map((name) => [
    `on${name}`,
    async () => {},
  ]),
);

/** Runs a model of tfjs-layers compiled. */
export function compileLayersModel(model: object, options: JitOptions): CompiledModel {
  const given = model as TrainableModel;
  coreOf(given);
  const programs = new Map<TrainableModel, ModelPrograms>();
  const programsOf = (core: TrainableModel): ModelPrograms => {
    let found = programs.get(core);
    if (found === undefined) programs.set(core, (found = new ModelPrograms(core, options)));
    return found;
  };

  /** Runs tfjs's loop over rows of no meaning: the compiled step runs before the loop asks for the losses of a batch. */
  const fitLoop = async (
    core: TrainableModel,
    original: TrainableModel['fitLoop'],
    args: any[],
  ): Promise<any> => {
    const [, ins, outLabels, givenSize, epochs, verbose, callbacks, valF, valIns, shuffle, ...rest] = args;
    const batchSize: number = givenSize ?? 32;
    const arrays = await hostsOf(ins);
    const valArrays = valF ? await hostsOf(valIns) : [];
    const train = await programsOf(core).train();
    const test = valF ? await programsOf(core).test() : undefined;
    const count = arrays[0]!.shape[0]!;
    const batches = batchesOf(count, batchSize);
    const order = range(0, count);
    let losses: readonly HostTensor[] = [];
    let valLosses: readonly number[] = [];
    const step = {
      ...IDLE,
      setParams: () => {},
      setModel: () => {},
      onEpochBegin: async () => {
        if (shuffle ?? true) tf.util.shuffle(order);
      },
      onBatchBegin: async (batch: number) => {
        const [begin, end] = batches[batch]!;
        losses = await train(rowsOf(arrays, order.slice(begin, end)));
        if (test !== undefined && batch === batches.length - 1)
          valLosses = await testAll(test, valArrays, batchSize);
      },
    };
    const rows = tf.zeros([count]);
    const lossesOf = (): Tensor[] => losses.map(({ data }) => tf.scalar(data[0]!));
    const isShuffled = shuffle === 'batch' ? shuffle : false;
    try {
      return await withMethods(core, { testLoop: () => valLosses.map((loss) => tf.scalar(loss)) }, () =>
        original.call(
          core,
          ...[lossesOf, [rows], outLabels, batchSize, epochs, verbose, [...callbacks, step]],
          ...[valF, valIns, isShuffled, ...rest],
        ),
      );
    } finally {
      rows.dispose();
    }
  };

  return {
    predict: async (x, args) => {
      const core = coreOf(given);
      let found: Promise<Batch> | undefined;
      let size = 0;
      const predictLoop = (ins: Tensor | Tensor[], batchSize: number): void => {
        size = batchSize;
        found = hostsOf(listOf(ins));
      };
      await withMethods(core, { predictLoop }, () => core.predict(x, args));
      const arrays = (await found)!;
      const predict = await programsOf(core).predict();
      const parts: Tensor[][] = core.outputs.map(() => []);
      for (const [begin, end] of batchesOf(arrays[0]!.shape[0]!, size)) {
        const outputs = await predict(rowsOf(arrays, range(begin, end)));
        outputs.forEach(({ data, shape, dtype }, i) => {
          parts[i]!.push(tf.tensor(data as Float32Array, [...shape], dtype));
        });
      }
      return single(parts.map((part) => (part.length === 1 ? part[0]! : joined(part))));
    },
    evaluate: async (x, y, args) => {
      const core = coreOf(given);
      let found: Promise<Batch> | undefined;
      let size = 0;
      const testLoop = (_: unknown, ins: Tensor[], batchSize: number): Tensor[] => {
        size = batchSize;
        found = hostsOf(ins);
        return [];
      };
      await withMethods(core, { testLoop }, () => core.evaluate(x, y, args));
      const losses = await testAll(await programsOf(core).test(), (await found)!, size);
      return single(losses.map((loss) => tf.scalar(loss)));
    },
    fit: (x, y, args) => {
      const core = coreOf(given);
      const { fitLoop: original } = core;
      return withMethods(core, { fitLoop: (...loop) => fitLoop(core, original, loop) }, () =>
        core.fit(x, y, args),
      );
    },
    trainOnBatch: async (x, y) => {
      const core = coreOf(given);
      const [inputs, targets] = await core.standardizeUserData(x, y);
      const arrays = await hostsOf([...inputs, ...targets]);
      disposeMade([...inputs, ...targets], [x, y]);
      const losses = await (await programsOf(core).train())(arrays);
      return single(losses.map(({ data }) => data[0]!));
    },
    dispose: async () => {
      for (const own of programs.values()) await own.dispose();
      programs.clear();
    },
  };
}

/** The rows of all parts, which are disposed of. */
function joined(parts: Tensor[]): Tensor {
  const whole = tf.concat(parts, 0);
  tf.dispose(parts);
  return whole;
}
