/** @file Changes of an experiment from the command line: set, unset, files, fiddlers, sweeps. */
import { type Call, ConfigError, parseCall } from '../hparams/index.js';
import { shellQuoted, UsageError } from '../system/text/index.js';
import { splitSetting } from './sweepGrammar.js';

/** `--set path=text`, or a setting of a sweep's run. */
export interface SetOverride {
  readonly kind: 'set';
  readonly path: string;
  readonly text: string;
  /** The flag as written, for messages and the history. */
  readonly origin: string;
}

/** `--unset path`. */
export interface UnsetOverride {
  readonly kind: 'unset';
  readonly path: string;
  readonly origin: string;
}

/** `--fiddler name(argument=value)`. */
export interface FiddlerOverride {
  readonly kind: 'fiddler';
  readonly call: Call;
  readonly origin: string;
}

/** `--config_file FILE`. */
export interface FileOverride {
  readonly kind: 'file';
  readonly file: string;
  readonly origin: string;
}

/** `--sweep path=a,b,c` or `--sweep name(arguments)`; each run replaces it by settings. */
export interface SweepChange {
  readonly kind: 'sweep';
  readonly text: string;
  readonly origin: string;
}

/** A change of an experiment; changes apply in order. */
export type Override = SetOverride | UnsetOverride | FiddlerOverride | FileOverride;
/** A change from the command line, sweeps included. */
export type Change = Override | SweepChange;

/** Output formats of `--dump`. */
export const dumpFormats = ['text', 'tree', 'json', 'yaml', 'history'] as const;
export type DumpFormat = (typeof dumpFormats)[number];

/** The flag, and its text, of a change. */
export function flagOf(change: Change): [flag: string, text: string] {
  switch (change.kind) {
    case 'set':
      return ['--set', `${change.path}=${change.text}`];
    case 'unset':
      return ['--unset', change.path];
    case 'fiddler':
      return ['--fiddler', change.call.text];
    case 'file':
      return ['--config_file', change.file];
    case 'sweep':
      return ['--sweep', change.text];
  }
}

/** A change as shell text. */
export function shellText(change: Change): string {
  const [flag, text] = flagOf(change);
  const plain = /^[\w@%+=:,./^-][\w@%+=:,./^~-]*$/.test(text);
  return `${flag} ${plain ? text : shellQuoted(text)}`;
}

const parsers = {
  '--set': parseSet,
  '--unset': parseUnset,
  '--fiddler': parseFiddler,
  '--config_file': parseFile,
};

/** The override that `shellText` wrote. @throws UsageError for another text */
export function parseShellText(text: string): Override {
  const [, flag = '', plain, quoted = ''] = /^(--\w+) (?:([^'][\s\S]*)|'([\s\S]*)')$/.exec(text) ?? [];
  if (!Object.hasOwn(parsers, flag)) throw new UsageError(`'${text}' is no flag that changes an experiment.`);
  return parsers[flag as keyof typeof parsers](plain ?? quoted.replaceAll("'\\''", "'"));
}

/** Runs `action`, and turns its ConfigErrors, which are about a flag's text or file, into errors of the flag. */
export function asUsage<R>(origin: string, action: () => R): R {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // Keeps a place in a file; the flag comes first anyway.
    const message = error.place === origin ? error.problem : error.message;
    throw new UsageError(`${origin}: ${message}`, { cause: error });
  }
}

/** Parses `--set TEXT`. @throws UsageError without a path or a `=`. */
export function parseSet(text: string, flag = '--set'): SetOverride {
  const origin = `${flag} ${text}`;
  const setting = splitSetting(text);
  if (setting !== undefined) return { kind: 'set', ...setting, origin };
  throw new UsageError(`${origin}: expected path=value, for example ${flag} task.train.numTrainSteps=100.`);
}

/** Parses `--unset TEXT`. @throws UsageError for a setting. */
export function parseUnset(text: string, flag = '--unset'): UnsetOverride {
  const origin = `${flag} ${text}`;
  if (text.trim() !== '' && splitSetting(text) === undefined) {
    return { kind: 'unset', path: text.trim(), origin };
  }
  throw new UsageError(`${origin}: expected a path alone, for example ${flag} task.train.numTrainSteps.`);
}

/** Parses `--fiddler TEXT`. @throws UsageError that points into anything but a call with literals. */
export function parseFiddler(text: string, flag = '--fiddler'): FiddlerOverride {
  const origin = `${flag} ${text}`;
  return { kind: 'fiddler', call: asUsage(origin, () => parseCall(text)), origin };
}

/** Parses `--config_file TEXT`. @throws UsageError for an empty name. */
export function parseFile(text: string, flag = '--config_file'): FileOverride {
  if (text !== '') return { kind: 'file', file: text, origin: `${flag} ${text}` };
  throw new UsageError(`${flag}: expected the name of a file; got ''.`);
}

/** Parses `--sweep TEXT`, leaving its values to `expandSweeps`. @throws UsageError for neither form. */
export function parseSweep(text: string, flag = '--sweep'): SweepChange {
  const origin = `${flag} ${text}`;
  if (isCall(text) || splitSetting(text) !== undefined) return { kind: 'sweep', text, origin };
  throw new UsageError(
    `${origin}: expected path=value,value or name(arguments), for example ${flag} learningRate=1e-3,1e-4.`,
  );
}

/** Whether a sweep's text calls a function. */
export function isCall(text: string): boolean {
  return /^\s*[A-Za-z_$][\w$]*\s*\(/.test(text);
}
