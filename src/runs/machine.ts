/** @file Machine of a run, which determines its bits: recorded, and compared when the run is resumed. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { cpuName, type Executable, nativeTools } from '../compiler/index.js';
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
});

/** Engine and hardware of a run, as experiment.json records them. */
export type Machine = Readonly<z.output<typeof schema>>;

type RecordedMachine = { readonly [Key in keyof Machine]?: Machine[Key] | undefined };

const recordSchema = z.looseObject({ machine: schema.partial().optional() });

/** Describes the present machine. @param step the compiled training step. */
export async function machineOf(
  { engine = 'auto', numThreads }: EngineOptions,
  step?: Pick<Executable, 'runner' | 'precision'>,
): Promise<Machine> {
  const runner = step?.runner ?? engine;
  const tools = runner === 'native' ? await nativeTools() : null;
  return {
    engine: runner,
    compiler: tools?.compiler ?? null,
    kernels: tools?.kernels ?? null,
    cpu: await cpuName(),
    threads: numThreads ?? availableParallelism(),
    precision: step?.precision ?? null,
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

const NAMES: Readonly<Record<keyof Machine, string>> = {
  engine: 'engine',
  compiler: 'C compiler',
  kernels: 'set of kernels',
  cpu: 'CPU',
  threads: 'number of threads',
  precision: 'precision of products',
};

/** One line per difference between known properties of two machines that may change bits. */
export function machineChanges(before: RecordedMachine, now: Machine): string[] {
  // Machine code gives the same bits on any number of threads.
  const matters = (key: keyof Machine): boolean =>
    key !== 'threads' || before.engine !== 'native' || now.engine !== 'native';
  const keys = (Object.keys(NAMES) as (keyof Machine)[]).filter(
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
