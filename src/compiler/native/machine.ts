/** @file What of a machine the bits of a program's results depend on, in words for people. */
import { cpus } from 'node:os';
import { cpuFeatures, shortCpu } from './toolchain/cpu.js';
import { openToolchain } from './toolchain/index.js';

/** Model and extensions, such as `AMD EPYC 9B45 (avx2 avx512_bf16 avx512f fma)`. */
export async function cpuName(): Promise<string> {
  return shortCpu(await cpuFeatures(), cpus()[0]?.model ?? '');
}

/** Name and version of the C compiler that makes machine code; null where there is none. */
export async function compilerName(): Promise<string | null> {
  const toolchain = await openToolchain();
  return 'reason' in toolchain ? null : toolchain.compiler.version;
}
