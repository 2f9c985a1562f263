/** @file Benchmark programs and their processes. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Architecture } from './architectures.js';
import type { Precision } from './results.js';
import { endsWithUs } from './stopping.js';

const here = fileURLToPath(new URL('.', import.meta.url));
const timeoutSeconds = 15 * 60;

/** A command with its environment. */
export interface Program {
  readonly command: readonly string[];
  /** Added to the sanitised environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A training program with its settings. */
export interface Candidate extends Program {
  /** Rows of one name compete; the table shows the fastest. */
  readonly name: string;
  readonly how: string;
}

/** A Luthier program, run by this Node without a launcher, so that its memory is its own. */
function node(file: string, ...args: string[]): Program {
  return { command: [process.execPath, '--import', 'tsx', join(here, file), ...args] };
}

/** Python of the environment made by peers/setup.sh. */
export const peersPython = join(
  process.env.LUTHIER_PEERS ??
    join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'luthier', 'peers'),
  'venv/bin/python',
);

export const hasPeers = existsSync(peersPython);

function python(file: string, ...args: string[]): Program {
  return { command: [peersPython, join(here, 'peers', file), ...args] };
}

/** Path of jemalloc for the dynamic linker; undefined if it is not installed. */
function findJemalloc(): string | undefined {
  for (const ldconfig of ['ldconfig', '/sbin/ldconfig']) {
    try {
      const libraries = execFileSync(ldconfig, ['-p'], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      return /libjemalloc\.so\.2 .*=> (\S+)/.exec(libraries)?.[1];
    } catch {
      // Not on the path, or not Linux.
    }
  }
  return undefined;
}

/** glibc settings that keep large blocks instead of returning them to the system after each step. */
const tunedGlibc = {
  MALLOC_TRIM_THRESHOLD_: '4294967296',
  MALLOC_MMAP_THRESHOLD_: '4294967296',
  MALLOC_TOP_PAD_: '268435456',
};

/** Environments by allocator name. Other platforms have no such settings. */
function allocators(): Record<string, Record<string, string>> {
  if (process.platform !== 'linux') return { 'system malloc': {} };
  const jemalloc = findJemalloc();
  return { glibc: {}, ...(jemalloc && { jemalloc: { LD_PRELOAD: jemalloc } }), 'tuned glibc': tunedGlibc };
}

export const precisionNames: Readonly<Record<Precision, string>> = { f32: 'float32', bf16: 'bfloat16' };

/** A measurement for a candidate. */
export interface Task {
  readonly shape: string;
  readonly steps: number;
  /** Limits Luthier's number of steps. */
  readonly seconds?: number;
}

/** Luthier's step in machine code or, for comparison, on ONNX Runtime. */
export function luthier(
  { shape, steps, seconds }: Task,
  precision: Precision,
  threads: number,
  engine: 'native' | 'onnx' = 'native',
): Candidate {
  const flags = { shape, steps, threads, precision, engine, ...(seconds !== undefined && { seconds }) };
  const program = node(
    'luthierStep.ts',
    ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
  );
  const name = engine === 'native' ? 'Luthier' : 'Luthier on ONNX Runtime';
  return {
    ...program,
    name: `${name} ${precisionNames[precision]}`,
    how: `${threads} thread${threads === 1 ? '' : 's'}`,
  };
}

/**
 * PyTorch with all settings that may speed it up: eager and compiled, each allocator; half the threads with the
 * allocator that usually wins.
 */
export function pytorch({ shape, steps }: Task, precision: Precision, threads: number): Candidate[] {
  const one = (mode: string, allocator: string, env: Record<string, string>, count: number): Candidate => ({
    ...python(
      'torch_gpt.py',
      ...[
        `--shape=${shape}`,
        `--steps=${steps}`,
        `--threads=${count}`,
        `--precision=${precision}`,
        `--mode=${mode}`,
      ],
    ),
    env,
    name: `PyTorch ${precisionNames[precision]}`,
    how: `${mode}, ${allocator}, ${count} thread${count === 1 ? '' : 's'}`,
  });
  const choices = Object.entries(allocators());
  return ['eager', 'compile'].flatMap((mode) => {
    const candidates = choices.map(([allocator, env]) => one(mode, allocator, env, threads));
    if (threads > 1) candidates.push(one(mode, ...choices.at(-1)!, threads >> 1));
    return candidates;
  });
}

export function jax({ shape, steps }: Task, precision: Precision): Candidate {
  const program = python('jax_gpt.py', `--shape=${shape}`, `--steps=${steps}`, `--precision=${precision}`);
  return { ...program, name: `JAX ${precisionNames[precision]}`, how: 'jit' };
}

/** Greedy decoding by Luthier and by PyTorch, eager and compiled, on all cores and on half of them. */
export function decodeCandidates(
  { shape, batch }: { readonly shape: string; readonly batch: number },
  precision: Precision,
  threads: number,
): Candidate[] {
  const flagsOf = (mode: Record<string, string>, count: number): string[] =>
    Object.entries({ shape, batch, precision, threads: count, ...mode }).map(
      ([name, value]) => `--${name}=${value}`,
    );
  const howOf = (count: number) => `${count} thread${count === 1 ? '' : 's'}`;
  const own = {
    ...node('luthierDecode.ts', ...flagsOf({ engine: 'native' }, threads)),
    name: `Luthier ${precisionNames[precision]}`,
    how: howOf(threads),
  };
  if (!hasPeers) return [own];
  const counts = threads > 1 ? [threads, threads >> 1] : [threads];
  const peers = ['eager', 'compile'].flatMap((mode) =>
    counts.map((count) => ({
      ...python('torch_decode.py', ...flagsOf({ mode }, count)),
      env: process.platform === 'linux' ? tunedGlibc : {},
      name: `PyTorch ${precisionNames[precision]}`,
      how: `${mode}, ${howOf(count)}`,
    })),
  );
  return [own, ...peers];
}

/** Loss and gradients of an architecture by Luthier, by PyTorch in all modes, and in one mode with other allocators. */
export function beyondCandidates(
  architecture: Architecture,
  precision: Precision,
  limits: { readonly threads: number; readonly seconds: number },
) {
  const flagsOf = (more: Record<string, string>): string[] =>
    Object.entries({ architecture: JSON.stringify(architecture), precision, ...limits, ...more }).map(
      ([name, value]) => `--${name}=${value}`,
    );
  const own = (engine: 'native' | 'onnx'): Candidate => ({
    ...node('luthierBeyond.ts', ...flagsOf({ engine })),
    name: engine === 'native' ? 'Luthier' : 'Luthier on ONNX Runtime',
    how: engine,
  });
  const torch = (mode: string, [allocator, env]: [string, Record<string, string>]): Candidate => ({
    ...python('torch_beyond.py', ...flagsOf({ mode })),
    env,
    name: 'PyTorch',
    how: `${mode}, ${allocator}`,
  });
  // Of images, both orders of axes.
  const orders = architecture.input.length === 4 ? ['', ' channels_last'] : [''];
  const modes = ['eager', 'compile'].flatMap((mode) => orders.map((order) => mode + order));
  const [usual, ...others] = Object.entries(allocators()).reverse();
  const inMemory = (mode: string, some: readonly [string, Record<string, string>][]): Candidate[] =>
    hasPeers ? some.map((allocator) => torch(mode, allocator)) : [];
  return {
    own,
    peers: modes.flatMap((mode) => inMemory(mode, [usual!])),
    /** Those of these settings, as tables name them. */
    named: (hows: readonly string[]) =>
      modes.flatMap((mode) => inMemory(mode, [usual!, ...others])).filter(({ how }) => hows.includes(how)),
    inOtherMemory: ({ how }: Candidate) => inMemory(how.split(',')[0]!, others),
  };
}

/** Steps of LoRA by Luthier, and by PEFT in all modes, with each allocator. */
export function loraCandidates(precision: Precision, steps: number, threads: number): Candidate[] {
  const flags = [`--precision=${precision}`, `--steps=${steps}`, `--threads=${threads}`];
  const own = { ...node('luthierLora.ts', ...flags), name: 'Luthier', how: 'native' };
  const peers = ['eager', 'compile'].flatMap((mode) =>
    Object.entries(allocators()).map(([allocator, env]) => ({
      ...python('torch_lora.py', ...flags, `--mode=${mode}`),
      env,
      name: 'PEFT',
      how: `${mode}, ${allocator}`,
    })),
  );
  return hasPeers ? [own, ...peers] : [own];
}

/** Products of these shapes by Luthier and by PyTorch. */
export function productCandidates(
  precision: Precision,
  limits: { readonly shapes: readonly string[]; readonly threads: number; readonly seconds: number },
): Candidate[] {
  const flags = Object.entries({ precision, ...limits }).map(([name, value]) => `--${name}=${value}`);
  const own = { ...node('luthierProducts.ts', ...flags), name: 'Luthier', how: 'native' };
  return hasPeers
    ? [own, { ...python('torch_products.py', ...flags), name: 'PyTorch', how: 'eager' }]
    : [own];
}

/** Luthier's first step, with programs cached in this folder. */
export const luthierFirstStep = (shape: string, precision: Precision, cache: string): Program => ({
  ...node('luthierFirstStep.ts', `--shape=${shape}`, `--precision=${precision}`),
  env: { XDG_CACHE_HOME: cache },
});

/** A measurement of luthierInputs.ts, or, of the same corpus, of a peer's loader. */
export const luthierInputs = (...args: string[]): Program => node('luthierInputs.ts', ...args);
export const inputLoaders = (...args: string[]): Program => ({
  ...python('input_loaders.py', ...args),
  env: { TOKENIZERS_PARALLELISM: 'false', RAYON_NUM_THREADS: '1' },
});

export const luthierPeak = (precision: Precision): Program => node('luthierPeak.ts', precision);

/**
 * Operations on configs, each for `milliseconds`, on wide graphs and chains of these sizes, and on several graphs per
 * size if `inAll` is larger.
 */
export function luthierConfigs(milliseconds: number, sizes: string, inAll = 1): Program {
  const program = node('configOperations.ts', String(milliseconds), sizes, String(inAll));
  const [executable, ...args] = program.command;
  return { command: [executable!, '--expose-gc', ...args] };
}

/** The same in Fiddle; skips operations expected to take longer than `tooLongSeconds`. */
export function fiddleConfigs(tooLongSeconds: number): Program {
  return python('fiddle_configs.py', '0.5', String(tooLongSeconds));
}

export function torchPeak(precision: Precision): Program {
  return python('torch_peak.py', `--precision=${precision}`);
}

/** Variables that would change how a program computes or allocates. */
const meddling = /^(MALLOC_|LD_PRELOAD$|OMP_|GOMP_|KMP_|MKL_|TORCH|XLA_|JAX_|NODE_OPTIONS$)/;

/**
 * Runs a program to its end and parses the last line of its output as JSON.
 *
 * @param seconds time limit.
 * @throws Error with the end of its stderr, if it fails or exceeds the limit.
 */
export function measure<T>({ command, env }: Program, seconds = timeoutSeconds): Promise<T> {
  const kept = Object.entries(process.env).filter(([name]) => !meddling.test(name));
  const child = spawn(command[0]!, command.slice(1), {
    cwd: join(here, '..'),
    env: { ...Object.fromEntries(kept), PYTHONDONTWRITEBYTECODE: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: Math.ceil(1000 * seconds),
    killSignal: 'SIGKILL',
  });
  endsWithUs(child);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (text) => (stdout += text));
  child.stderr.on('data', (text) => (stderr += text));
  const lines = (text: string) => text.trim().split('\n');
  // Node prints its version below an error, and Python's warnings may follow one.
  const complaint = () =>
    lines(stderr).findLast((line) => /^[\w.]*(Error|Exception)\b/.test(line)) ?? lines(stderr).at(-1);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0) resolve(JSON.parse(lines(stdout).at(-1)!) as T);
      else if (signal === 'SIGKILL') reject(new Error(`it was killed; it may take ${seconds.toFixed(0)} s`));
      else reject(new Error(complaint() || `it ended with ${signal ?? `exit code ${code}`}`));
    });
  });
}
