/**
 * @file Mutants read one after another, in a process of their own.
 *
 * Arguments: the kind, a folder to write in, the seed, the number of mutants, and the number of the first one. A line tells what a
 * mutant is before it is read, and a line of its problem, or none, follows.
 */
import { readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { bounds } from './bounds.js';
import { broken } from './broken.js';
import { kinds } from './kinds.js';
import type { MutantKind, Seed } from './mutantKind.js';
import { describeMutation, type Mutation, mutated, mutationsOf } from './mutations.js';

const [name, folder, ...numbers] = process.argv.slice(2) as [string, string, ...string[]];
const [seed, count, first] = numbers.map(Number) as [number, number, number];

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const tell = (line: string): void => void writeSync(1, `${line}\n`);

/** What no message of ours has: those of V8, and values that are none. */
const FOREIGN =
  /\b(Range|Type|Syntax|Reference|Assertion)Error\b|[Ii]nvalid (typed )?(array|string|DataView|count) |Array buffer allocation|Cannot (read|mix|convert|set)|is not (iterable|a function|defined)|is outside|[Mm]aximum call stack|heap out of memory|call stack|\bundefined\b|\[object |^ +at /m;

/** Resident bytes of this process: now, and the most since the last call. Elsewhere than on Linux nobody tells the latter. */
function memory(): { readonly now: number; readonly most: number } {
  if (process.platform !== 'linux')
    return { now: process.memoryUsage.rss(), most: process.memoryUsage.rss() };
  const status = readFileSync('/proc/self/status', 'latin1');
  const of = (field: string): number =>
    1024 * Number(new RegExp(`^${field}:\\s*(\\d+) kB`, 'm').exec(status)![1]);
  const [now, most] = [of('VmRSS'), of('VmHWM')];
  writeFileSync('/proc/self/clear_refs', '5');
  return { now, most };
}

/** What is wrong with an error. */
function problemOfError(error: unknown, path: string, errors: readonly string[]): string | undefined {
  const { name, message, stack } = error as Error;
  if (!errors.includes(name)) return `it is refused by ${stack ?? error}`;
  if (!message.includes(path)) return `the file is not named: ${message}`;
  const rest = message.replaceAll(path, 'FILE');
  if (/[\n\r\u0085\u2028\u2029]/.test(rest)) return `the message has lines: ${JSON.stringify(rest)}`;
  if (FOREIGN.test(rest)) return `the message is not of ours: ${rest}`;
  return rest.length > 2000 ? `the message has ${rest.length} characters: ${rest.slice(0, 200)}` : undefined;
}

/** What is wrong with what a mutant is read as. */
async function problemOf(kind: MutantKind, mutation: Mutation, wholes: ReadonlyMap<Seed, unknown>) {
  const bytes = mutated(mutation);
  const path = join(folder, mutation.seed.name);
  writeFileSync(path, mutation.isMended ? kind.mend!(bytes) : bytes);
  const whole = wholes.get(mutation.seed);
  let values: unknown;
  try {
    values = await kind.read(path);
  } catch (error) {
    return problemOfError(error, path, kind.errors ?? ['InputError']);
  }
  if (isDeepStrictEqual(values, whole)) return undefined;
  if (mutation.isLie) return `it is read as ${JSON.stringify(values, shown).slice(0, 300)}`;
  return kind.problemOf?.(values, whole);
}

const shown = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? `${value}n` : value);

const kind = [...kinds, broken].find((each) => each.name === name)!;
const seeds = await kind.seeds();
const wholes = new Map<Seed, unknown>();
for (const each of seeds) {
  const path = join(folder, each.name);
  writeFileSync(path, each.bytes);
  // Twice, for all code to be there.
  await kind.read(path);
  wholes.set(each, await kind.read(path));
}
collectGarbage();
const empty = memory().now;
const mutations = mutationsOf(seeds, kind.mend !== undefined, count, seed);
for (const [i, mutation] of mutations.entries()) {
  if (i < first) continue;
  tell(`${i} ${describeMutation(mutation)}`);
  if (memory().now > empty + bounds.bytes / 4) collectGarbage();
  memory();
  const before = process.cpuUsage();
  const problem = await problemOf(kind, mutation, wholes);
  const { user, system } = process.cpuUsage(before);
  const grown = memory().most - empty;
  if (problem !== undefined) tell(problem.replaceAll('\n', ' '));
  else if (user + system > bounds.microseconds) tell(`it takes ${(user + system) / 1e6} s`);
  else if (grown > bounds.bytes) tell(`it takes ${Math.round(grown / 2 ** 20)} MB`);
  else tell('');
}
