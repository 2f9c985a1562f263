/** @file Machine of a run, which determines its bits: recorded, and compared when the run is resumed. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { cpuName, type Executable, nativeTools } from '../compiler/index.js';
import { readRegularFile } from '../files/index.js';
import type { EngineOptions } from './options.js';

/** Engine and hardware of a run, as experiment.json records them. */
export interface Machine {
  /** Engine of the training step; without training, the requested engine. */
  readonly engine: string;
  /** Name and version of the C compiler, for engines that have one. */
  readonly compiler: string | null;
  /** Kernels of products and attention, for engines that have them. */
  readonly kernels: string | null;
  readonly cpu: string;
  readonly threads: number;
  /** Precision of most products; null without training. */
  readonly precision: string | null;
}

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
export function recordedMachine(jobLogDir: string): Partial<Machine> | undefined {
  try {
    const record = JSON.parse(readRegularFile(join(jobLogDir, 'experiment.json')).toString()) as {
      machine?: Partial<Machine>;
    };
    return record.machine;
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

/** One line per difference between known properties of two machines. */
export function machineChanges(before: Partial<Machine>, now: Machine): string[] {
  const keys = (Object.keys(NAMES) as (keyof Machine)[]).filter(
    (key) =>
      before[key] !== undefined && before[key] !== null && now[key] !== null && before[key] !== now[key],
  );
  return keys.map(
    (key) =>
      `Going on with another ${NAMES[key]}: ${now[key]}, before ${before[key]}. ` +
      'The bits may differ from those of a run that was not stopped.',
  );
}
