/**
 * @file Contract of layers, as tests over a list of cases: variables, gradients by finite differences, rows for themselves,
 * every engine against the eager one; of mixers also decoding, packing and padding.
 */
import { describe, expect, test } from 'vitest';
import { answerForEmpties } from '../../src/compiler/eager/empties.js';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  type BaseLayer,
  type BaseMixer,
  DotProductAttention,
  decodeStateSpecs,
  LatentAttention,
  listVariables,
  type StepArgs,
} from '../../src/layers/index.js';
import { engines } from '../compiler/engines.js';
import {
  evaluator,
  expectSameResults,
  floats,
  given,
  type Host,
  isReal,
  type Results,
  type Subject,
  type Tensors,
} from './engineComparison.js';
import { checkGradients, ints, isState, randomTheta, run, stateOf, tensor } from './helpers.js';

// As the eager engine does: kernels of tfjs fail for tensors without elements.
answerForEmpties('cpu');

/** A layer, inputs for it, and its call. */
export interface LayerCase<T extends BaseLayer = BaseLayer> {
  readonly title: string;
  readonly config: Config<T>;
  /** Inputs by name; the first axis of each is that of the examples, but of those in `shared`. */
  readonly inputs: Readonly<Record<string, Host>>;
  readonly call: (layer: T, inputs: Tensors) => Tensor;
  /** Shapes of all variables by path, where the case asserts them. */
  readonly variables?: Readonly<Record<string, readonly number[]>>;
  /** Inputs whose first axis is not that of the examples, or which stay whole. */
  readonly shared?: readonly string[];
  /** Whether the outputs of an example depend on it alone; true by default. */
  readonly rowsApart?: boolean;
  /** Elements of each tensor whose gradients are compared with finite differences; 2 by default, 0 where there is no gradient. */
  readonly probes?: number;
  /** Whether gradients are not those of the outputs, as those that pass straight through a rounding; they are compared between engines alone. */
  readonly stopsGradients?: boolean;
  /** Evaluation mode; random numbers are drawn from a fixed key otherwise. */
  readonly doEval?: boolean;
  /** Values of variables in place of generic ones, such as a decay that has to be negative. */
  readonly theta?: (layer: T) => Record<string, Tensor>;
  /** Largest difference between engines, as part of 1 + |value|; 2e-5 by default. */
  readonly tolerance?: number;
}

/** Builds a case; it holds the type of its layer together. */
export const layerCase = <T extends BaseLayer>(each: LayerCase<T>): LayerCase => each as never;

const toTensor = ({ data, shape, dtype }: Host): Tensor =>
  tf.tensor(data as Float32Array, shape, dtype as 'float32');
const tensorsOf = (inputs: Readonly<Record<string, Host>>): Record<string, Tensor> =>
  Object.fromEntries(Object.entries(inputs).map(([name, x]) => [name, toTensor(x)]));

/** Values of the trained variables, and of state, such as a variance: positive numbers. */
function valuesOf(each: LayerCase, layer: BaseLayer): Record<'theta' | 'state', Record<string, Tensor>> {
  const values = each.theta?.(layer) ?? randomTheta(layer);
  const variables = listVariables(layer);
  const those = (which: typeof variables): [string, Tensor][] =>
    which.map(({ path }) => [path, values[path]!]);
  const states = those(variables.filter(isState));
  const positive = (x: Tensor): Tensor => (each.theta ? x : tf.add(tf.abs(x), 0.5));
  return {
    theta: Object.fromEntries(those(variables.filter((variable) => !isState(variable)))),
    state: Object.fromEntries(states.map(([path, x]) => [path, positive(x)])),
  };
}
const keyOf = (): Tensor => ints([5, 6], [2]);
const contextOf = ({ doEval = false }: LayerCase) => ({ doEval, prngKey: keyOf() });

