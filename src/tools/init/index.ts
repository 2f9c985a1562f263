/** @file `luthier init`: the files of a new project, in the working directory. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { explain, makeDirectory, readRegularFile, writeWhole } from '../../files/index.js';
import { UsageError } from '../../registry/usageError.js';
import type { Command, Report } from '../command.js';
import { files, jsonText, scripts } from './template.js';

/** What npm writes where a package has no tests. */
const placeholder = /^echo "Error: no test specified"/;

/** What `init` reads of a package.json. */
interface Manifest {
  readonly [key: string]: unknown;
  readonly type?: string;
  readonly scripts?: Readonly<Record<string, string>>;
}

function readManifest(): Manifest {
  if (!existsSync('package.json')) return { private: true };
  try {
    return JSON.parse(readRegularFile('package.json').toString()) as Manifest;
  } catch (error) {
    throw new UsageError(`package.json: expected JSON, got what cannot be read: ${explain(error)}`);
  }
}

/** Scripts that someone wrote. */
function ownScripts({ scripts: known = {} }: Manifest): Record<string, string> {
  return Object.fromEntries(Object.entries(known).filter(([, text]) => !placeholder.test(text)));
}

/** What stands in the way of the project's files. */
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

function withScripts(manifest: Manifest): Manifest {
  return { ...manifest, type: 'module', scripts: { ...ownScripts(manifest), ...scripts } };
}

const next: readonly (readonly [command: string, about: string])[] = [
  ['npx luthier train --exp=first.Tiny', 'trains it, into out/first.Tiny'],
  ['npm run types && npm test', 'compiles the project, and runs its test'],
  ['git init -b main && git add . && git commit -m "First experiment"', 'what reviews compare with'],
  ['npm run review', 'shows what a later edit changes'],
];

function reportOf(written: readonly string[]): Report {
  const widest = Math.max(...next.map(([command]) => command.length));
  const steps = next.map(([command, about]) => `  ${command.padEnd(widest)}  # ${about}`);
  return {
    text: () => ['Wrote', ...written.map((file) => `  ${file}`), '', 'Next:', ...steps].join('\n'),
    json: () => ({ written, next: next.map(([command]) => command) }),
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
    `  package.json: "type": "module", and the scripts ${Object.keys(scripts).join(', ')}`,
    '',
    'Nothing is written where one of them is there already.',
    '',
    'Exit codes: 0; 2 for a wrong command line, and where something is in the way.',
  ].join('\n'),
  async run() {
    const manifest = readManifest();
    const conflicts = conflictsOf(manifest);
    if (conflicts.length > 0) {
      throw new UsageError(
        `luthier init begins a project, and overwrites nothing. In the way: ${conflicts.join(', ')}. ` +
          'Run it in an empty folder, or take these away.',
      );
    }
    for (const [file, text] of Object.entries({
      ...files,
      'package.json': jsonText(withScripts(manifest)),
    })) {
      makeDirectory(dirname(file));
      writeWhole(file, text);
    }
    return reportOf([...Object.keys(files), 'package.json']);
  },
};
