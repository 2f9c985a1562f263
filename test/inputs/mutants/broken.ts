/** @file Mutants that show the campaign's own eyes to be open: each number does another harm to its reader. */
import { readFileSync } from 'node:fs';
import { InputError } from '../../../src/inputs/index.js';
import { type MutantKind, textSite } from './mutantKind.js';

const refused = (message: string): never => {
  throw new InputError(message);
};

const HARMS: Readonly<Record<string, (path: string) => unknown>> = {
  '5': () => 5,
  '-1': () => new Uint8Array(-1),
  '0': () => {
    for (;;);
  },
  '4': () => 6,
  '6': (path) => {
    throw Object.assign(new Error(`${path}: two\nlines`), { name: 'InputError' });
  },
  '10': () => refused('broken'),
  '100000000': () => new Float64Array(5e7).fill(5)[0],
  '2147483647': () => process.abort(),
};

export const broken: MutantKind = {
  name: 'broken readers',
  seeds() {
    const bytes = Buffer.from('5');
    return [{ name: 'a.txt', bytes, sites: [textSite(bytes, 'count', 0, 1)] }];
  },
  read(path) {
    const harm = HARMS[readFileSync(path, 'utf8')];
    return harm === undefined ? refused(`${path} is refused`) : harm(path);
  },
  tries: 22,
  short: 22,
};
