/** @file Samples of mutants: as many from each room, drawn by a seed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { globSync } from 'tinyglobby';
import { type Mutant, mutantsOf } from './candidates.js';
import { runtimeMutants } from './runtimeMutants.js';

/** Rooms that are sampled together, the folders of each, and the test files of what is not TypeScript. */
export const rooms: Readonly<Record<string, readonly string[]>> = {
  'decoding, trained': ['src/decoding', 'src/trained'],
  compiler: ['src/compiler', 'src/jit'],
  native: ['src/compiler/native'],
  runtime: ['src/compiler/native/runtime'],
  summaries: ['src/summaries', 'src/analysis'],
  'checkpoints, files': ['src/checkpoints', 'src/files', 'src/system', 'src/workers'],
  'programs, tasks': ['src/programs', 'src/tasks', 'src/experiment'],
  layers: ['src/layers', 'src/models'],
  learners: ['src/learners'],
  hparams: ['src/hparams', 'src/registry'],
  'cli, tools': ['src/cli', 'src/tools', 'src/editor', 'src/main.ts', 'src/index.ts', 'src/rooms.ts'],
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

/** Numbers in [0, 1) that a seed fixes (Mulberry32). */
function numbersFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** All source files that have mutants. */
export function sourceFiles(root: string): string[] {
  return globSync(['src/**/*.ts', 'src/compiler/native/runtime/*.{c,h}', '!**/*.d.ts'], { cwd: root }).sort();
}

function mutantsOfRuntime(root: string): Mutant[] {
  return runtimeMutants.map(({ file, find, replace }) => {
    const path = `src/compiler/native/runtime/${file}`;
    const text = readFileSync(join(root, path), 'utf8');
    const start = text.indexOf(find);
    if (start === -1 || text.includes(find, start + 1))
      throw new Error(`${path} does not have "${find}" once.`);
    const lines = text.slice(0, start).split('\n');
    return {
      kind: 'Runtime',
      file: path,
      line: lines.length,
      column: lines.at(-1)!.length + 1,
      start,
      end: start + find.length,
      original: find,
      replacement: replace,
    };
  });
}

/**
 * Mutants of these files: `count` of each room, at most one in a line. The rooms take turns, so that a run which ends
 * early has asked about all of them.
 */
export async function sampleOf(
  root: string,
  files: readonly string[],
  count: number,
  seed: number,
): Promise<Mutant[]> {
  const draw = numbersFrom(seed);
  const byRoom = new Map<string, Mutant[]>();
  for (const file of files.filter((name) => name.endsWith('.ts'))) {
    const room = roomOf(file);
    byRoom.set(room, [...(byRoom.get(room) ?? []), ...(await mutantsOf(root, file))]);
  }
  const ofRuntime = mutantsOfRuntime(root).filter(({ file }) => files.includes(file));
  if (ofRuntime.length > 0) byRoom.set('runtime', ofRuntime);
  const drawn = [...byRoom.values()].map((mutants) => {
    const lines = new Map<string, Mutant>();
    const left = [...mutants];
    while (lines.size < count && left.length > 0) {
      const [mutant] = left.splice(Math.floor(draw() * left.length), 1);
      const line = `${mutant!.file}:${mutant!.line}`;
      if (!lines.has(line)) lines.set(line, mutant!);
    }
    return [...lines.values()];
  });
  return Array.from({ length: count }, (_, turn) =>
    drawn.flatMap((mutants) => mutants.slice(turn, turn + 1)),
  ).flat();
}
