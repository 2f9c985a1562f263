/** @file Planted bugs and the tests that notice them: `npm run mutants -- --help`. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as elapsed } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { root } from '../test/docs/pages.js';
import type { Mutant } from '../test/mutants/candidates.js';
import { roomOf, rooms, sampleOf, sourceFiles } from '../test/mutants/sample.js';
import { Trials, type Verdict } from '../test/mutants/trials.js';
import { Workplace } from '../test/mutants/workplace.js';

const help = `Draws mutants of the sources, plants each in a copy of the tree, and lists those that no close test notices.

    npm run mutants -- --count=25 --seed=1             25 mutants of each room
    npm run mutants -- --room=layers --jobs=2          of one room, two at a time
    npm run mutants -- --file=src/learners/optimizers/adam.ts     of one file
    npm run mutants -- --changed=main                  of the files that differ from a commit

--minutes ends the sample early, --seconds bounds the tests of a mutant. Without --seed, the commit draws. Verdicts are kept in
out/mutants.json while a file and its tests stay.
Rooms: ${Object.keys(rooms).join('; ')}.`;

const { values } = parseArgs({
  options: {
    room: { type: 'string', multiple: true },
    file: { type: 'string', multiple: true },
    changed: { type: 'string' },
    count: { type: 'string', default: '25' },
    seed: { type: 'string' },
    minutes: { type: 'string', default: '600' },
    seconds: { type: 'string', default: '90' },
    jobs: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) {
  console.log(help);
  process.exit(0);
}

function number(name: 'count' | 'minutes' | 'seconds' | 'jobs'): number {
  const value = Number(values[name]);
  if (!(value > 0)) throw new Error(`--${name}=${values[name]} must be a number above 0.`);
  return value;
}

const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' });

function chosenFiles(): string[] {
  const unknown = (values.room ?? []).filter((room) => !(room in rooms));
  if (unknown.length > 0)
    throw new Error(`--room=${unknown[0]} is unknown. Rooms: ${Object.keys(rooms).join('; ')}.`);
  const files = sourceFiles(root).filter(
    (file) =>
      (!values.room || values.room.includes(roomOf(file))) && (!values.file || values.file.includes(file)),
  );
  if (values.changed === undefined) return files;
  const names = new Set(git('diff', '--name-only', values.changed, '--', 'src').split('\n'));
  const changed = files.filter((file) => names.has(file));
  if (changed.length === 0) console.log(`No source differs from ${values.changed}: a sample of all rooms.`);
  return changed.length === 0 ? files : changed;
}

const short = (text: string): string => {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 70 ? `${line.slice(0, 67)}...` : line;
};

function shown({ file, line, column, kind, original, replacement }: Mutant): string {
  return `${file}:${line}:${column} ${kind}: ${short(original)} → ${short(replacement) || 'nothing'}`;
}

const seed = Number(values.seed ?? Number.parseInt(git('rev-parse', 'HEAD').slice(0, 8), 16));
const sample = await sampleOf(root, chosenFiles(), number('count'), seed);
console.log(`${sample.length} mutants, seed ${seed}.`);

const trials = new Trials(root, join(root, 'out/mutants.json'), number('seconds'));
const waiting = [...sample];
const asked: { readonly mutant: Mutant; readonly verdict: Verdict }[] = [];

async function work(job: number): Promise<void> {
  const workplace = Workplace.make(root, join(root, `out/mutants/${job}`));
  process.on('exit', () => workplace.remove());
  for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
    const verdict = await trials.verdictOn(mutant, workplace);
    asked.push({ mutant, verdict });
    const { by, passed, unfinished } = verdict;
    const tried = `UNNOTICED by ${passed.length} files${unfinished ? `, the limit ended ${unfinished}` : ''}`;
    console.log(`${shown(mutant)}\n    ${by ?? tried}`);
  }
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const minutes = elapsed(number('minutes') * 60_000, undefined, { ref: false });
await Promise.race([minutes, Promise.all(Array.from({ length: number('jobs') }, (_, job) => work(job)))]);

const survivors = asked.filter(({ verdict }) => verdict.by === undefined);
console.log(`\nUnnoticed:${survivors.map(({ mutant }) => `\n    ${shown(mutant)}`).join('') || ' none.'}\n`);
for (const room of new Set(asked.map(({ mutant }) => roomOf(mutant.file)))) {
  const ofRoom = asked.filter(({ mutant }) => roomOf(mutant.file) === room);
  const noticed = ofRoom.filter(({ verdict }) => verdict.by !== undefined).length;
  console.log(`${room.padEnd(20)} ${noticed} of ${ofRoom.length} noticed`);
}
console.log(`${'all'.padEnd(20)} ${asked.length - survivors.length} of ${asked.length} noticed`);
// Mutants that are under way when the time is over are nobody's.
process.exit(0);
