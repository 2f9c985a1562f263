/** @file `npm run bench:configs`: operations on configs beside Fiddle's, and how their time grows, in one run. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { markdownTable } from '../src/tools/format.js';
import { fiddleConfigs, hasPeers, luthierConfigs, type Program } from './programs.js';
import { groupBy, median } from './results.js';

const resultsFile = 'out/bench_configs.json';

/** What one operation on one graph took, or why it did not end. */
interface Timing {
  readonly shape: string;
  readonly size: number;
  readonly operation: string;
  readonly ms?: number;
  readonly failure?: string;
}

interface Measured {
  readonly version: string;
  readonly timings: readonly Timing[];
}

/** Runs a program to its end and reads the lines that it prints. */
function run({ command, env }: Program): Measured {
  process.stderr.write(`${command.join(' ')}\n`);
  const [file, ...args] = command;
  const output = execFileSync(file!, args, {
    encoding: 'utf8',
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const { version } = lines.find((line) => 'version' in line);
  return { version, timings: lines.filter((line) => 'operation' in line) };
}

const keyOf = ({ shape, size, operation }: Timing) => `${shape} ${size} ${operation}`;

/** The median of each timing over the rounds. */
function merged(rounds: readonly Measured[]): Map<string, Timing> {
  const groups = groupBy(
    rounds.flatMap((round) => round.timings),
    keyOf,
  );
  return new Map(
    [...groups].map(([key, timings]) => {
      const times = timings.flatMap((timing) => timing.ms ?? []);
      return [key, times.length > 0 ? { ...timings[0]!, ms: median(times) } : timings[0]!];
    }),
  );
}

function show(timing: Timing | undefined): string {
  if (timing === undefined) return '–';
  const { ms, failure } = timing;
  if (ms === undefined) return failure!;
  return ms < 1 ? `${(ms * 1000).toFixed(0)} µs` : `${ms.toFixed(ms < 100 ? 1 : 0)} ms`;
}

function comparison(own: Map<string, Timing>, peer: Map<string, Timing>): string {
  const rows = [...own.values()].map((timing) => {
    const other = peer.get(keyOf(timing));
    const ratio = timing.ms && other?.ms ? `${(other.ms / timing.ms).toFixed(1)}` : '';
    return [timing.shape, String(timing.size), timing.operation, show(timing), show(other), ratio];
  });
  return markdownTable(rows, ['graph', 'configs', 'operation', 'Luthier', 'Fiddle', 'times as fast']);
}

/** Time over size at the largest against the same at the smallest size: 1 is linear. */
function growth(timings: readonly Timing[]): string {
  const groups = groupBy(timings, ({ shape, operation }) => `${shape} ${operation}`);
  const rows = [...groups.values()].map((group) => {
    const [smallest, largest] = [group[0]!, group.at(-1)!];
    const ratio = largest.ms! / largest.size / (smallest.ms! / smallest.size);
    return [
      smallest.shape,
      smallest.operation,
      ...group.map((timing) => `${((1000 * timing.ms!) / timing.size).toFixed(2)}`),
      ratio.toFixed(2),
    ];
  });
  const sizes = [...new Set(timings.map((timing) => timing.size))];
  return markdownTable(rows, ['graph', 'operation', ...sizes.map((n) => `µs a config at ${n}`), 'grows by']);
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    // What takes Fiddle longer than this many seconds is not begun in the first round; in the others it is 3.
    patience: { type: 'string', default: '300' },
    fiddle: { type: 'boolean', default: true },
  },
  allowNegative: true,
});

function positive(name: 'rounds' | 'patience'): number {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value > 0) return value;
  throw new Error(`--${name}: expected a positive integer; got '${values[name]}'`);
}

const [rounds, patience] = [positive('rounds'), positive('patience')];
const withPeer = values.fiddle && hasPeers;
if (values.fiddle && !hasPeers)
  process.stderr.write('Fiddle is not there: run bench/peers/setup.sh first.\n');

const own: Measured[] = [];
const peer: Measured[] = [];
const linear: Measured[] = [];
for (let round = 0; round < rounds; round++) {
  own.push(run(luthierConfigs('100,1000,10000')));
  if (withPeer) peer.push(run(fiddleConfigs(round === 0 ? patience : 3)));
  linear.push(run(luthierConfigs('1000,10000,100000', 100_000)));
}
const report = [
  `${own[0]!.version}${withPeer ? ` beside ${peer[0]!.version}` : ''}; medians of ${rounds} rounds`,
  comparison(merged(own), merged(peer)),
  growth([...merged(linear).values()].filter(({ size, shape }) => size >= 1000 && shape !== 'writes')),
].join('\n\n');
mkdirSync('out', { recursive: true });
writeFileSync(resultsFile, JSON.stringify({ own, peer, linear }, null, 1));
process.stdout.write(`${report}\n`);
