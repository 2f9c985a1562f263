/** @file `npm run bench:decode`: greedy cached decoding compared with PyTorch's, at batch 1 and 16, in one run. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { memoryBandwidth } from '../src/compiler/index.js';
import { markdownTable } from '../src/review/text/reportFormat.js';
import { decodeCandidates, hasPeers, measure, peersPython } from './programs.js';
import { type DecodeResult, groupBy, median, type Precision } from './results.js';
import { parameterCount, type Shape, shapes } from './shapes.js';
import { whenStopped } from './stopping.js';

const resultsFile = 'out/bench_decode.json';
const allPrecisions: readonly Precision[] = ['f32', 'bf16'];

/** A program and its measurements so far. */
interface Entry {
  readonly shape: string;
  readonly batch: number;
  readonly candidate: ReturnType<typeof decodeCandidates>[number];
  readonly results: DecodeResult[];
  /** Reason why it could not run. */
  failure?: string;
}

/** The fastest setting of a program for a shape and batch. */
interface Best {
  readonly name: string;
  readonly how: string;
  readonly ms: number;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

const { values: flags } = parseArgs({
  options: {
    shapes: { type: 'string', default: 'baby,small' },
    batches: { type: 'string', default: '1,16' },
    precisions: { type: 'string', default: allPrecisions.join(',') },
    rounds: { type: 'string', default: '3' },
    threads: { type: 'string', default: String(availableParallelism()) },
  },
});
const names = flags.shapes.split(',');
const batches = flags.batches.split(',').map(Number);
const precisions = flags.precisions.split(',') as Precision[];
const [rounds, threads] = [Number(flags.rounds), Number(flags.threads)];
const unknown = names.find((name) => !Object.hasOwn(shapes, name));
const isWrong = unknown !== undefined || precisions.some((each) => !allPrecisions.includes(each));
if (isWrong || [...batches, rounds, threads].some((n) => !Number.isInteger(n) || n < 1)) {
  say(
    `Usage: npm run bench:decode -- [--shapes=${Object.keys(shapes).join(',')}] [--batches=1,16] [--precisions=f32,bf16] [--rounds=3] [--threads=2]`,
  );
  process.exit(2);
}

async function runEntry(entry: Entry, round: number): Promise<void> {
  const { shape, batch, candidate, results } = entry;
  const what = `[round ${round}/${rounds}] ${shape}, batch ${batch}: ${candidate.name}, ${candidate.how}`;
  try {
    const result = await measure<DecodeResult>(candidate);
    results.push(result);
    say(`${what}: ${result.medianMs.toFixed(3)} ms a token`);
  } catch (error) {
    entry.failure = (error as Error).message;
    say(`${what}: failed: ${entry.failure}`);
  }
}

/** Bytes of weights read per token: all that are multiplied. */
function weightBytes(shape: Shape, name: string): number {
  const multiplied = parameterCount(shape) - shape.context * shape.width;
  return multiplied * (name.endsWith('bfloat16') ? 2 : 4);
}

function bestOf(entries: readonly Entry[]): Best[] {
  const finished = entries.filter(({ results }) => results.length > 0);
  return [...groupBy(finished, ({ candidate }) => candidate.name)].map(([name, group]) => {
    const rows = group.map(({ candidate, results }) => ({
      name,
      how: candidate.how,
      ms: median(results.map(({ medianMs }) => medianMs)),
    }));
    return rows.sort((a, b) => a.ms - b.ms)[0]!;
  });
}

function report(
  shapeName: string,
  batch: number,
  entries: readonly Entry[],
  bandwidth: number | null,
): string {
  const shape = shapes[shapeName]!;
  const best = bestOf(entries.filter((entry) => entry.shape === shapeName && entry.batch === batch));
  const rate = ({ name, ms }: Best): number => weightBytes(shape, name) / (ms / 1000);
  const rows = best.map((row) => [
    row.name,
    row.ms.toFixed(3),
    ((batch * 1000) / row.ms).toFixed(0),
    (rate(row) / 1e9).toFixed(1),
    bandwidth === null ? '–' : `${((100 * rate(row)) / bandwidth).toFixed(0)} %`,
    row.how,
  ]);
  const header = ['', 'ms a token', 'tokens/s', 'weights GB/s', 'of memory', 'how'];
  const own = best.filter(({ name }) => name.startsWith('Luthier'));
  const peers = best.filter(({ name }) => !name.startsWith('Luthier'));
  const ratios = own.flatMap((row) =>
    peers.map((peer) => `${row.name} is ${(peer.ms / row.ms).toFixed(2)} times as fast as ${peer.name}.`),
  );
  return [`### ${shapeName}, batch ${batch}`, markdownTable(rows, header), ratios.join('\n')].join('\n\n');
}

if (!hasPeers) say(`PyTorch is left out: there is no ${peersPython}; bench/peers/setup.sh makes it.`);
const entries: Entry[] = names.flatMap((shape) =>
  batches.flatMap((batch) =>
    precisions.flatMap((precision) =>
      decodeCandidates({ shape, batch }, precision, threads).map((candidate) => ({
        shape,
        batch,
        candidate,
        results: [],
      })),
    ),
  ),
);
let bandwidth: number | null = null;

/** Shows the measurements so far. */
function finish(): void {
  const parts = names.flatMap((name) => batches.map((batch) => report(name, batch, entries, bandwidth)));
  const memory =
    bandwidth === null
      ? ''
      : `Memory is read at ${(bandwidth / 1e9).toFixed(1)} GB/s, ${threads} threads.\n\n`;
  process.stdout.write(`\n${memory}${parts.join('\n\n')}\n\nEvery measurement is in ${resultsFile}.\n`);
}

mkdirSync('out', { recursive: true });
whenStopped(finish);
for (let round = 1; round <= rounds; round++) {
  const found = await memoryBandwidth(threads);
  if (found !== null) bandwidth = Math.max(bandwidth ?? 0, found);
  const running = entries.filter(({ failure }) => failure === undefined);
  for (const entry of round % 2 === 1 ? running : running.toReversed()) {
    await runEntry(entry, round);
    writeFileSync(resultsFile, `${JSON.stringify({ threads, rounds, bandwidth, entries }, null, 1)}\n`);
  }
}
finish();
// Without a Luthier figure there is no benchmark.
if (entries.some(({ candidate, results }) => candidate.name.startsWith('Luthier') && results.length === 0))
  process.exitCode = 1;
// The native engine's threads would keep the process alive.
process.exit();
