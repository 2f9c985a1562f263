/** @file Fingerprint of an update on the host: the numbers that each step hands it, the buffers it works on, its report. */
import { flatArrayType, flatLayout } from '../../compiler/index.js';
import { Configurable } from '../../hparams/index.js';
import { type Learner, NON_TRAINABLE } from '../../learners/index.js';
import { digest } from './digests.js';

/** All steps up to here are looked at. */
const EVERY_STEP = 500;
/** The last step that is looked at, as a power of ten; and the steps on the way to it. */
const FARTHEST = 8;
const SPREAD = 120;
/** Fields whose sums are looked at, too. */
const MOST_TURNS = 48;
/** Steps of a call. */
const RUNS = 2;

/** The numbers in the fields of an object, those of its parts included. */
function* numbersIn(value: unknown): Generator<number> {
  if (typeof value === 'number') yield value;
  else if (value instanceof Configurable) yield* numbersIn((value as { readonly hp?: unknown }).hp);
  else if (typeof value === 'object' && value !== null)
    for (const each of Object.values(value)) yield* numbersIn(each);
}

/**
 * Finished steps at which schedules are evaluated: the first ones, ever fewer after them, and those next to where a schedule
 * can turn. It turns at numbers of its fields, and where one schedule begins within another at sums of two.
 */
function stepsOf(learner: Learner): number[] {
  const whole = [...numbersIn(learner)].map(Math.floor).filter((n) => n > 0 && n < 10 ** FARTHEST);
  const turns = [...new Set(whole)].slice(0, MOST_TURNS);
  const sums = turns.flatMap((turn) => turns.map((other) => turn + other));
  const near = [...turns, ...sums].flatMap((turn) => [turn - 1, turn, turn + 1]);
  const spread = Array.from({ length: SPREAD }, (_, i) => Math.round(10 ** ((FARTHEST * i) / SPREAD)));
  return [...new Set([...Array(EVERY_STEP).keys(), ...near, ...spread])].sort((a, b) => a - b);
}

/** Equal where an update is prepared and reported alike, whatever the model. */
export function hostUpdateDigest(learner: Learner): string {
  const variables = [...learner.updateGroups, NON_TRAINABLE].flatMap((group) => [
    // Norms are summed eight elements at a time, and the rest one by one.
    { name: `${group}/matrix`, shape: [3, 7], group },
    { name: `${group}/vector`, shape: [5], group },
  ]);
  const layout = flatLayout(variables);
  let last = 0;
  const buffer = (): Float32Array => Float32Array.from({ length: layout.size }, () => ++last / 8);
  const slots = Object.fromEntries(
    Object.entries(learner.slotLayouts(layout)).map(([name, { dtype, size }]) => [
      name,
      dtype === 'float32'
        ? Float32Array.from({ length: size }, () => ++last / 8)
        : new (flatArrayType(dtype))(size).map(() => ++last),
    ]),
  );
  const updater = learner.createUpdater(layout, { params: buffer(), grads: buffer(), slots }, RUNS);
  const numbers: number[] = [];
  for (const [i, step] of stepsOf(learner).entries()) {
    updater.prepare(step, i % RUNS);
    numbers.push(updater.report(i % RUNS).learningRate);
    for (const scalars of Object.values(updater.inputs.scalars))
      for (const ofRuns of Object.values(scalars)) numbers.push(ofRuns[i % RUNS]!);
  }
  const outputs = updater.outputs as Readonly<Record<string, Float32Array | Uint8Array>>;
  ['rawGradNorm', 'clippedGradNorm', 'isValid'].forEach((name, i) => {
    outputs[name]!.set([3 - i, 5]);
  });
  const reports = [updater.report(0), updater.report(1), updater.gradNorms(), updater.varNorm()];
  return digest(Float64Array.from(numbers), updater.inputs, updater.outputs, reports);
}
