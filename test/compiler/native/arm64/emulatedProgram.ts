/** @file Programs compiled for ARM64, each of whose runs is a process under emulation. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TensorSpec, Tree } from '../../../../src/compiler/index.js';
import { lowerToC } from '../../../../src/compiler/native/c/lowerToC.js';
import { programFlags } from '../../../../src/compiler/native/toolchain/compileC.js';
import { optimize } from '../../../../src/compiler/passes/index.js';
import type { Backend } from '../../../../src/compiler/program/backend.js';
import { compileWithinBorder } from '../../../../src/compiler/program/border.js';
import { Executable } from '../../../../src/compiler/program/executable.js';
import type { Graph } from '../../../../src/compiler/program/ir.js';
import type { BoundArray } from '../../../../src/compiler/program/tensors.js';
import {
  checkProgram,
  type TensorFunction,
  traceProgram,
} from '../../../../src/compiler/trace/tracedProgram.js';
import { execute, runtimeSources } from '../compilerSupport.js';
import { buildRuntime } from '../runtimeSupport.js';
import { crossTarget, emulating } from './crossTools.js';

const main = fileURLToPath(new URL('runProgram.c', import.meta.url));

/** Where programs are built, and the objects that each is linked with. */
export interface Emulation {
  readonly folder: string;
  readonly objects: readonly string[];
}

export async function emulation(folder: string): Promise<Emulation> {
  return { folder, objects: await buildRuntime(/\.c$/, crossTarget(), folder) };
}

let count = 0;

async function build({ folder, objects }: Emulation, source: string): Promise<string> {
  const { compiler, machine, flags } = crossTarget();
  const file = join(folder, `program${count++}.c`);
  writeFileSync(file, source);
  const program = file.replace(/\.c$/, '');
  const { stderr } = await execute(compiler, [
    ...[
      ...programFlags('', [], machine),
      '-Wall',
      '-Wextra',
      '-Werror',
      '-Wno-unused',
      ...flags,
      '-I',
      runtimeSources,
    ],
    ...[file, main, ...objects, '-o', program, '-lpthread', '-ldl', '-lm'],
  ]);
  const warnings = stderr.split('\n').filter((line) => /warning:/.test(line) && !line.includes("'dlopen'"));
  if (warnings.length > 0) throw new Error(warnings.join('\n'));
  return program;
}

/** The backend of a program for ARM64. */
async function compileGraph(emulation: Emulation, graph: Graph, threads: number): Promise<Backend> {
  const lowered = lowerToC(optimize(graph));
  if ('missing' in lowered) throw new Error(`There is no rule for '${lowered.missing}'.`);
  const constants = lowered.plan.constants.map(({ data }) => data!);
  const program = await build(emulation, lowered.source);
  return {
    runner: 'native',
    bind:
      ({ inputs, outputs }) =>
      async () => {
        const [from, to] = [`${program}.in`, `${program}.out`];
        const read: BoundArray[] = [...constants, ...inputs];
        const header = [constants.length, inputs.length, outputs.length];
        const sizes = [...read, ...outputs].map(({ byteLength }) => byteLength);
        const words = new BigInt64Array([...header, ...sizes].map(BigInt));
        writeFileSync(from, Buffer.concat([words, ...read].map(bytesOf)));
        const [command, args] = emulating(program);
        const env = { ...process.env, LUTHIER_GUARD_PAGES: '1' };
        await execute(command, [...args, from, to, String(threads)], { env, timeout: 600_000 });
        const results = readFileSync(to);
        let at = 0;
        for (const output of outputs) {
          bytesOf(output).set(results.subarray(at, at + output.byteLength));
          at += output.byteLength;
        }
      },
    dispose: async () => {},
  };
}

const bytesOf = ({ buffer, byteOffset, byteLength }: BoundArray | BigInt64Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** Compiles a function as `compile` does, for ARM64. */
export async function compileEmulated(
  emulation: Emulation,
  f: TensorFunction,
  inputs: Tree<TensorSpec>,
  threads = 1,
): Promise<Executable> {
  const program = checkProgram(traceProgram(f, inputs));
  const backend = await compileWithinBorder(program.graph, undefined, (graph) =>
    compileGraph(emulation, graph, threads),
  );
  return new Executable('emulated', program, backend);
}
