/** @file `luthier cache`: the native engine's compiled programs on this machine, and their removal. */
import { basename } from 'node:path';
import type { CachedEntry } from '../compiler/native/toolchain/index.js';
import { counted, formatBytes } from '../review/text/index.js';
import { didYouMean, headedTable, textTable, UsageError } from '../system/text/index.js';
import type { Command, Report } from './command.js';

/** Entries of the cache, and the outcome of a command on them. */
interface Found {
  readonly path: string;
  /** Most bytes of all entries together. */
  readonly limit: number;
  readonly entries: readonly CachedEntry[];
}

const units: readonly (readonly [seconds: number, unit: string])[] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
];

/** `45 s`, `3 min`, `2 h`, `14 d`. */
export function formatAge(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [size, unit] = units.find(([least]) => seconds >= least) ?? [1, 's'];
  return `${Math.floor(seconds / size)} ${unit}`;
}

const header = ['kind', 'name', 'size', 'unused for', 'compiler'];

function rowOf({ kind, name, bytes, lastUsed, inUse, compiler }: CachedEntry): string[] {
  const age = inUse ? 'in use' : formatAge(Date.now() - lastUsed.getTime());
  return [kind, name, formatBytes(bytes), age, compiler];
}

const total = (entries: readonly CachedEntry[]): string =>
  formatBytes(entries.reduce((sum, { bytes }) => sum + bytes, 0));

const entryCount = (entries: readonly CachedEntry[]): string => counted(entries.length, 'entry', 'entries');

function summaryOf({ path, limit, entries }: Found): string {
  return entries.length === 0
    ? `No programs are cached in ${path}.`
    : `${entryCount(entries)}, ${total(entries)} of at most ${formatBytes(limit)}, in ${path}.`;
}

function documentOf({ kind, name, folder, bytes, lastUsed, inUse, compiler }: CachedEntry): object {
  return { kind, name, folder: basename(folder), bytes, lastUsed: lastUsed.toISOString(), inUse, compiler };
}

function listReport(found: Found): Report {
  const rows = found.entries.map(rowOf);
  const summary = summaryOf(found);
  return {
    text: (paint) => (rows.length === 0 ? summary : `${headedTable(rows, header, paint)}\n\n${summary}`),
    json: () => ({ path: found.path, limit: found.limit, entries: found.entries.map(documentOf) }),
  };
}

function clearReport({ path, entries }: Found): Report {
  const kept = entries.filter(({ inUse }) => inUse);
  const removed = entries.filter(({ inUse }) => !inUse);
  const gone =
    removed.length === 0 ? 'Nothing was removed' : `Removed ${entryCount(removed)}, ${total(removed)}`;
  const stays = kept.length === 1 ? 'is in use and was kept' : 'are in use and were kept';
  const still = kept.length === 0 ? '' : ` ${entryCount(kept)} ${stays}.`;
  return {
    text: () => `${gone} from ${path}.${still}`,
    json: () => ({ path, removed: removed.map(documentOf), kept: kept.map(documentOf) }),
  };
}

/** Reads the cache that this environment names. */
async function look(): Promise<Found> {
  const { cacheLimit, cachePath, checkFolder, listEntries } = await import(
    '../compiler/native/toolchain/index.js'
  );
  try {
    const path = checkFolder(cachePath(process.env));
    return { path, limit: cacheLimit(process.env), entries: listEntries(path) };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** Measures the machine's kernels again. */
async function measureReport(): Promise<Report> {
  const { kernelRates, chooseBfloat16, namedRates } = await import('../compiler/index.js');
  const table = await kernelRates(true);
  if (table === null)
    throw new UsageError('There are no kernels to measure: the native engine does not run here.');
  const bfloat16 = chooseBfloat16(table);
  const rates = namedRates(table);
  const rows = Object.entries(rates).map(([name, rate]) => [name, rate.toFixed(1)]);
  return {
    text: () =>
      `${textTable(rows, ['products', 'GFLOP/s'])}\n\n${table.kernels}; new runs multiply bfloat16 by ${bfloat16}.`,
    json: () => ({ kernels: table.kernels, bfloat16, rates }),
  };
}

const actions = ['list', 'clear', 'measure'] as const;

export const cache: Command = {
  usage: 'list|clear|measure',
  positionals: [1, 1],
  flags: {},
  changes: false,
  details: [
    'The native engine compiles its kernels once per machine, and each program once. They are kept in',
    '$XDG_CACHE_HOME/luthier or ~/.cache/luthier. Above LUTHIER_CACHE_MB megabytes (512), the least recently used are removed.',
    "Failed builds are kept, too, with the compiler's output. clear keeps entries in use. measure measures",
    'the kernels again, by whose speed new runs choose how they multiply bfloat16.',
    '',
    '  npx luthier cache list',
    '  npx luthier cache clear',
    '  npx luthier cache measure',
    '',
    'Exit codes: 0; 2 for a wrong command line, or a cache that other users could write to.',
  ].join('\n'),
  async run({ positionals }) {
    const action = positionals[0]!;
    if (!actions.some((known) => known === action)) {
      throw new UsageError(
        `luthier cache has no action '${action}'.${didYouMean(action, actions)} The actions are: ${actions.join(', ')}.`,
      );
    }
    const found = await look();
    if (action === 'measure') return measureReport();
    if (action === 'list') return listReport(found);
    const { dropEntry, removeLeftovers } = await import('../compiler/native/toolchain/index.js');
    found.entries.filter(({ inUse }) => !inUse).forEach(dropEntry);
    removeLeftovers(found.path);
    return clearReport(found);
  },
};
