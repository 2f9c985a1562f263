/** @file An architecture's loss and gradients by Luthier beside PyTorch's: times, and whether both compute the same. */
import { availableParallelism } from 'node:os';
import type { Architecture } from './architectures.js';
import { beyondCandidates, type Candidate, measure, precisionNames } from './programs.js';
import type { Precision } from './results.js';

/** The line of JSON of one process. */
interface Result {
  readonly minMs: number;
  readonly medianMs: number;
  /** CPU time of all threads, of the step that took least. */
  readonly minCpuMs: number;
  readonly loss: number;
  /** Euclidean, of all parameters. */
  readonly gradientNorm: number;
}

/** The shortest step of a candidate over all rounds. */
interface Best {
  readonly candidate: Candidate;
  ms: number;
  result?: Result;
}

/** Flags of both benchmarks. */
export const settingFlags = {
  precisions: { type: 'string', default: 'f32,bf16' },
  threads: { type: 'string', default: String(availableParallelism()) },
  /** Of one process. */
  seconds: { type: 'string', default: '3' },
  rounds: { type: 'string', default: '2' },
  /** Of PyTorch only what an earlier table names, as 'compile, tuned glibc;eager, glibc': a run of seconds. */
  modes: { type: 'string', default: '' },
  /** ONNX Runtime as well. */
  onnx: { type: 'boolean', default: false },
  /** CPU time in place of the clock's: on one thread, it is hardly longer beside other programs. */
  cpu: { type: 'boolean', default: false },
  /** Cores that other processes keep busy; times are medians then. */
  neighbours: { type: 'string', default: '0' },
} as const;

type Flags = {
  readonly [K in keyof typeof settingFlags]: (typeof settingFlags)[K]['type'] extends 'string'
    ? string
    : boolean;
};

/** From the second round on only so many of the fastest settings of PyTorch run. */
const FINALISTS = 2;

/** Relative differences of losses and of gradients' norms between programs that compute the same. */
const TOLERANCES: Readonly<Record<Precision, { readonly loss: number; readonly gradientNorm: number }>> = {
  f32: { loss: 1e-4, gradientNorm: 1e-3 },
  bf16: { loss: 0.02, gradientNorm: 0.1 },
};

/** @throws Error if the two compute something else. */
function checkAgreement(name: string, precision: Precision, own: Result, peer: Result): void {
  for (const figure of ['loss', 'gradientNorm'] as const) {
    const difference = Math.abs(own[figure] - peer[figure]) / Math.abs(peer[figure]);
    if (!(difference <= TOLERANCES[precision][figure]))
      throw new Error(`${name}, ${precision}: ${figure} is ${own[figure]}, PyTorch's ${peer[figure]}`);
  }
}

/** The shortest steps in ms of one precision; Infinity where none could be measured. */
export interface Comparison {
  readonly precision: Precision;
  readonly own: number;
  readonly onnx: number;
  readonly peer: number;
  /** Of the peer. */
  readonly how: string;
}

/** Measures all candidates in turns. @throws Error if PyTorch computes something else */
async function compareIn(
  precision: Precision,
  name: string,
  architecture: Architecture,
  flags: Flags,
): Promise<Comparison> {
  const limits = { threads: Number(flags.threads), seconds: Number(flags.seconds) };
  const statistic = flags.cpu ? 'minCpuMs' : flags.neighbours === '0' ? 'minMs' : 'medianMs';
  const candidates = beyondCandidates(architecture, precision, limits);
  const begun = (candidate: Candidate): Best => ({ candidate, ms: Infinity });
  const own = begun(candidates.own('native'));
  const onnx = begun(candidates.own('onnx'));
  const peers = (flags.modes ? candidates.named(flags.modes.split(';')) : candidates.peers).map(begun);
  const run = async (bests: readonly Best[]): Promise<void> => {
    for (const best of bests) {
      const label = `${name} ${precision}: ${best.candidate.name}, ${best.candidate.how}`;
      try {
        best.result = await measure<Result>(best.candidate);
        best.ms = Math.min(best.ms, best.result[statistic]);
        process.stderr.write(`${label}: ${best.ms.toFixed(1)} ms\n`);
      } catch (error) {
        process.stderr.write(`${label}: ${(error as Error).message}\n`);
      }
    }
    peers.sort((a, b) => a.ms - b.ms);
  };
  await run([own, ...(flags.onnx ? [onnx] : []), ...peers]);
  const [fastest] = flags.modes ? [] : peers;
  const others = fastest ? candidates.inOtherMemory(fastest.candidate).map(begun) : [];
  peers.push(...others);
  await run(others);
  for (let round = 1; round < Number(flags.rounds); round++) await run([own, ...peers.slice(0, FINALISTS)]);
  const [peer] = peers;
  if (own.result && peer?.result) checkAgreement(name, precision, own.result, peer.result);
  const how = peer?.candidate.how ?? '';
  return { precision, own: own.ms, onnx: onnx.ms, peer: peer?.ms ?? Infinity, how };
}

/** Compares in each precision in turn. */
export async function compare(name: string, architecture: Architecture, flags: Flags): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const precision of flags.precisions.split(',') as Precision[])
    comparisons.push(await compareIn(precision, name, architecture, flags));
  return comparisons;
}

/** Head of the rows of `comparisonRows`. */
export const COMPARISON_HEAD = [
  ...['', 'precision', 'Luthier, ms', 'on ONNX Runtime', 'PyTorch, ms', 'its mode', 'PyTorch / Luthier'],
  "PyTorch's faster precision / Luthier",
];

/** Rows of a table, one for each precision. */
export function comparisonRows(name: string, comparisons: readonly Comparison[]): string[][] {
  const fastest = Math.min(...comparisons.map(({ peer }) => peer));
  const number = (value: number, digits: number) => (Number.isFinite(value) ? value.toFixed(digits) : '–');
  return comparisons.map(({ precision, own, onnx, peer, how }) => [
    ...[name, precisionNames[precision], number(own, 1), number(onnx, 1), number(peer, 1), how],
    ...[number(peer / own, 2), number(fastest / own, 2)],
  ]);
}
