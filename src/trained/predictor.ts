/** @file Predictions for batches from the host, compiled for each of their shapes. */
import {
  type CompileOptions,
  compile,
  type Executable,
  formatSpec,
  type HostArray,
  type HostTensor,
  IndexError,
  layoutSpecs,
  newHostArray,
  sizeOf,
} from '../compiler/index.js';
import { didYouMean } from '../hparams/index.js';
import { arraysOf, type Batch } from '../inputs/index.js';
import type { BaseModel } from '../models/index.js';
import type { FlatParams } from '../programs/index.js';
import { Turns } from '../system/index.js';
import { neededArrays, predictions, type Specs } from './predictions.js';
import { RequestError } from './requestError.js';

/** A model, and the specs of its batches. */
export interface PredictorOptions {
  readonly model: BaseModel;
  readonly params: FlatParams;
  /** Arrays of a training batch by path; undefined if its input does not declare them. Rows may be of any number. */
  readonly trained: Specs | undefined;
  readonly compileOptions: (name: string) => CompileOptions;
  /** Names of the predictions that are computed; default: all that a batch suffices for. */
  readonly outputs?: readonly string[] | undefined;
}

/** Predictions by name. */
export type Predictions = Readonly<Record<string, HostTensor>>;

/** A program for batches of one shape, with the memory that it reads. */
interface Compiled {
  readonly executable: Executable;
  readonly arrays: Readonly<Record<string, HostArray>>;
  run(): Promise<Predictions>;
}

const listed = (names: Iterable<string>): string => [...names].map((name) => `'${name}'`).join(', ');

/** Specs with another number of rows. */
export function withRows(specs: Specs, rows: number): Specs {
  return Object.fromEntries(
    Object.entries(specs).map(([path, { shape, dtype }]) => [
      path,
      { shape: [rows, ...shape.slice(1)], dtype },
    ]),
  );
}

/** Computes predictions. Calls take turns. */
export class Predictor {
  readonly #compiled = new Map<string, Promise<Compiled>>();
  readonly #turns = new Turns();

  constructor(private readonly options: PredictorOptions) {}

  /**
   * The predictions that a batch's arrays suffice for.
   *
   * @throws RequestError for arrays that training's batches lack, shapes that don't fit, or too few arrays.
   */
  async predict(batch: Batch): Promise<Predictions> {
    const given = new Map(arraysOf(batch));
    const specs = this.#checked(given);
    return this.#turns.take(() => this.#run(given, specs));
  }

  async dispose(): Promise<void> {
    await this.#turns.ended();
    for (const compiled of this.#compiled.values()) await (await compiled).executable.dispose();
    this.#compiled.clear();
  }

  async #run(given: ReadonlyMap<string, HostTensor>, specs: Specs): Promise<Predictions> {
    const key = Object.entries(specs)
      .map(([path, spec]) => `${path}:${formatSpec(spec)}`)
      .join(';');
    let compiling = this.#compiled.get(key);
    if (compiling === undefined) {
      compiling = this.#compile(specs);
      this.#compiled.set(key, compiling);
      // A failed compilation is tried again with the next batch.
      compiling.catch(() => this.#compiled.delete(key));
    }
    const { arrays, run } = await compiling;
    for (const [path, array] of Object.entries(arrays)) array.set(given.get(path)!.data);
    try {
      return await run();
    } catch (error) {
      throw error instanceof IndexError ? new RequestError(error.message, { cause: error }) : error;
    }
  }

  async #compile(specs: Specs): Promise<Compiled> {
    const { model, params, trained = {}, compileOptions, outputs } = this.options;
    const [{ shape } = { shape: [1] }] = Object.values(specs);
    const whole = { ...withRows(trained, shape[0]!), ...specs };
    const behind = neededArrays(model, layoutSpecs(params.layout), whole);
    const possible = [...behind].filter(([, paths]) => paths.every((path) => path in specs));
    if (possible.length === 0) {
      const needed = [...behind].map(([name, paths]) => `\n  ${name}: ${paths.join(', ')}`).join('');
      throw new RequestError(
        `predict: no prediction can be computed from ${listed(Object.keys(specs))} alone. ` +
          `Each needs arrays of the batch:${needed}`,
      );
    }
    const absent = Object.fromEntries(Object.entries(whole).filter(([path]) => !(path in specs)));
    const names = possible.map(([name]) => name).filter((name) => outputs?.includes(name) ?? true);
    const executable = await compile(
      predictions(model, absent, names),
      { params: layoutSpecs(params.layout), batch: specs },
      { ...compileOptions('predict'), frozen: ['params'] },
    );
    const arrays = Object.fromEntries(
      Object.entries(specs).map(([path, spec]) => [path, newHostArray(spec.dtype, sizeOf(spec.shape))]),
    );
    const call = executable.bind({
      inputs: { params: params.views, batch: arrays },
    });
    return {
      executable,
      arrays,
      run: async () => {
        const outputs = (await call.run()) as Predictions;
        // The next run overwrites the outputs.
        return Object.fromEntries(
          Object.entries(outputs).map(([name, output]) => [name, { ...output, data: output.data.slice() }]),
        );
      },
    };
  }

  #checked(given: ReadonlyMap<string, HostTensor>): Specs {
    const { trained } = this.options;
    const [first] = given;
    if (first === undefined) throw new RequestError('predict: the batch has no arrays.');
    const [
      firstPath,
      {
        shape: [rows = 0],
      },
    ] = first;
    const checked = [...given].map(([path, { shape, dtype, data }]) => {
      const spec = { shape: [...shape], dtype };
      const subject = `predict: '${path}' is ${formatSpec(spec)}`;
      const known = trained?.[path];
      if (trained !== undefined && known === undefined) {
        const names = Object.keys(trained);
        throw new RequestError(
          `predict: the batches of training have no '${path}'.${didYouMean(path, names)} They have: ${names.join(', ')}.`,
        );
      }
      if (
        known !== undefined &&
        formatSpec({ ...known, shape: [rows, ...known.shape.slice(1)] }) !== formatSpec(spec)
      ) {
        const wanted = formatSpec({ ...known, shape: known.shape.slice(1) }).replace(
          '[',
          known.shape.length > 1 ? '[rows,' : '[rows',
        );
        const others = shape[0] === rows ? '' : `, with ${rows} rows as '${firstPath}' has`;
        throw new RequestError(`${subject}; expected ${wanted}${others}.`);
      }
      if (rows === 0 || shape[0] !== rows)
        throw new RequestError(
          `${subject}; expected ${rows || '1 or more'} rows${rows ? `, as '${firstPath}' has` : ''}.`,
        );
      const type = newHostArray(dtype, 0).constructor;
      if (data.constructor !== type || data.length !== sizeOf(shape)) {
        throw new RequestError(
          `${subject}; expected data of ${sizeOf(shape)} elements in a ${type.name}, got ${data.length} in a ${data.constructor.name}.`,
        );
      }
      return [path, spec] as const;
    });
    return Object.fromEntries(checked);
  }
}
