/** @file How much all processes have added to a cache since one looked at its size, which takes time. */
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What was looked at in the first line, then the bytes of each addition. */
const FILE = 'added';

const firstLine = (limit: number): string => `at most ${limit}`;

/** Looking is worth it where this part of the limit has been added. */
const worthLooking = 1 / 100;

const fileOf = (path: string): string => join(path, FILE);

/** Notes an addition. @returns whether the cache may have become too large since someone looked, or none has. */
export function noteAddition(path: string, limit: number, bytes: number): boolean {
  appendFileSync(fileOf(path), `${bytes}\n`);
  const [first, ...added] = readFileSync(fileOf(path), 'utf8').trimEnd().split('\n');
  // Where the file begins with an addition, nobody has looked.
  return first !== firstLine(limit) || added.map(Number).reduce((a, b) => a + b) > limit * worthLooking;
}

/** Says that the cache is no larger than this. */
export function noteSize(path: string, limit: number): void {
  writeFileSync(fileOf(path), `${firstLine(limit)}\n`);
}

/** The next addition has the size looked at. */
export function forgetAdditions(path: string): void {
  rmSync(fileOf(path), { force: true });
}
