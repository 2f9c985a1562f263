/** @file Predictions for examples of the user's own, preprocessed as those of an evaluation, with the names of their classes. */
import { type HostTensor, newHostArray, sizeOf } from '../compiler/index.js';
import { bytesOf } from '../decoding/index.js';
import {
  arraysOf,
  type BaseInput,
  type ExampleOptions,
  InputError,
  nestedRow,
  type RowValues,
} from '../inputs/index.js';
import { withinMemory } from './batchMemory.js';
import type { ClassOutput } from './classOutput.js';
import type { Specs } from './predictions.js';
import type { Predictions, Predictor } from './predictor.js';
import { RequestError } from './requestError.js';

/** An example as its input reads it: a record, a text, the path of a file, or its bytes. */
export type RawExample = string | Uint8Array | Readonly<Record<string, unknown>>;

/** The prediction for one example. */
export interface ExamplePrediction {
  /** Of a classifier: the likeliest class, by its name, or by its id where classes have none. */
  readonly class?: string | number;
  /** Of a classifier: the probability of each class by its name or id, the softmax of the logits. */
  readonly probabilities?: Readonly<Record<string, number>>;
  /** Results of the model's `computePredictions` for it, by name. */
  readonly outputs: Readonly<Record<string, RowValues>>;
}

/** A trained model, and an input that makes its batches. */
export interface ExamplePredictorOptions {
  readonly input: BaseInput;
  readonly predictor: Pick<Predictor, 'predict'>;
  /** Arrays of a batch that the predictions are computed from, by path. */
  readonly paths: readonly string[];
  /** Arrays of a batch by path. */
  readonly specs: Specs;
  readonly classOutput: ClassOutput | undefined;
  /** Names of the predictions. */
  readonly outputs: readonly string[];
  /** Examples that are predicted together. */
  readonly rows: number;
}

/** How predictions for examples are made. */
export interface PredictOptions {
  /** Whether a text may be the path of a file, as by default. */
  readonly readsFiles?: boolean | undefined;
  /** Ends the call with its reason, between two batches. */
  readonly signal?: AbortSignal | undefined;
}

/** Computes predictions for examples, those of a batch at a time. */
export class ExamplePredictor {
  constructor(private readonly options: ExamplePredictorOptions) {}

  /**
   * The predictions for examples, in their order. One example alone is a batch of one row; others fill batches of `rows`,
   * with padding at the end, so that no other number of rows is compiled.
   *
   * @throws RequestError for no example, and for one that does not fit, with its number.
   */
  async predict(
    examples: readonly RawExample[],
    { readsFiles = true, signal }: PredictOptions = {},
  ): Promise<ExamplePrediction[]> {
    if (examples.length === 0) throw new RequestError('predict: expected one example or more, got none.');
    const { rows } = this.options;
    const found: ExamplePrediction[] = [];
    for (let first = 0; first < examples.length; first += rows) {
      signal?.throwIfAborted();
      found.push(...(await this.#predict(examples.slice(first, first + rows), { first, readsFiles })));
    }
    return found;
  }

  /** Compiles the prediction program. */
  async prepare(): Promise<void> {
    const { predictor, paths, specs, rows } = this.options;
    const one = paths.map((path) => ({ shape: [1, ...specs[path]!.shape.slice(1)] }));
    const what = 'the arrays of as many examples';
    await withinMemory({ batchSize: rows, what, bytes: rows * bytesOf(one) }, async () => {
      for (const size of new Set([1, rows])) {
        const arrays = paths.map((path) => {
          const { shape, dtype } = specs[path]!;
          const all = [size, ...shape.slice(1)];
          return [path, { shape: all, dtype, data: newHostArray(dtype, sizeOf(all)) }] as const;
        });
        await predictor.predict(Object.fromEntries(arrays));
      }
    });
  }

  /** The prediction that is logits of classes; undefined where the model is no classifier. */
  get classOutput(): ClassOutput | undefined {
    return this.options.classOutput;
  }

  /** Whether there are vectors by which the meanings of examples compare. */
  get embeds(): boolean {
    return this.options.outputs.includes('embeddings');
  }

  /** Ids of the examples in all arrays that have paddings. @throws RequestError for one that does not fit */
  async countTokens(examples: readonly RawExample[]): Promise<number> {
    const arrays = await this.#arraysOf(examples, { first: 0, readsFiles: false });
    const paddings = Object.entries(arrays).filter(([path]) => /(^|\.)paddings$/.test(path));
    return paddings.reduce((sum, [, { data }]) => sum + Array.from(data).filter((x) => x === 0).length, 0);
  }

  async #predict(examples: readonly RawExample[], how: ExampleOptions): Promise<ExamplePrediction[]> {
    const { predictor, rows } = this.options;
    const arrays = await this.#arraysOf(examples, how);
    const size = examples.length === 1 ? 1 : rows;
    const padded = Object.fromEntries(
      Object.entries(arrays).map(([path, array]) => [path, withRows(array, size)]),
    );
    const found = await predictor.predict(padded);
    return examples.map((_, row) => this.#rowOf(found, row, size));
  }

  async #arraysOf(examples: readonly RawExample[], how: ExampleOptions): Promise<Record<string, HostTensor>> {
    const { input, paths } = this.options;
    try {
      const batch = await input.exampleBatch(examples, paths, how);
      return Object.fromEntries([...arraysOf(batch)].filter(([path]) => paths.includes(path)));
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      throw new RequestError(`predict: ${error.message}`, { cause: error });
    }
  }

  #rowOf(found: Predictions, row: number, rows: number): ExamplePrediction {
    const { classOutput } = this.options;
    const ofRows = Object.entries(found).filter(([, { shape }]) => shape[0] === rows);
    const outputs = Object.fromEntries(ofRows.map(([name, tensor]) => [name, nestedRow(tensor, row)]));
    const logits = classOutput && (outputs[classOutput.output] as readonly number[] | undefined);
    return logits === undefined ? { outputs } : { ...classified(logits, classOutput!.names), outputs };
  }
}

/** The array with rows of zeros behind its own. */
function withRows(array: HostTensor, rows: number): HostTensor {
  const { shape, data } = array;
  if (shape[0] === rows) return array;
  const padded = newHostArray(array.dtype, rows * sizeOf(shape.slice(1)));
  padded.set(data as never);
  return { ...array, shape: [rows, ...shape.slice(1)], data: padded } as HostTensor;
}

/** The likeliest class, the first of equal ones, and the softmax of logits. */
function classified(
  logits: readonly number[],
  names: readonly string[] | null,
): Required<Pick<ExamplePrediction, 'class' | 'probabilities'>> {
  const top = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  const named = powers.map((power, id) => [names?.[id] ?? String(id), power / sum] as const);
  const best = Math.max(0, logits.indexOf(top));
  return { class: names?.[best] ?? best, probabilities: Object.fromEntries(named) };
}
