/** @file A learner on small flat buffers, and the plain loops that its updates are compared with. */
import { type Engine, type FlatLayout, flatViews, uniform } from '../../src/compiler/index.js';
import { prngKey } from '../../src/compiler/random.js';
import { build, type Config } from '../../src/hparams/index.js';
import { type BaseOptimizer, type LearnableVariable, Learner } from '../../src/learners/index.js';

export type Values = Record<string, readonly number[]>;

/** Everything about a learner at work on variables of the given values. */
export interface Bench {
  learner: Learner;
  layout: FlatLayout;
  params: Float32Array;
  grads: Float32Array;
  slots: Record<string, Float32Array>;
  /** Puts gradients in place and takes a step. */
  step(at: number, grads: Values): ReturnType<Awaited<ReturnType<Learner['createUpdater']>>['run']>;
  /** Values of a variable in the parameters or in a slot. */
  read(name: string, slot?: string): number[];
  updater: Awaited<ReturnType<Learner['createUpdater']>>;
}

/** Vectors unless `shapes` says otherwise; chunks of 16, so that even small variables take several. */
export async function bench(
  values: Values,
  learnerConfig: Config<Learner>,
  {
    engine = 'onnx' as Engine,
    shapes = {} as Record<string, number[]>,
    collections = {} as Record<string, string[]>,
  } = {},
): Promise<Bench> {
  const learner = build(learnerConfig);
  const variables: LearnableVariable[] = Object.entries(values).map(([path, v]) => ({
    path,
    shape: shapes[path] ?? [v.length],
    collections: collections[path] ?? [],
  }));
  const layout = learner.layout(variables, 16);
  const zeros = () => new Float32Array(layout.size);
  const [params, grads] = [zeros(), zeros()];
  const slots = Object.fromEntries(learner.slotNames.map((name) => [name, zeros()]));
  const fill = (buffer: Float32Array, from: Values) => {
    const views = flatViews(layout, buffer);
    for (const [name, v] of Object.entries(from)) views[name]!.set(v);
  };
  fill(params, values);
  learner.initializeSlots({ params, slots });
  const updater = await learner.createUpdater(layout, { params, grads, slots }, { engine, numThreads: 1 });
  return {
    learner,
    layout,
    params,
    grads,
    slots,
    updater,
    step: (at, from) => {
      fill(grads, from);
      return updater.run(at);
    },
    read: (name, slot) => [...flatViews(layout, slot === undefined ? params : slots[slot]!)[name]!],
  };
}

/** A learner with this optimizer. */
export const learnerOf = (optimizer: Config<BaseOptimizer>): Config<Learner> => Learner.config({ optimizer });

/** `count` numbers in [-1, 1), the same for the same seed. */
export const noise = (seed: number, count: number): number[] =>
  [...uniform(prngKey(seed), count)].map((u) => 2 * u - 1);
