/** @file The machine, on which a run's bits depend: recorded, and compared when the run is resumed. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { cpuName, type Executable, nativeTools } from '../compiler/index.js';
import { readRegularFile } from '../files/index.js';
import type { EngineOptions } from './options.js';

/** Engine and hardware of a run, as experiment.json records them. */
export interface Machine {
  /** The engine of the training step; the one asked for where nothing is trained. */
  readonly engine: string;
  /** Name and version of the C compiler, where the engine has one. */
  readonly compiler: string | null;
  /** The set of kernels for products and attention, where the engine has them. */
  readonly kernels: string | null;
  readonly cpu: string;
  readonly threads: number;
  /** The precision of most of the products; null where nothing is trained. */
  readonly precision: string | null;
}

/** The present machine. @param step the compiled training step. */
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
    // A record that is missing or damaged must not keep a run from going on.
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

/** A line for each difference of what both machines have. */
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
