/** @file A learner on small flat buffers, and the plain loops that its updates are compared with. */
import { createTrainState } from '../../src/checkpoints/index.js';
import {
  compile,
  type Engine,
  type FlatArray,
  type FlatLayout,
  flatViews,
  uniform,
} from '../../src/compiler/index.js';
import { prngKey } from '../../src/compiler/random/prng.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  type BaseOptimizer,
  changingPart,
  type FlatUpdater,
  fillSlots,
  type LearnableVariable,
  Learner,
  type UpdateReport,
} from '../../src/learners/index.js';

export type Values = Record<string, readonly number[]>;

/** Everything about a learner at work on variables of the given values. */
export interface Bench {
  learner: Learner;
  layout: FlatLayout;
  params: Float32Array;
  grads: Float32Array;
  slots: Readonly<Record<string, FlatArray>>;
  /** Puts gradients in place and takes a step. */
  step(at: number, grads: Values): Promise<UpdateReport>;
  /** Values of a variable in the parameters or in a slot. */
  read(name: string, slot?: string): number[];
  updater: FlatUpdater;
}

/** An updater by itself: takes the steps that gradients in its buffers ask for. */
export async function runnerOf(
  updater: FlatUpdater,
  engine: Engine,
): Promise<(step: number) => Promise<UpdateReport>> {
  const { f, inputs } = updater.following;
  const executable = await compile(f, inputs, { engine, numThreads: 1, name: 'update' });
  const call = executable.bind({ inputs: updater.inputs as any, outputs: updater.outputs });
  return async (step) => {
    updater.prepare(step);
    await call.run();
    return updater.report();
  };
}

/** Vectors unless `shapes` says otherwise. */
export async function bench(
  values: Values,
  learnerConfig: Config<Learner>,
  {
    engine = 'onnx' as Engine,
    shapes = {} as Record<string, number[]>,
    collections = {} as Record<string, string[]>,
    repeatPrefix = {} as Record<string, number[]>,
    inits = {} as Record<string, LearnableVariable['init']>,
  } = {},
): Promise<Bench> {
  const learner = build(learnerConfig);
  const variables: LearnableVariable[] = Object.entries(values).map(([path, v]) => ({
    path,
    shape: shapes[path] ?? [v.length],
    collections: collections[path] ?? [],
    repeatPrefix: repeatPrefix[path] ?? [],
    ...(inits[path] && { init: inits[path] }),
  }));
  const layout = learner.layout(variables);
  const changing = changingPart(layout);
  const slotLayouts = learner.slotLayouts(layout);
  const { params, slots } = createTrainState(layout, slotLayouts);
  const grads = new Float32Array(changing.size);
  const fill = (views: Record<string, Float32Array>, from: Values) => {
    for (const [name, v] of Object.entries(from)) views[name]!.set(v);
  };
  fill(flatViews(layout, params), values);
  fillSlots({ params, slots, slotLayouts });
  const updater = learner.createUpdater(layout, { params, grads, slots });
  const run = await runnerOf(updater, engine);
  return {
    learner,
    layout,
    params,
    grads,
    slots,
    updater,
    step: (at, from) => {
      fill(flatViews(changing, grads), from);
      return run(at);
    },
    read: (name, slot) => {
      if (slot === undefined) return [...flatViews(layout, params)[name]!];
      const { offset, size } = slotLayouts[slot]!.entries.find((entry) => entry.name === name)!;
      return [...slots[slot]!.subarray(offset, offset + size)];
    },
  };
}

/** A learner with this optimizer. */
export const learnerOf = (optimizer: Config<BaseOptimizer>): Config<Learner> => Learner.config({ optimizer });

/** `count` numbers in [-1, 1), the same for the same seed. */
export const noise = (seed: number, count: number): number[] =>
  [...uniform(prngKey(seed), count)].map((u) => 2 * u - 1);