/** Gradients by inputs and variables are those of finite differences. */
export function checkFiniteDifferences(each: LayerCase): void {
  const layer = build(each.config);
  const inputs = tensorsOf(each.inputs);
  const real = Object.keys(inputs).filter((name) => isReal(inputs[name]!));
  checkGradients(
    layer,
    real.map((name) => inputs[name]!),
    (...xs) => each.call(layer, { ...inputs, ...Object.fromEntries(real.map((name, i) => [name, xs[i]!])) }),
    { probes: each.probes ?? 2, ...valuesOf(each, layer), ...contextOf(each) },
  );
}

/** Outputs of an example depend on it alone; none give none. */
export function checkRows(each: LayerCase): void {
  const layer = build(each.config);
  const inputs = tensorsOf(each.inputs);
  const { theta, state } = valuesOf(each, layer);
  const outputsOf = (xs: Tensors): Tensor =>
    run({ ...theta, ...state }, () => each.call(layer, xs), { ...contextOf(each), doEval: true });
  const rows = (begin: number, size: number): Tensors =>
    Object.fromEntries(
      Object.entries(inputs).map(([name, x]) => [
        name,
        each.shared?.includes(name) ? x : tf.slice(x, [begin], [size]),
      ]),
    );
  const together = outputsOf(inputs);
  const count = together.shape[0]!;
  expect(count, 'more than one example').toBeGreaterThan(1);
  expect(outputsOf(rows(0, 0)).shape, 'of no examples').toEqual([0, ...together.shape.slice(1)]);
  const alone = Array.from({ length: count }, (_, i) => outputsOf(rows(i, 1)));
  expectNear(together, tf.concat(alone, 0), 1e-5, 'a batch and its examples alone');
}

/** Expects that tensors differ by at most so much of the largest magnitude of `expected`. */
export function expectNear(actual: Tensor, expected: Tensor, tolerance: number, label = ''): void {
  expect(actual.shape, label).toEqual(expected.shape);
  const [a, b] = [actual.dataSync(), expected.dataSync()];
  const largest = Math.max(1e-3, ...Array.from(b, Math.abs));
  for (let i = 0; i < b.length; i++)
    if (!(Math.abs(a[i]! - b[i]!) <= tolerance * largest))
      expect.fail(`${label}: element ${i} is ${a[i]}, expected ${b[i]} (largest ${largest})`);
}

/** A case as the engines take it. */
function subjectOf(each: LayerCase): Subject {
  const layer = build(each.config);
  const hosts = (values: Record<string, Tensor>): Record<string, Host> =>
    Object.fromEntries(
      Object.entries(values).map(([path, x]) => [path, given('float32', [...x.dataSync()], x.shape)]),
    );
  const { theta, state } = valuesOf(each, layer);
  const { title, inputs, doEval, tolerance } = each;
  return {
    ...{ title, inputs, params: hosts(theta), state: hosts(state), hasGradients: each.probes !== 0 },
    ...(doEval !== undefined && { doEval }),
    ...(tolerance !== undefined && { tolerance }),
    call: (tensors) => each.call(layer, tensors),
  };
}

/** Registers the tests of layers of one family; the engines run all of its cases as one program. */
export function checkLayers(family: string, cases: readonly LayerCase[]): void {
  describe(family, () => {
    describe.each(cases.map((each) => [each.title, each] as const))('%s', (_, each) => {
      if (each.variables)
        test('declares its variables', () => {
          const shapes = listVariables(build(each.config)).map(({ path, shape }) => [path, [...shape]]);
          expect(Object.fromEntries(shapes)).toEqual(each.variables);
        });
      if (each.probes !== 0 && !each.stopsGradients)
        test('has the gradients of finite differences', () => checkFiniteDifferences(each));
      if (each.rowsApart !== false) test('gives a batch what its examples give', () => checkRows(each));
    });
    let subjects: readonly Subject[] | undefined;
    let evaluate: ReturnType<typeof evaluator>;
    let oracle: Promise<Results>;
    test.each(engines.filter(([, { available }]) => available))(
      'on %s as eagerly',
      async (title, { engine }) => {
        if (subjects === undefined) {
          subjects = cases.map(subjectOf);
          evaluate = evaluator(subjects);
          oracle = evaluate('eager');
        }
        const eager = await oracle;
        expectSameResults(title, subjects, await evaluate(engine), eager);
      },
    );
  });
}

