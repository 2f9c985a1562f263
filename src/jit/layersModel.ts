/** @file Models of tfjs-layers whose methods run compiled. */
import { type HostTensor, type Tensor, tf } from '../compiler/index.js';
import {
  type Batch,
  batchesOf,
  disposeMade,
  hostsOf,
  joined,
  listOf,
  range,
  rowsOf,
  single,
  testAll,
} from './batches.js';
import type { ModelOptions } from './jit.js';
import { type BatchDataset, evaluateDataset, fitDataset, IDLE } from './layersDatasets.js';
import { coreOf, ModelPrograms, type TrainableModel, withMethods } from './layersPrograms.js';

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
  /** As `model.fitDataset`, of a dataset of tf.data, with all its arguments. Gives tfjs's History. */
  fitDataset(dataset: any, args: any): Promise<any>;
  /** As `model.evaluateDataset`. */
  evaluateDataset(dataset: any, args?: { batches?: number }): Promise<Tensor | Tensor[]>;
  /** As `model.trainOnBatch`. */
  trainOnBatch(x: any, y: any): Promise<number | number[]>;
  /** Number of programs that are kept. */
  readonly numPrograms: number;
  /** Frees all programs; the model stays. */
  dispose(): Promise<void>;
}

/** Runs a model of tfjs-layers compiled. */
export function compileLayersModel(model: object, options: ModelOptions): CompiledModel {
  const given = model as TrainableModel;
  coreOf(given);
  const programs = new Map<TrainableModel, ModelPrograms>();
  const programsOf = (core: TrainableModel): ModelPrograms => {
    let found = programs.get(core);
    if (found === undefined) programs.set(core, (found = new ModelPrograms(core, options)));
    return found;
  };

  /** Runs tfjs's loop over meaningless rows: the compiled step runs before the loop reads the losses of a batch. */
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

  const evaluate = async (
    core: TrainableModel,
    x: unknown,
    y: unknown,
    args?: { batchSize?: number },
  ): Promise<Tensor | Tensor[]> => {
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
    evaluate: (x, y, args) => evaluate(coreOf(given), x, y, args),
    fit: (x, y, args) => {
      const core = coreOf(given);
      const { fitLoop: original } = core;
      return withMethods(core, { fitLoop: (...loop) => fitLoop(core, original, loop) }, () =>
        core.fit(x, y, args),
      );
    },
    fitDataset: async (dataset: BatchDataset, args) => {
      const core = coreOf(given);
      return fitDataset(
        core,
        programsOf(core),
        (x, y, options) => evaluate(core, x, y, options),
        dataset,
        args,
      );
    },
    evaluateDataset: async (dataset, args) => {
      const core = coreOf(given);
      return evaluateDataset(core, programsOf(core), dataset, args);
    },
    trainOnBatch: async (x, y) => {
      const core = coreOf(given);
      const [inputs, targets] = await core.standardizeUserData(x, y);
      const arrays = await hostsOf([...inputs, ...targets]);
      disposeMade([...inputs, ...targets], [x, y]);
      const losses = await (await programsOf(core).train())(arrays);
      return single(losses.map(({ data }) => data[0]!));
    },
    get numPrograms() {
      return [...programs.values()].reduce((sum, own) => sum + own.size, 0);
    },
    dispose: async () => {
      for (const own of programs.values()) await own.dispose();
      programs.clear();
    },
  };
}
