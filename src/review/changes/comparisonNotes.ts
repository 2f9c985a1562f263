/** @file Notes on the coverage of a comparison of versions. */
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { counted } from '../text/reportFormat.js';
import type { BasePackages } from '../versions/ownPackages.js';
import type { Tree } from '../versions/versionTree.js';
import { type Varying, varyingText } from './varying.js';

/** Of experiments whose configs are the same. */
export const whatWasCompared =
  'For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of ' +
  'initial values, decoding, and rows of the data were compared; without data, the code that reads it.';

/** Of experiments whose configs changed, where code they work with did as well. */
export const byNewConfigs = 'Where a config changed, both codes were compared by the config of now.';

const causes: Readonly<Record<Varying['cause'], string>> = {
  chance: 'from one evaluation to the next',
  state: 'with what its process evaluated before',
  revision: "with git's revision",
};

/** Notes on values and parts that differ by themselves, and on values that begin to, by the experiments' names. */
export function varyingNotes(
  varying: ReadonlyMap<string, readonly Varying[]>,
  begun: ReadonlyMap<string, readonly string[]>,
): string[] {
  const listed = (byName: ReadonlyMap<string, string>): string => {
    const names = new Map<string, string[]>();
    for (const [name, text] of byName) names.set(text, [...(names.get(text) ?? []), name]);
    return [...names].map(([text, of]) => `${text} (${of.join(', ')})`).join('; ');
  };
  const textsOf = (all: readonly Varying[]): string =>
    (['chance', 'state', 'revision'] as const)
      .map((cause) => [cause, all.filter((each) => each.cause === cause)] as const)
      .filter(([, own]) => own.length > 0)
      .map(([cause, own]) => `${varyingText(own)} ${causes[cause]}`)
      .join(', ');
  const settled = new Map([...varying].map(([name, all]) => [name, textsOf(all)]));
  return [
    ...(settled.size === 0
      ? []
      : [
          `What differs by itself, as a second evaluation of both versions shows, is left out: ${listed(settled)}.`,
        ]),
    ...(begun.size === 0
      ? []
      : [
          `Another value at each evaluation now, and not before: ${listed(new Map([...begun].map(([name, paths]) => [name, paths.join(', ')])))}.`,
        ]),
  ];
}

/** Packages of npm's lockfile, by their folders; that of the project is ''. */
type Locked = Readonly<
  Record<string, { readonly version?: string; readonly dependencies?: object } | undefined>
>;

/** Packages that npm has locked for a project; empty without a lockfile of npm. */
function lockedIn({ root, project }: Tree): Locked {
  const file = [project, root].map((folder) => join(folder, 'package-lock.json')).find(existsSync);
  try {
    const { packages } = JSON.parse(readFileSync(file ?? '', 'utf8')) as { packages?: Locked };
    return packages ?? {};
  } catch {
    return {};
  }
}

/** Changed versions of the project's dependencies, and the number of other changed packages: ` (zod 4.6.6 → 4.6.7)`. */
function otherPackages(old: Tree, now: Tree): string {
  const [before, after] = [lockedIn(old), lockedIn(now)];
  const versionIn = (locked: Locked, path: string): string => locked[path]?.version ?? 'none';
  const others = Object.keys({ ...before, ...after }).filter(
    (path) => path !== '' && versionIn(before, path) !== versionIn(after, path),
  );
  const direct = Object.keys({ ...before['']?.dependencies, ...after['']?.dependencies })
    .map((name) => ({ name, path: `node_modules/${name}` }))
    .filter(({ path }) => others.includes(path));
  const shown = direct.map(
    ({ name, path }) => `${name} ${versionIn(before, path)} → ${versionIn(after, path)}`,
  );
  const rest = others.length - direct.length;
  const more = rest === 0 ? [] : [counted(rest, 'package of packages', 'packages of packages')];
  return others.length === 0 ? '' : ` (${[...shown, ...more].join(', ')})`;
}

/** Caveats of the comparison for its readers. */
export function notesOf(
  changed: ReadonlySet<string>,
  old: Tree,
  now: Tree,
  { folder: ownPackages, because }: BasePackages = {},
): string[] {
  const { root, project, library } = now;
  const notes: string[] = [];
  const folder = relative(root, project);
  const prefix = folder === '' ? '' : `${folder}/`;
  const packages = ['package-lock.json', 'package.json', 'pnpm-lock.yaml', 'yarn.lock'].filter(
    (file) => changed.has(`${prefix}${file}`) || changed.has(file),
  );
  if (packages.length > 0) {
    const evaluated =
      ownPackages === undefined
        ? `both versions were evaluated with the packages installed now${because === undefined ? '' : `, as ${because}`}`
        : 'each version was evaluated with the packages of its own lockfile; code in them is compared by what it computes alone';
    notes.push(`${packages.join(' and ')} changed${otherPackages(old, now)}: ${evaluated}.`);
  }
  const patches = [...changed].filter((file) => /(^|\/)\.?(yarn\/)?patches\/[^/]+\.patch$/.test(file)).sort();
  if (patches.length > 0)
    notes.push(
      `${patches.map((file) => relative(project, join(root, file))).join(' and ')} changed: patches of packages count as far as they are applied to those installed now, in both versions.`,
    );
  const isChanged = (room: string): boolean => {
    const inside = `${relative(root, join(library, 'src', room))}/`;
    return [...changed].some((file) => file.startsWith(inside));
  };
  const compiler = 'traced programs were compared, not their compiled form.';
  if (isChanged('compiler')) notes.push(`The compiler changed: ${compiler}`);
  const jobs = ['programs', 'checkpoints', 'summaries'].filter(isChanged).map((room) => `src/${room}`);
  if (jobs.length > 0)
    notes.push(`${jobs.join(', ')} changed: how jobs run, save and report was not compared.`);
  return notes;
}