/** A mixer, and the exceptions it makes. */
export interface MixerCase<T extends BaseMixer = BaseMixer> {
  readonly title: string;
  /** Its `inputDim` is that of the case's vectors. */
  readonly config: Config<T>;
  /** Whether it takes packed rows; true by default. */
  readonly packs?: boolean;
  /** Whether it takes padded rows; true by default. */
  readonly pads?: boolean;
  /** Length of the sequences; 9 by default. */
  readonly length?: number;
  readonly theta?: (layer: T) => Record<string, Tensor>;
}

/** Builds a case; it holds the type of its mixer together. */
export const mixerCase = <T extends BaseMixer>(each: MixerCase<T>): MixerCase => each as never;

const MIXED = { batch: 2, first: 4 };

function mixed(each: MixerCase) {
  const layer = build(each.config);
  const theta = each.theta?.(layer) ?? randomTheta(layer);
  const [time, depth] = [each.length ?? 9, layer.hp.inputDim];
  return { layer, theta, time, depth, x: tensor([MIXED.batch, time, depth], 3) };
}

const span = (x: Tensor, begin: number, size: number): Tensor => tf.slice(x, [0, begin, 0], [-1, size, -1]);

/** Zeros that begin a decode of a case's rows. */
const emptyState = (layer: BaseMixer, time: number): Record<string, Tensor> =>
  stateOf(decodeStateSpecs(layer, MIXED.batch, time));

/** Blocks and single tokens of a decode give the outputs of the whole sequence. */
export function checkDecoding(each: MixerCase): void {
  const { layer, theta, time, depth, x } = mixed(each);
  const whole = run(theta, () => layer.fprop(x, { seen: { causal: true } }), { doEval: true });
  const decodeState = emptyState(layer, time);
  const step = (inputs: Tensor, at: number, length?: number): Tensor =>
    run(
      theta,
      () =>
        layer.extendStep(inputs, {
          timeStep: tf.scalar(at, 'int32'),
          length: length === undefined ? undefined : ints([length, length], [MIXED.batch]),
        }),
      { decodeState, doEval: true },
    );
  // A block that is filled up with junk, a whole block, then token by token.
  const junk = tf.mul(tensor([MIXED.batch, 2, depth], 77), 10);
  const outputs = [
    span(step(tf.concat([span(x, 0, 3), junk], 1), 0, 3), 0, 3),
    step(span(x, 3, 2), 3),
    ...Array.from({ length: time - 5 }, (_, t) => step(span(x, t + 5, 1), t + 5)),
  ];
  expectNear(tf.concat(outputs, 1), whole, 1e-5, 'decoding and training');
}

/**
 * A decode that begins with prefixes, whose tokens see each other, gives the outputs of whole sequences; or a mixer that is no
 * attention refuses them, in training and in a decode.
 */
