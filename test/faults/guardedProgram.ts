/**
 * @file Programs in machine code on guarded memory: run by guardPages.long.ts.
 *
 * Arguments: the microkernel, how many drawn programs there are of each kind, the programs to run, by number, and their cases:
 * `all` in one, or `each` alone. `end 0 0 beyond` reaches too far on purpose. Before each run a line tells what runs; the last one of a process that was killed is the culprit.
 */
import { writeSync } from 'node:fs';
import { compile, type HostTensor, newHostArray, sizeOf, type TensorSpec } from '../../src/compiler/index.js';
import { openToolchain } from '../../src/compiler/native/toolchain/index.js';
import { mapTree } from '../../src/compiler/program/tensorTrees.js';
import { isSpec } from '../../src/compiler/trace/tracedProgram.js';
import { loadKoffi } from '../../src/system/index.js';
import { type Case, program } from '../compiler/cases/case.js';
import { describeCase, type GuardedProgram, guardedPrograms, inPrecision } from './guardedCases.js';
import { type GuardedMemory, openGuardedMemory, type Side } from './guardedMemory.js';

const tell = (line: string): void => void writeSync(1, `${line}\n`);

/** Runs that differ: which end is guarded, and the threads that share the work. */
const forms: readonly (readonly [side: Side, numThreads: number])[] = [
  ['end', 1],
  ['start', 1],
  ['end', 3],
];

/** The value in bfloat16, which second operands are kept in where they are kept so. */
const toHalf = (values: ArrayLike<number>): Uint16Array =>
  Uint16Array.from(new Uint32Array(Float32Array.from(values).buffer), (bits) => bits >>> 16);

async function run(what: string, of: GuardedProgram, cases: readonly Case[], memory: GuardedMemory) {
  const all = (lists: any[][]) =>
    cases.map((c, i) => program(c, of.precision === 'float32' ? c.f : inPrecision(of, c.f))(lists[i]!));
  const inputs = cases.map((c) => [...c.inputs]);
  const halves = of.halves ? cases.flatMap((c, i) => (c.inputs.length > 1 ? [`${i}.1`] : [])) : [];
  const storages = Object.fromEntries(halves.map((path) => [path, 'bfloat16' as const]));
  for (const [side, numThreads] of forms) {
    const executable = await compile(all as any, inputs, { engine: 'native', numThreads, storages });
    const isHalf = new Map(
      halves.map((path) => [path, executable.newInputs([path])[0] instanceof Uint16Array]),
    );
    const call = executable.bind({
      inputs: mapTree(inputs, isSpec as (value: unknown) => value is HostTensor, ({ data }, path) =>
        memory.copy(isHalf.get(path) ? toHalf(data) : data, side, true),
      ) as any,
      outputs: mapTree<TensorSpec, any>(executable.outputs, isSpec, ({ dtype, shape }) =>
        memory.copy(newHostArray(dtype, sizeOf(shape)), side, false),
      ),
    });
    tell(`${what}: ${side === 'end' ? 'ends at' : 'starts behind'} a closed page, threads: ${numThreads}`);
    await call.run();
    await executable.dispose();
    memory.release();
  }
}

/** What must be killed: else the memory is not guarded. */
async function reachTooFar(memory: GuardedMemory, side: Side): Promise<void> {
  const { address, load } = await loadKoffi();
  const array = memory.copy(new Float32Array(3), side, false);
  const memset = load(null).func('void *memset(void *at, int value, size_t bytes)');
  tell(`a write ${side === 'end' ? 'behind the end' : 'before the start'}`);
  memset(address(array) + (side === 'end' ? 12n : -1n), 0, 1);
}

const [kernel, drawn, numbers, which] = process.argv.slice(2) as [string, string, string, string];
const toolchain = await openToolchain();
if ('reason' in toolchain) throw new Error(toolchain.reason);
const force = (await loadKoffi()).load(toolchain.runtime.library).func('int lt_gemm_force(const char *name)');
const memory = await openGuardedMemory();
if (which === 'beyond') await reachTooFar(memory, kernel as Side);
else if (force(kernel) === 0) tell('not here');
else {
  const programs = guardedPrograms(Number(drawn));
  for (const number of numbers.split(',').map(Number)) {
    const of = programs[number]!;
    if (which === 'all') await run(`${number} ${of.name}`, of, of.cases, memory);
    else
      for (const [i, c] of of.cases.entries())
        await run(`${number} ${of.name}, case ${i} of ${describeCase(c)}`, of, [c], memory);
  }
  tell('done');
}
