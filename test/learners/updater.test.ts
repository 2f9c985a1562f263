/** @file The update behind a program of gradients: the same on every engine, and left out where it should be. */
import { describe, expect, test } from 'vitest';
import { createTrainState } from '../../src/checkpoints/index.js';
import {
  compile,
  type Engine,
  type FlatArray,
  type FlatLayout,
  flatViews,
  type Tensor,
  tf,
} from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import { Adam, AdamW, changingPart, fillSlots, Learner, Sgd } from '../../src/learners/index.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { noise, runnerOf, type Values } from './fixtures.js';

const engines: Engine[] = ['onnx', ...(hasCompiler ? ['native' as const] : [])];

/** Matrices and vectors, none of a size that lies without padding; one is never moved. */
const shapes: Record<string, number[]> = { w: [3, 11], b: [5], scale: [], deep: [70, 70], frozen: [4] };
const sizeOf = (shape: readonly number[]) => shape.reduce((size, dim) => size * dim, 1);
const valuesOf = (seed: number, factor = 1): Values =>
  Object.fromEntries(
    Object.entries(shapes).map(([name, shape], i) => [
      name,
      noise(seed + i, sizeOf(shape)).map((x) => x * factor),
    ]),
  );

/** Buffers of a learner's state, with parameters in them. */
function stateOf(learner: Learner, layout: FlatLayout) {
  const grads = new Float32Array(changingPart(layout).size);
  const slotLayouts = learner.slotLayouts(layout);
  const state = { ...createTrainState(layout, slotLayouts), slotLayouts, grads };
  put(layout, state.params, valuesOf(1));
  fillSlots(state);
  return state;
}

function put(layout: FlatLayout, buffer: Float32Array, values: Values): void {
  for (const [name, view] of Object.entries(flatViews(layout, buffer))) view.set(values[name]!);
}

/** One learner twice: behind a function that gives twice its argument as gradients, and by itself op by op. */
async function both(config: Config<Learner>, engine: Engine, numThreads = 2) {
  const learner = build(config);
  const layout = learner.layout(Object.entries(shapes).map(([path, shape]) => ({ path, shape })));
  const [state, expected] = [stateOf(learner, layout), stateOf(learner, layout)];
  const updater = learner.createUpdater(layout, state);
  const changing = changingPart(layout);
  const halves = new Float32Array(changing.size);
  const executable = await compile(
    ({ x }: { x: Tensor }) => ({ grads: tf.mul(x, 2) }),
    { x: { shape: [changing.size], dtype: 'float32' } },
    { engine, numThreads, following: updater.following, name: 'step' },
  );
  const call = executable.bind({
    inputs: [{ x: halves }, updater.inputs as any],
    outputs: [{ grads: state.grads }, updater.outputs],
  });
  const oracle = learner.createUpdater(layout, expected);
  const runOracle = await runnerOf(oracle, 'eager');
  const step = async (at: number, values: Values) => {
    put(changing, halves, values);
    for (let i = 0; i < halves.length; i++) halves[i]! /= 2;
    put(changing, expected.grads, values);
    updater.prepare(at);
    await call.run();
    return { report: updater.report(), expected: await runOracle(at) };
  };
  return { step, state, expected, updater, oracle, executable };
}

const near = (found: number, expected: number) =>
  expect(Math.abs(found - expected)).toBeLessThanOrEqual(2e-6 * Math.max(1, Math.abs(expected)));

const optimizers = {
  'AdamW, clipped together': AdamW.config({
    learningRate: 1e-2,
    skipLp1dVectors: true,
    clipGradientNormToValue: 1,
  }),
  'Adam, clipped one by one, its updates bounded': Adam.config({
    learningRate: 1e-2,
    clipGradientSingleNormToValue: 0.7,
    clipThreshold: 0.3,
  }),
  'Adam with a bound and regularisers': Adam.config({
    learningRate: 1e-2,
    epsilonRoot: 1e-9,
    l1RegularizerWeight: 1e-3,
    l2RegularizerWeight: 1e-2,
    clipGradientNormToValue: 1,
  }),
  'AdamW with an average of the parameters': AdamW.config({
    learningRate: 1e-2,
    clipGradientNormToValue: 1,
    emaDecay: 0.2,
  }),
  'Sgd alone': Sgd.config({ learningRate: 0.1 }),
  'Sgd with momentum in the form of Nesterov': Sgd.config({
    learningRate: 0.1,
    momentum: 0.9,
    nesterov: true,
    skipLp1dVectors: true,
    l2RegularizerWeight: 0.1,
    clipGradientNormToValue: 2,
  }),
};

