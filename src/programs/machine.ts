/** @file The machine that a run's bits depend on: recorded, and compared when the run is resumed. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { cpuName, type Executable, nativeTools } from '../compiler/index.js';
import { readRegularFile } from '../files/index.js';
import type { EngineOptions } from './options.js';

/** On what a run computes, as experiment.json has it. */
export interface Machine {
  /** What runs the training step; the engine that was asked for where nothing is trained. */
  readonly engine: string;
  /** Name and version of the C compiler, where the engine has one. */
  readonly compiler: string | null;
  /** The kernels that products and attention run with, where the engine has them. */
  readonly kernels: string | null;
  readonly cpu: string;
  readonly threads: number;
  /** In which most of the products multiply; null where nothing is trained. */
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

/** The machine that a run in this directory has recorded; undefined where none has. */
export function recordedMachine(jobLogDir: string): Partial<Machine> | undefined {
  try {
    const record = JSON.parse(readRegularFile(join(jobLogDir, 'experiment.json')).toString()) as {
      machine?: Partial<Machine>;
    };
    return record.machine;
  } catch {
    // A record that is not there, or not whole, keeps no run from going on.
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

/** A line for each difference; where the engine differs, its compiler is no other one. */
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