function checkPrefixes(each: MixerCase): void {
  const { layer, theta, time, x } = mixed(each);
  const lengths = [2, 5];
  const prefix = ints(lengths, [MIXED.batch]);
  const fprop = (): Tensor =>
    run(theta, () => layer.fprop(x, { seen: { causal: true, prefix } }), { doEval: true });
  const decodeState = emptyState(layer, time);
  const extend = (tokens: Tensor, args: StepArgs): Tensor =>
    run(theta, () => layer.extendStep(tokens, args), { decodeState, doEval: true });
  const length = tf.sub(prefix, tf.scalar(1, 'int32')) as Tensor;
  const begin = (): Tensor => extend(span(x, 0, 6), { timeStep: tf.scalar(0, 'int32'), length, prefix });
  if (!(layer instanceof DotProductAttention || layer instanceof LatentAttention)) {
    const refusal = /cannot keep to 'prefix' of the visibility: expected an attention in its place\.$/;
    expect(fprop).toThrow(refusal);
    expect(begin).toThrow(refusal);
    return;
  }
  const whole = fprop();
  const at = (of: Tensor, places: readonly number[], size: (row: number) => number): Tensor =>
    tf.concat(
      places.map((place, row) => tf.reshape(tf.slice(of, [row, place, 0], [1, size(row), -1]), [-1])),
    );
  const first = begin();
  const starts = lengths.map(() => 0);
  expectNear(
    at(first, starts, (row) => lengths[row]!),
    at(whole, starts, (row) => lengths[row]!),
    1e-5,
    'prefixes',
  );
  // The last tokens of the prefixes once more, and those behind them.
  for (let step = -1; step < time - Math.max(...lengths); step++) {
    const places = lengths.map((each) => each + step);
    const token = tf.concat(places.map((place, row) => tf.slice(x, [row, place, 0], [1, 1, -1])));
    const out = extend(token, { timeStep: ints(places, [MIXED.batch]) });
    expectNear(
      at(out, starts, () => 1),
      at(whole, places, () => 1),
      1e-5,
      `step ${step}`,
    );
  }
}

/** Sequences of a packed row give their outputs alone. */
export function checkPacking(each: MixerCase): void {
  const { layer, theta, time, x } = mixed(each);
  const { first, batch } = MIXED;
  const places = Array.from({ length: time }, (_, t) => t);
  const rows = (of: (t: number) => number) => ints([...places.map(of), ...places.map(of)], [batch, time]);
  const segments = rows((t) => (t < first ? 0 : 1));
  const positions = rows((t) => (t < first ? t : t - first));
  const seen = {
    causal: true,
    segments: { queries: segments, keys: segments },
    positions: { queries: positions, keys: positions },
  };
  const packed = run(theta, () => layer.fprop(x, { seen }), { doEval: true });
  const alone = [span(x, 0, first), span(x, first, time - first)].map((part) =>
    run(theta, () => layer.fprop(part, { seen: { causal: true } }), { doEval: true }),
  );
  expectNear(packed, tf.concat(alone, 1), 1e-5, 'a packed row and its sequences alone');
}

/** Padding at the end changes no other output, whatever it holds. */
export function checkPadding(each: MixerCase): void {
  const { layer, theta, time, depth, x } = mixed(each);
  const kept = time - 2;
  const paddings = tf.tensor2d(
    Array.from({ length: MIXED.batch }, () => Array.from({ length: time }, (_, t) => (t < kept ? 0 : 1))),
  );
  const outputsOf = (junk: number): Tensor =>
    run(
      theta,
      () =>
        layer.fprop(tf.concat([span(x, 0, kept), tf.fill([MIXED.batch, 2, depth], junk)], 1), {
          seen: { causal: true, paddings },
        }),
      { doEval: true },
    );
  const short = run(theta, () => layer.fprop(span(x, 0, kept), { seen: { causal: true } }), { doEval: true });
  for (const junk of [0, 1e4])
    expectNear(span(outputsOf(junk), 0, kept), short, 1e-5, `padding that holds ${junk}`);
}

/** Registers the tests of mixers besides those of {@link checkLayers}, to which they are cases as well. */
export function checkMixers(family: string, cases: readonly MixerCase[]): void {
  describe.each(cases.map((each) => [each.title, each] as const))(`${family}: %s`, (_, each) => {
    test('decodes as it trains', () => checkDecoding(each));
    test('decodes behind a prefix as it trains, or refuses it', () => checkPrefixes(each));
    if (each.packs !== false) test('keeps packed sequences apart', () => checkPacking(each));
    if (each.pads !== false) test('does not see padding', () => checkPadding(each));
  });
  checkLayers(
    family,
    cases.map(({ title, config, theta }) =>
      layerCase({
        title,
        config,
        inputs: { x: floats([2, 5, build(config).hp.inputDim], 3) },
        call: (layer, { x }) => layer.fprop(x!, { seen: { causal: true } }),
        ...(theta && { theta }),
      }),
    ),
  );
}
