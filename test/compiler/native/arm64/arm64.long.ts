/** @file The native engine on ARM64: the runtime's kernels and whole programs, cross-compiled and run under emulation. */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { compile, type HostTensor } from '../../../../src/compiler/index.js';
import type { TensorFunction } from '../../../../src/compiler/trace/tracedProgram.js';
import { temporaryDirectory } from '../../../command.js';
import { tries } from '../../../faults/campaign.js';
import { type Case, program } from '../../cases/case.js';
import { caseTable } from '../../cases/index.js';
import { programs as loopPrograms } from '../../control/loopPrograms.js';
import { compiledResults, expectClose, floats, leavesOf, type Tolerance } from '../../support.js';
import { execute, hasCompiler } from '../compilerSupport.js';
import { buildCheck, buildChecks, thisMachine } from '../runtimeSupport.js';
import { crossTarget, emulating, hasCrossTools, whyWithout } from './crossTools.js';
import { compileEmulated, type Emulation, emulation } from './emulatedProgram.js';
import { trainingInputs, trainingStep } from './trainingStep.js';

const isWhole = tries(1, 0) === 1;

/** Checks of the runtime's kernels in C, what they are told, and what they say. */
const kernelChecks: readonly (readonly [check: string, args: string, said: RegExp, short: boolean])[] = [
  ['gemmProducts', 'neon', /^float32 runs neon\n(.*: ok\n)+bfloat16 runs neon\n(.*: ok\n)+$/, false],
  [
    'gemmProducts',
    'portable',
    /^float32 runs portable\n(.*: ok\n)+bfloat16 runs portable\n(.*: ok\n)+$/,
    false,
  ],
  ['gemmProducts', '', /^neon neon\n$/, true],
  ...['random', 'threads', 'slices', 'long', 'empty', 'nan'].map(
    (part) => ['attentionCheck', `neon ${part}`, /^$/, part === 'threads' || part === 'nan'] as const,
  ),
  ['convolutionCheck', 'neon', /^finished\n$/, true],
  ['depthwiseCheck', '', /^finished\n$/, true],
  ['drawsCheck', '', /^$/, false],
  ...['segments', 'cumulative', 'largest'].map((part) => ['indexingCheck', part, /^$/, true] as const),
  ['gemmVectormath', '', /^(.*: ok\n)+random .*\nfinished 42\n$/, false],
  ...['threads', 'callers', 'sleep'].map(
    (part) => ['teamCheck', `${part} 15`, /^$/, part === 'callers'] as const,
  ),
];

/** Operations of every family of kernels: the cases that are run where there is little time. */
const FAMILIES = [
  'BatchMatMul',
  'Exp',
  'Cast',
  'Sum',
  'Softmax',
  'LayerNorm',
  'Attention',
  'Conv2D',
  'DepthwiseConv2dNative',
  'RandomUniform',
];
/** Their results are the same bits on every machine, as all integers are. */
const EXACT = /^(Random|FoldIn|Bitwise)/;
const NONE: Tolerance = { relative: 0, absolute: 0 };
/** Compiling takes longer than running: the cases of this many operations are one program. */
const TOGETHER = 16;

const all = Object.keys(caseTable);
const groups = isWhole
  ? Array.from({ length: Math.ceil(all.length / TOGETHER) }, (_, i) =>
      all.slice(i * TOGETHER, (i + 1) * TOGETHER),
    )
  : [FAMILIES];

function expectSame(
  actual: readonly HostTensor[],
  expected: readonly HostTensor[],
  tolerance: Tolerance | undefined,
  what: string,
): void {
  expect(actual.length, what).toBe(expected.length);
  actual.forEach((tensor, i) => {
    const asked = tensor.dtype === 'float32' ? tolerance : NONE;
    expectClose(tensor, expected[i]!, asked, `${what}, result ${i}`);
  });
}