describe.each(engines)('the update behind the gradients, on %s', (engine) => {
  test.each(Object.entries(optimizers))('is that of the oracle: %s', async (_name, optimizer) => {
    const config = Learner.config({ optimizer, bpropVariableExclusion: ['frozen'] });
    const { step, state, expected, updater, oracle, executable } = await both(config, engine);
    for (let at = 0; at < 4; at++) {
      const told = await step(at, valuesOf(100 * at + 50, 10 ** (1 - at)));
      expect(told.report.isValidStep).toBe(1);
      expect(told.report.learningRate).toBe(told.expected.learningRate);
      near(told.report.rawGradNorm / told.expected.rawGradNorm, 1);
      near(told.report.clippedGradNorm / told.expected.clippedGradNorm, 1);
      near(told.report.gradScale, told.expected.gradScale);
    }
    state.params.forEach((value, i) => {
      near(value, expected.params[i]!);
    });
    for (const [name, slot] of Object.entries(state.slots))
      slot.forEach((value, i) => {
        near(value, expected.slots[name]![i]!);
      });
    near(updater.varNorm(), oracle.varNorm());
    expect(Object.keys(updater.gradNorms())).toEqual(Object.keys(oracle.gradNorms()));
    expect(updater.gradNorms()).not.toHaveProperty('frozen');
    for (const [name, norm] of Object.entries(oracle.gradNorms())) near(updater.gradNorms()[name]!, norm);
    await executable.dispose();
  });

  const bits = (buffers: readonly FlatArray[]) =>
    buffers.map((buffer) => [...new Uint32Array(buffer.slice().buffer)]);

  test.each([
    ['NaN', Number.NaN],
    ['infinity', Number.NEGATIVE_INFINITY],
    ['a norm that is too large', 1e4],
  ])('%s: parameters and slots keep every bit, and training goes on', async (_name, bad) => {
    const config = Learner.config({
      optimizer: AdamW.config({ learningRate: 0.1, clipGradientNormToValue: 1 }),
      skipStepGradientNormValue: 1000,
    });
    const { step, state, executable } = await both(config, engine);
    await step(0, valuesOf(20));
    const kept = () => bits([state.params, ...Object.values(state.slots)]);
    const before = kept();
    const values = valuesOf(30);
    expect((await step(1, { ...values, b: [0, 0, bad, 0, 0] })).report.isValidStep).toBe(0);
    expect(kept()).toEqual(before);
    expect((await step(2, values)).report.isValidStep).toBe(1);
    expect(kept()).not.toEqual(before);
    expect(state.params.every(Number.isFinite)).toBe(true);
    await executable.dispose();
  });

  test('a step that is not valid is reported and taken where nothing is skipped, or not looked at', async () => {
    const optimizer = Sgd.config({ learningRate: 1 });
    for (const fields of [{ enableSkipStepOnGradientAnomalies: false }, { checkValidStep: false }]) {
      const { step, state, executable } = await both(
        Learner.config({ optimizer, skipStepGradientNormValue: 1, ...fields }),
        engine,
      );
      const before = bits([state.params]);
      const { report, expected } = await step(0, valuesOf(40, 10));
      expect(report.isValidStep).toBe(expected.isValidStep);
      expect(report.gradScale).toBe(1);
      expect(bits([state.params])).not.toEqual(before);
      await executable.dispose();
    }
  });

  test('gradients of zero stay zero, clipped or not', async () => {
    for (const clipping of [{ clipGradientNormToValue: 1 }, { clipGradientSingleNormToValue: 1 }]) {
      const { step, state, executable } = await both(
        Learner.config({ optimizer: Sgd.config({ learningRate: 1, ...clipping }) }),
        engine,
      );
      const before = bits([state.params]);
      const { report } = await step(0, valuesOf(1, 0));
      expect(report).toMatchObject({ gradScale: 1, clippedGradNorm: 0, isValidStep: 1 });
      expect(bits([state.params])).toEqual(before);
      await executable.dispose();
    }
  });

  test('gives the same bits on every run with so many threads', async () => {
    const results = [];
    for (let run = 0; run < 2; run++) {
      const { step, state, executable } = await both(
        Learner.config({ optimizer: optimizers['AdamW, clipped together'] }),
        engine,
      );
      for (let at = 0; at < 3; at++) await step(at, valuesOf(at));
      results.push(bits([state.params, ...Object.values(state.slots)]));
      await executable.dispose();
    }
    expect(results[0]).toEqual(results[1]);
  });
});
