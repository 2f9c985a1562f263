/** @file Models of a server: a run, and its adapters by name. */
import type { TrainedRun } from '../trainedRun.js';
import { HttpError } from './httpError.js';

/** A run with its name in requests and answers. */
export interface ServedModel {
  readonly id: string;
  readonly run: TrainedRun;
}

/** The run of a server, by its name, and its adapters, as `NAME` or `base:NAME`. */
export class ServedModels {
  readonly #models: readonly ServedModel[];
  readonly #byName: ReadonlyMap<string, ServedModel>;

  constructor(
    readonly base: TrainedRun,
    adapters: Readonly<Record<string, TrainedRun>> = {},
  ) {
    const own = Object.entries(adapters).map(([name, run]) => ({
      name,
      model: { id: `${base.name}:${name}`, run },
    }));
    this.#models = [{ id: base.name, run: base }, ...own.map(({ model }) => model)];
    this.#byName = new Map([
      ...own.map(({ name, model }) => [name, model] as const),
      ...this.#models.map((model) => [model.id, model] as const),
    ]);
  }

  [Symbol.iterator](): IterableIterator<ServedModel> {
    return this.#models.values();
  }

  /** The model of a request, by default the run. @throws HttpError 404 for one that is not served */
  named(name: string | undefined): ServedModel {
    const found = name === undefined ? this.#models[0] : this.#byName.get(name);
    if (found) return found;
    const all = this.#models.map(({ id }) => `'${id}'`).join(', ');
    const message = `The model '${name}' is not served; the server has ${all}.`;
    throw new HttpError(404, message, { param: 'model', code: 'model_not_found' });
  }
}
