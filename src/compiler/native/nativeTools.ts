/** @file Names of the CPU, C compiler and kernels, on which the bits of a program's results depend. */
import { cpus } from 'node:os';
import { kernelNames } from './library.js';
import { cpuFeatures, shortCpu } from './toolchain/cpuFeatures.js';
import { openToolchain } from './toolchain/index.js';

/** Model and extensions, such as `AMD EPYC 9B45 (avx2 avx512_bf16 avx512f fma)`. */
export async function cpuName(): Promise<string> {
  return shortCpu(await cpuFeatures(), cpus()[0]?.model ?? '');
}

/** What makes machine code here, and is linked with it. */
export interface NativeTools {
  /** Name and version of the C compiler, with the arguments that $CC gives it. */
  readonly compiler: string;
  /** What products and attention run with: of those that are made for some CPUs alone, the ones that compiled here and run. */
  readonly kernels: string;
}

/** Null where there is no C compiler that will do. */
export async function nativeTools(): Promise<NativeTools | null> {
  const toolchain = await openToolchain();
  if ('reason' in toolchain) return null;
  return {
    compiler: toolchain.compiler.version,
    kernels: await kernelNames(toolchain.runtime.library),
  };
}
