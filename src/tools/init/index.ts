/** @file `luthier init`: the files of a new project, in the working directory. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { explain, makeDirectory, readRegularFile, writeWhole } from '../../files/index.js';
import { UsageError } from '../../system/text/index.js';
import type { Command, Report } from '../command.js';
import { files, jsonText, scripts } from './template.js';

/** npm's test script of a package without tests. */
const placeholder = /^echo "Error: no test specified"/;

/** The fields of a package.json that `init` reads. */
interface Manifest {
  readonly [key: string]: unknown;
  readonly type?: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Checked by hand: yarn 1 installs zod, a peer, only once `init` has put it into package.json. */
function manifestOf(value: unknown): Manifest {
  if (!isObject(value)) throw new Error('expected an object');
  const { type = '' } = value;
  if (typeof type !== 'string') throw new Error(`type: expected a string, got ${typeof type}`);
  for (const name of ['scripts', 'dependencies', 'devDependencies']) {
    const texts = value[name] ?? {};
    if (!isObject(texts)) throw new Error(`${name}: expected an object, got ${typeof texts}`);
    const wrong = Object.keys(texts).find((key) => typeof texts[key] !== 'string');
    if (wrong !== undefined)
      throw new Error(`${name}.${wrong}: expected a string, got ${typeof texts[wrong]}`);
  }
  return value;
}

function readManifest(): Manifest {
  if (!existsSync('package.json')) return { private: true };
  try {
    return manifestOf(JSON.parse(readRegularFile('package.json').toString()));
  } catch (error) {
    throw new UsageError(`package.json: expected a manifest, and it cannot be read: ${explain(error)}`);
  }
}

/** Scripts that someone wrote. */
function ownScripts({ scripts: known = {} }: Manifest): Record<string, string> {
  return Object.fromEntries(Object.entries(known).filter(([, text]) => !placeholder.test(text)));
}

/** Conflicts with the project's files. */
function conflictsOf(manifest: Manifest): string[] {
  const own = ownScripts(manifest);
  return [
    ...Object.keys(files).filter((file) => existsSync(file)),
    ...Object.keys(scripts)
      .filter((name) => Object.hasOwn(own, name) && own[name] !== scripts[name])
      .map((name) => `package.json's script ${name}`),
    ...(manifest.type === undefined || manifest.type === 'module' ? [] : ["package.json's type"]),
  ];
}

/**
 * Packages that the project's files import and its compiler needs, in Luthier's own versions. Where a package manager keeps
 * packages apart, a project finds none but those that it lists.
 */
const needed: readonly (readonly [list: 'dependencies' | 'devDependencies', name: string])[] = [
  ['dependencies', 'zod'],
  ['devDependencies', '@types/node'],
  ['devDependencies', 'typescript'],
];

/** Those of them that the project does not list. */
function missingFrom({ dependencies, devDependencies }: Manifest): typeof needed {
  const listed = { ...dependencies, ...devDependencies };
  return needed.filter(([, name]) => !Object.hasOwn(listed, name));
}

function completed(manifest: Manifest): Manifest {
  const own = createRequire(import.meta.url)('../../../package.json') as {
    readonly dependencies: Readonly<Record<string, string>>;
    readonly peerDependencies: Readonly<Record<string, string>>;
  };
  const versions = { ...own.dependencies, ...own.peerDependencies };
  const missing = missingFrom(manifest);
  const lists = [...new Set(missing.map(([list]) => list))].map((list) => {
    const added = missing.filter(([other]) => other === list).map(([, name]) => [name, versions[name]!]);
    return [list, { ...manifest[list], ...Object.fromEntries(added) }];
  });
  const packages = Object.fromEntries(lists) as Pick<Manifest, 'dependencies' | 'devDependencies'>;
  return { ...manifest, type: 'module', scripts: { ...ownScripts(manifest), ...scripts }, ...packages };
}

/** Lockfiles of package managers other than npm. */
const lockfiles = { 'pnpm-lock.yaml': 'pnpm', 'yarn.lock': 'yarn', 'bun.lock': 'bun', 'bun.lockb': 'bun' };

/** The package manager that has installed the project's packages. */
function packageManager(): string {
  return Object.entries(lockfiles).find(([file]) => existsSync(file))?.[1] ?? 'npm';
}

/** Commands that come next, each with its purpose. */
function nextSteps(added: readonly string[]): [command: string, about: string][] {
  const manager = packageManager();
  return [
    ...(added.length === 0
      ? []
      : [[`${manager} install`, 'installs the packages added to package.json'] as [string, string]]),
    ['npx luthier train --exp=first.Tiny', 'trains it, into out/first.Tiny'],
    [`${manager} run types && ${manager} run test`, 'compiles the project, and runs its test'],
    ['git init -b main && git add . && git commit -m "First experiment"', 'the baseline of reviews'],
    [`${manager} run review`, 'shows the effects of later edits'],
  ];
}

function reportOf(files: readonly string[], added: readonly string[]): Report {
  const next = nextSteps(added);
  const widest = Math.max(...next.map(([command]) => command.length));
  const steps = next.map(([command, about]) => `  ${command.padEnd(widest)}  # ${about}`);
  const manifest = added.length === 0 ? 'package.json' : `package.json, with ${added.join(', ')}`;
  const written = [...files, 'package.json'];
  return {
    text: () =>
      ['Wrote', ...[...files, manifest].map((file) => `  ${file}`), '', 'Next:', ...steps].join('\n'),
    json: () => ({ written, added, next: next.map(([command]) => command) }),
  };
}

/** The command. */
export const init: Command = {
  usage: '',
  positionals: [0, 0],
  flags: {},
  changes: false,
  details: [
    'Writes to the working directory:',
    '',
    ...Object.keys(files).map((file) => `  ${file}`),
    `  package.json: "type": "module", the scripts ${Object.keys(scripts).join(', ')},`,
    `    and the packages ${needed.map(([, name]) => name).join(', ')} where it does not list them`,
    '',
    'If one of them exists already, nothing is written.',
    '',
    'Exit codes: 0; 2 for a wrong command line, or if a file is in the way.',
  ].join('\n'),
  async run() {
    const manifest = readManifest();
    const conflicts = conflictsOf(manifest);
    if (conflicts.length > 0) {
      throw new UsageError(
        `luthier init creates a project and overwrites nothing. In the way: ${conflicts.join(', ')}. ` +
          'Run it in an empty folder, or move these away.',
      );
    }
    for (const [file, text] of Object.entries({
      ...files,
      'package.json': jsonText(completed(manifest)),
    })) {
      makeDirectory(dirname(file));
      writeWhole(file, text);
    }
    return reportOf(
      Object.keys(files),
      missingFrom(manifest).map(([, name]) => name),
    );
  },
};