/** Runs one function over the inputs of all cases, on ARM64 and on the oracle. */
async function compareCases(arm: Emulation, ops: readonly string[]): Promise<void> {
  const cases = ops.flatMap((op) => caseTable[op]!.map((c, i) => ({ ...c, what: `${op}, case ${i}`, op })));
  const inputs = cases.map((c) => [...c.inputs]);
  const each = (choose: (c: Case) => Case['f']) => (lists: any[][]) =>
    cases.map((c, i) => program(c, choose(c))(lists[i]!));
  const executable = await compileEmulated(arm, each((c) => c.f) as TensorFunction, inputs);
  const results = (await executable.run(inputs)) as any[];
  const oracle = await compile(each((c) => c.oracle ?? c.f) as TensorFunction, inputs, { engine: 'eager' });
  const known = (await oracle.run(inputs)) as any[];
  cases.forEach(({ op, what, tolerance }, i) => {
    const asked = EXACT.test(op) ? NONE : tolerance;
    expectSame(leavesOf(results[i]), leavesOf(known[i]), asked, what);
  });
}

describe.skipIf(!hasCrossTools)(`ARM64 under emulation${whyWithout}`, () => {
  let arm: Emulation;
  beforeAll(async () => {
    arm = await emulation(temporaryDirectory());
  });

  const built = new Map<string, Promise<string>>();
  const programOf = (check: string): Promise<string> => {
    const source = fileURLToPath(new URL(`../runtime/${check}.c`, import.meta.url));
    if (!built.has(check)) built.set(check, buildCheck(source, arm.objects, crossTarget(), arm.folder));
    return built.get(check)!;
  };
  it.each(kernelChecks.filter(([, , , short]) => short || isWhole))('%s %s', async (check, args, said) => {
    const [command, options] = emulating(await programOf(check));
    const list = args.split(' ').filter((arg) => arg !== '');
    const { stdout } = await execute(command, [...options, ...list], { timeout: 600_000 });
    expect(stdout).toMatch(said);
  });

  it.skipIf(!hasCompiler)('drawn numbers are those of this machine, bit by bit', async () => {
    const source = fileURLToPath(new URL('drawnBits.c', import.meta.url));
    const folder = temporaryDirectory();
    const target = await thisMachine(true, folder);
    const [here] = await buildChecks([source], /^(draws|team)\.c$/, target, folder);
    const [command, options] = emulating(await buildCheck(source, arm.objects, crossTarget(), arm.folder));
    expect((await execute(command, options)).stdout).toBe((await execute(here!, [])).stdout);
  });

  it.each(groups.map((ops) => [ops.join(', '), ops] as const))('cases of %s', async (_, ops) => {
    await compareCases(arm, ops);
  });

  it('loops and choices on threads', async () => {
    const inputs = {
      x: floats([5, 2, 3], -1, 1, 1),
      w: floats([3, 3], -1, 1, 2),
      h: floats([2, 3], -1, 1, 3),
    };
    const f: TensorFunction = (given) => Object.values(loopPrograms).map((each) => each(given));
    const executable = await compileEmulated(arm, f, inputs, 3);
    const results = leavesOf(await executable.run(inputs));
    expectSame(
      results,
      await compiledResults(f, inputs, { engine: 'eager' }),
      { relative: 2e-4, absolute: 2e-5 },
      'loops',
    );
  });

  // An operand whose last bit differs may be rounded to the neighbour in bfloat16.
  it.each([
    ['float32', { relative: 1e-4, absolute: 1e-5 }],
    ['bfloat16', { relative: 2 ** -5, absolute: 2e-3 }],
  ] as const)('a training step of a transformer in %s, on threads', async (precision, tolerance) => {
    const step = trainingStep(precision) as TensorFunction;
    const executable = await compileEmulated(arm, step, trainingInputs as any, 3);
    const results = leavesOf(await executable.run(trainingInputs as any));
    const known = await compiledResults(step, trainingInputs as any, { engine: 'eager' });
    expectSame(results, known, tolerance, precision);
  });
});
