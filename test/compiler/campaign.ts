/** @file Runs many random programs on an engine and on the oracle, and tells where they differ. */
import fc from 'fast-check';
import { compile, type Engine, type HostTensor, type Precision } from '../../src/compiler/index.js';
import { exactInputs, exactProgram, exactSteps } from './exactPrograms.js';
import { differentiated, programInputs, type Step, stepsArbitrary, twiceDifferentiated } from './programs.js';
import { repeatedly } from './repeatedRuns.js';

/** What is to be tried. */
export interface Campaign {
  readonly engine: Engine;
  readonly precision?: Precision;
  /** Of the gradients: the second are those of a sum of the first. */
  readonly order?: 1 | 2;
  /** Programs of exact numbers, rather than of those that rounding leaves apart. */
  readonly exact?: boolean;
  readonly programs: number;
  readonly seed: number;
}

/** Summation in another order, and functions that differ in their last bits. */
export const FLOAT32 = 1e-5;
/** Second gradients are sums of many terms: their differences are those of summation in another order, some times over. */
export const SECOND = 1e-4;
/** An operand whose last bit differs may be rounded to the neighbour in bfloat16, of 8 bits; what follows differs by that. */
export const BFLOAT16 = 2 ** -5;

/** Compiling takes longer than running: this many programs are compiled as one. */
const TOGETHER = 50;

/** Outputs and gradients of each program. */
async function run(
  programs: readonly Step[][],
  engine: Engine,
  { precision = 'float32', order = 1, exact = false }: Campaign,
): Promise<HostTensor[][]> {
  // Each has inputs of its own: programs that share some would be merged in part.
  const inputs: readonly unknown[] = programs.map(() => (exact ? exactInputs : programInputs));
  const differentiate = order === 1 ? differentiated : twiceDifferentiated;
  const programOf = (steps: readonly Step[]) =>
    exact ? exactProgram(steps) : differentiate(steps, precision);
  const all = (each: any[]) => programs.map((steps, i) => programOf(steps)(each[i]));
  const executable = await compile(all, inputs as any, { engine, numThreads: 1, name: 'random programs' });
  const results = (await repeatedly(executable, inputs as any)) as unknown as HostTensor[][];
  await executable.dispose();
  return results;
}

const describeSpec = ({ dtype, shape }: HostTensor): string => `${dtype}[${shape}]`;

/** The largest difference, relative to the expected tensor's largest element; infinite where NaN or a shape differs. */
function difference(actual: HostTensor, expected: HostTensor): number {
  if (describeSpec(actual) !== describeSpec(expected)) return Number.POSITIVE_INFINITY;
  let [worst, largest] = [0, 1];
  expected.data.forEach((e, i) => {
    const a = actual.data[i]!;
    if (Number.isFinite(e)) largest = Math.max(largest, Math.abs(e));
    if (a === e || (Number.isNaN(a) && Number.isNaN(e))) return;
    const distance = Math.abs(a - e);
    worst = Math.max(worst, Number.isFinite(distance) ? distance : Number.POSITIVE_INFINITY);
  });
  return worst / largest;
}

const differences = (actual: readonly HostTensor[], expected: readonly HostTensor[]): number =>
  actual.length === expected.length
    ? Math.max(...actual.map((tensor, i) => difference(tensor, expected[i]!)))
    : Number.POSITIVE_INFINITY;

/** How a program came out: how far from the oracle, relative to the largest element; infinitely, where it failed. */
export interface Outcome {
  readonly steps: readonly Step[];
  readonly difference: number;
  /** Of a program that failed. */
  readonly error?: string;
}

async function tryTogether(programs: readonly Step[][], plan: Campaign) {
  const actual = await run(programs, plan.engine, plan);
  const expected = await run(programs, 'eager', plan);
  return programs.map((steps, i): Outcome => ({ steps, difference: differences(actual[i]!, expected[i]!) }));
}

async function tryAlone(steps: Step[], plan: Campaign): Promise<Outcome> {
  try {
    return (await tryTogether([steps], plan))[0]!;
  } catch (error) {
    return { steps, difference: Number.POSITIVE_INFINITY, error: (error as Error).message };
  }
}

/** Runs random programs; one that fails does not end it. */
export async function campaign(plan: Campaign): Promise<Outcome[]> {
  const samples = fc.sample(plan.exact ? exactSteps : stepsArbitrary, {
    numRuns: plan.programs,
    seed: plan.seed,
  });
  const results: Outcome[] = [];
  for (let at = 0; at < samples.length; at += TOGETHER) {
    const some = samples.slice(at, at + TOGETHER);
    const outcomes = await tryTogether(some, plan).catch(() => null);
    if (outcomes) results.push(...outcomes);
    else for (const steps of some) results.push(await tryAlone(steps, plan));
  }
  return results;
}

/** The outcome of the fewest of `steps` that still differ by more than `tolerance`. */
export async function smallest({ steps }: Outcome, plan: Campaign, tolerance: number): Promise<Outcome> {
  let current = await tryAlone([...steps], plan);
  const tryInstead = async (fewer: Step[]): Promise<boolean> => {
    const outcome = await tryAlone(fewer, plan);
    if (!(outcome.difference > tolerance)) return false;
    current = outcome;
    return true;
  };
  for (let i = 0; i < current.steps.length; ) {
    if (await tryInstead(current.steps.toSpliced(i, 1))) continue;
    // Later steps count their operands from the end: one that does nothing keeps their places.
    const step = current.steps[i]!;
    if (step.op !== 'same') await tryInstead(current.steps.with(i, { ...step, op: 'same' }));
    i++;
  }
  return current;
}
