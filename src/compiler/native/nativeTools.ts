/** @file Identity of the CPU, C compiler and kernels, on which the bits of results depend. */
import { cpus } from 'node:os';
import { kernelNames, type Transpose, transposition } from './library.js';
import { cpuFeatures, shortCpu } from './toolchain/cpuFeatures.js';
import { openToolchain } from './toolchain/index.js';
import { type Bfloat16Products, type KernelTable, kernelTable, wayOf } from './toolchain/kernelTable.js';

/** Model and extensions, such as `AMD EPYC 9B45 (avx2 avx512_bf16 avx512f fma)`. */
export async function cpuName(): Promise<string> {
  return shortCpu(await cpuFeatures(), cpus()[0]?.model ?? '');
}

/** Tools behind machine code. */
interface NativeTools {
  /** Name and version of the C compiler, with the arguments in $CC. */
  readonly compiler: string;
  /** Kernels of products and attention. Optional ones count if they compiled here and run on this CPU. */
  readonly kernels: string;
}

/** Null where there is no suitable C compiler. @param products of bfloat16; by default those of tiles or bf16 instructions, if there are some. */
export async function nativeTools(products?: Bfloat16Products): Promise<NativeTools | null> {
  const toolchain = await openToolchain();
  if ('reason' in toolchain) return null;
  return {
    compiler: toolchain.compiler.version,
    kernels: await kernelNames(toolchain.runtime.library, products && wayOf(products)),
  };
}

/**
 * How fast this machine's kernels are, as measured when the first program needed it; null where there is no suitable C
 * compiler.
 *
 * @param isNew whether it is measured again.
 */
export async function kernelRates(isNew = false): Promise<KernelTable | null> {
  const toolchain = await openToolchain();
  return 'reason' in toolchain ? null : kernelTable(toolchain, isNew);
}

/** Transposes several times as fast as JavaScript does; null where there is no suitable C compiler. */
export async function nativeTransposition(): Promise<Transpose | null> {
  const toolchain = await openToolchain();
  return 'reason' in toolchain ? null : transposition(toolchain.runtime.library);
}
