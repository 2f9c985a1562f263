/** @file Samples of mutants: as many from each room, drawn by a seed. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { globSync } from 'tinyglobby';
import { prngKey } from '../../src/compiler/index.js';
import { drawBelow } from '../../src/inputs/random.js';
import { type Mutant, mutantsOf } from './candidates.js';
import { runtimeMutants } from './runtimeMutants.js';

/** Rooms that are sampled together, and the folders of each. */
export const rooms: Readonly<Record<string, readonly string[]>> = {
  'decoding, trained': ['src/decoding', 'src/trained'],
  compiler: ['src/compiler', 'src/jit'],
  native: ['src/compiler/native'],
  runtime: ['src/compiler/native/runtime'],
  summaries: ['src/summaries', 'src/analysis'],
  'checkpoints, files': ['src/checkpoints', 'src/files', 'src/system', 'src/workers'],
  'programs, tasks': [
    'src/collectives',
    'src/programs',
    'src/runs',
    'src/tasks',
    'src/experiment',
    'src/search',
  ],
  layers: ['src/layers', 'src/models'],
  learners: ['src/learners'],
  hparams: ['src/hparams', 'src/registry'],
  'cli, tools': [
    'src/cli',
    'src/tools',
    'src/review',
    'src/editor',
    'src/main.ts',
    'src/index.ts',
    'src/rooms.ts',
  ],
  inputs: ['src/inputs'],
};

/** The room of a file: the one with the longest folder that it is in. */
export function roomOf(file: string): string {
  const folders = Object.entries(rooms).flatMap(([room, within]) =>
    within.map((folder) => ({ room, folder })),
  );
  const around = folders.filter(({ folder }) => file === folder || file.startsWith(`${folder}/`));
  if (around.length === 0) throw new Error(`${file} is in none of the rooms of test/mutants/sample.ts.`);
  return around.reduce((a, b) => (b.folder.length > a.folder.length ? b : a)).room;
}

/** All source files that have mutants. */
export function sourceFiles(root: string): string[] {
  return globSync(['src/**/*.ts', 'src/compiler/native/runtime/*.{c,h}', '!**/*.d.ts'], { cwd: root }).sort();
}

/** The C runtime's mutants, by file. */
function mutantsOfRuntime(root: string, path: string): Mutant[] {
  const text = readFileSync(join(root, path), 'utf8');
  return runtimeMutants
    .filter(({ file }) => path.endsWith(`/${file}`))
    .map(({ find, replace }) => {
      const start = text.indexOf(find);
      const lines = text.slice(0, start).split('\n');
      const place = { line: lines.length, column: lines.at(-1)!.length + 1, start, end: start + find.length };
      return { kind: 'Runtime', file: path, ...place, original: find, replacement: replace };
    });
}

/** A room's mutants: files are drawn by their length, for most would never be asked about. At most one in a line. */
async function sampleOfRoom(
  root: string,
  files: readonly string[],
  count: number,
  seed: number,
): Promise<Mutant[]> {
  const ends: number[] = [];
  for (const file of files) ends.push((ends.at(-1) ?? 0) + statSync(join(root, file)).size);
  const key = prngKey(seed);
  const read = new Map<string, Mutant[]>();
  const byLine = new Map<string, Mutant>();
  for (let tries = 0; byLine.size < count && tries < 50 * count; tries++) {
    const place = drawBelow(key, 2 * tries, ends.at(-1)!);
    const file = files[ends.findIndex((end) => place < end)]!;
    if (!read.has(file))
      read.set(file, file.endsWith('.ts') ? await mutantsOf(root, file) : mutantsOfRuntime(root, file));
    const mutants = read.get(file)!;
    const mutant = mutants[drawBelow(key, 2 * tries + 1, mutants.length)];
    if (mutant && !byLine.has(`${file}:${mutant.line}`)) byLine.set(`${file}:${mutant.line}`, mutant);
  }
  return [...byLine.values()];
}

/**
 * Mutants of these files: `count` of each room. The rooms take turns, so that a run which ends early has asked about all of
 * them.
 */
export async function sampleOf(
  root: string,
  files: readonly string[],
  count: number,
  seed: number,
): Promise<Mutant[]> {
  const samples: Mutant[][] = [];
  for (const room of new Set(files.map(roomOf))) {
    const ofRoom = files.filter((file) => roomOf(file) === room);
    samples.push(await sampleOfRoom(root, ofRoom, count, seed));
  }
  return Array.from({ length: count }, (_, turn) => samples.flatMap((of) => of.slice(turn, turn + 1))).flat();
}
