/** @file Machine of a run, which determines its bits: recorded, and compared when the run is resumed. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import {
  BFLOAT16_PRODUCTS,
  chooseBfloat16,
  cpuName,
  type Executable,
  kernelRates,
  namedRates,
  nativeTools,
  productsBy,
} from '../compiler/index.js';
import { readJsonFile } from '../files/index.js';
import type { EngineOptions } from './options.js';

const schema = z.object({
  /** Engine of the training step; without training, the requested engine. */
  engine: z.string(),
  /** Name and version of the C compiler, for engines that have one. */
  compiler: z.string().nullable(),
  /** Kernels of products and attention, for engines that have them. */
  kernels: z.string().nullable(),
  cpu: z.string(),
  threads: z.number(),
  /** Precision of most products; null without training. */
  precision: z.string().nullable(),
  /** How machine code multiplies bfloat16; null without training. */
  bfloat16Products: z.enum(BFLOAT16_PRODUCTS).nullable(),
  /** GFLOP/s by which that was chosen, of this machine. */
  rates: z.record(z.string(), z.number()).nullable(),
});

/** Engine and hardware of a run, as experiment.json records them. */
export type Machine = Readonly<z.output<typeof schema>>;

type RecordedMachine = { readonly [Key in keyof Machine]?: Machine[Key] | undefined };

const recordSchema = z.looseObject({ machine: schema.partial().optional() });

/** Describes the present machine. @param step the compiled training step. */
export async function machineOf(
  { engine = 'auto', numThreads, bfloat16Products }: EngineOptions,
  step?: Pick<Executable, 'runner' | 'precision'>,
): Promise<Machine> {
  const runner = step?.runner ?? engine;
  const table = runner === 'native' && step !== undefined ? await kernelRates() : null;
  const asked = table && (bfloat16Products ?? chooseBfloat16(table));
  const products = asked && productsBy((await nativeTools())!.kernels, asked);
  const tools = runner === 'native' ? await nativeTools(products ?? undefined) : null;
  return {
    engine: runner,
    compiler: tools?.compiler ?? null,
    kernels: tools?.kernels ?? null,
    cpu: await cpuName(),
    threads: numThreads ?? availableParallelism(),
    precision: step?.precision ?? null,
    bfloat16Products: products,
    rates: table && namedRates(table),
  };
}

/** The machine recorded in a job's directory, if any. */
export function recordedMachine(jobLogDir: string): RecordedMachine | undefined {
  try {
    return readJsonFile(join(jobLogDir, 'experiment.json'), recordSchema).machine;
  } catch {
    // A missing or damaged record must not stop a run.
    return undefined;
  }
}

/**
 * What a run keeps to where it is resumed, evaluated or served: the products of bfloat16 with which it has begun. Older
 * records only name the kernels.
 */
export function keptProducts(jobLogDir: string): Pick<EngineOptions, 'bfloat16Products'> {
  const { bfloat16Products, kernels } = recordedMachine(jobLogDir) ?? {};
  if (bfloat16Products) return { bfloat16Products };
  return kernels?.includes('avx512bf16') ? { bfloat16Products: 'bf16 instructions' } : {};
}

/** Properties that results depend on, in words. */
const NAMES: Readonly<Record<Exclude<keyof Machine, 'rates'>, string>> = {
  engine: 'engine',
  compiler: 'C compiler',
  kernels: 'set of kernels',
  cpu: 'CPU',
  threads: 'number of threads',
  precision: 'precision of products',
  bfloat16Products: 'way of multiplying bfloat16',
};

/** One line per difference between known properties of two machines that may change bits. */
export function machineChanges(before: RecordedMachine, now: Machine): string[] {
  // Machine code gives the same bits on any number of threads.
  const matters = (key: keyof typeof NAMES): boolean =>
    key !== 'threads' || before.engine !== 'native' || now.engine !== 'native';
  const keys = (Object.keys(NAMES) as (keyof typeof NAMES)[]).filter(
    (key) =>
      before[key] !== undefined &&
      before[key] !== null &&
      now[key] !== null &&
      before[key] !== now[key] &&
      matters(key),
  );
  return keys.map(
    (key) =>
      `Going on with another ${NAMES[key]}: ${now[key]}, before ${before[key]}. ` +
      'The bits may differ from those of a run that was not stopped.',
  );
}
