/** @file `npm run bench:configs`: operations on configs compared with Fiddle's, and their growth with size. */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { markdownTable } from '../src/review/text/reportFormat.js';
import { fiddleConfigs, hasPeers, luthierConfigs, type Program, peersPython } from './programs.js';
import { groupBy, median } from './results.js';
import { endsWithUs, whenStopped } from './stopping.js';

const resultsFile = 'out/bench_configs.json';
/** Time budget of `--quick` in seconds, without node's start. */
const quickSeconds = 105;

/** Time of an operation on a graph, or why it failed. */
interface Timing {
  readonly shape: string;
  readonly size: number;
  readonly operation: string;
  readonly ms?: number;
  readonly failure?: string;
}

/** Measurements of a program so far. */
interface Measured {
  version: string;
  readonly timings: Timing[];
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Runs a program to its end, showing each line and adding it to `rounds` as it comes. */
async function run({ command, env }: Program, rounds: Measured[]): Promise<void> {
  const [file, ...args] = command;
  const child = spawn(file!, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  endsWithUs(child);
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  const measured: Measured = { version: '', timings: [] };
  rounds.push(measured);
  for await (const text of createInterface({ input: child.stdout })) {
    const line = JSON.parse(text) as Timing | Pick<Measured, 'version'>;
    if ('version' in line) measured.version = line.version;
    else {
      measured.timings.push(line);
      say(`${measured.version}, ${keyOf(line)}: ${show(line)}`);
    }
  }
  const code = await ended;
  if (code !== 0) throw new Error(`${command.join(' ')} ended with exit code ${code}`);
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

/** Time per config at the largest size over that at the smallest: 1 is linear. */
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
    rounds: { type: 'string' },
    // Operations that would take Fiddle more seconds than this are skipped in the first round; in later ones the limit
    // is 3.
    patience: { type: 'string' },
    // One round of short measurements on fewer and smaller graphs.
    quick: { type: 'boolean', default: false },
    fiddle: { type: 'boolean', default: true },
  },
  allowNegative: true,
});

function positive(name: 'rounds' | 'patience', otherwise: number): number {
  const value = Number(values[name] ?? otherwise);
  if (Number.isInteger(value) && value > 0) return value;
  throw new Error(`--${name}: expected a positive integer; got '${values[name]}'`);
}

const { quick } = values;
const [rounds, patience] = [positive('rounds', quick ? 1 : 3), positive('patience', quick ? 1 : 300)];
const sizes = quick
  ? { milliseconds: 50, beside: '100,1000', linear: '1000,4000', inAll: 4000 }
  : { milliseconds: 500, beside: '100,1000,10000', linear: '1000,10000,100000', inAll: 100_000 };
const absence = `Fiddle is left out: there is no ${peersPython}; bench/peers/setup.sh makes it.`;
const withPeer = values.fiddle && hasPeers;
if (values.fiddle && !hasPeers) say(absence);

const own: Measured[] = [];
const peer: Measured[] = [];
const linear: Measured[] = [];

/** Writes and shows the measurements so far. */
function finish(): void {
  mkdirSync('out', { recursive: true });
  writeFileSync(resultsFile, JSON.stringify({ own, peer, linear }, null, 1));
  const grown = [...merged(linear).values()].filter(({ size, shape }) => size >= 1000 && shape !== 'writes');
  const report = [
    `${own[0]?.version}${peer.length > 0 ? ` beside ${peer[0]!.version}` : ''}; medians of ${own.length} rounds`,
    comparison(merged(own), merged(peer)),
    ...(grown.length > 0 ? [growth(grown)] : []),
    ...(values.fiddle && !hasPeers ? [absence] : []),
  ];
  process.stdout.write(`${report.join('\n\n')}\n`);
}

whenStopped(finish);
if (quick) {
  const stop = (): void => {
    say(`--quick ends after ${quickSeconds} s: what is not shown is left out.`);
    finish();
    process.exit();
  };
  setTimeout(stop, 1000 * quickSeconds).unref();
}
for (let round = 0; round < rounds; round++) {
  await run(luthierConfigs(sizes.milliseconds, sizes.beside), own);
  if (withPeer) await run(fiddleConfigs(round === 0 ? patience : 3), peer);
  await run(luthierConfigs(sizes.milliseconds, sizes.linear, sizes.inAll), linear);
}
finish();
