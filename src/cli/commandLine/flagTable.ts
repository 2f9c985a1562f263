/** @file Command-line parser driven by a table of flags: strict, with suggestions, and --help from the same table. */
// The index of hparams would load longer than a command that only shows its flags may take.
import { didYouMean, UsageError } from '../../system/text/index.js';

/** Declaration of a flag. */
interface FlagSpec {
  /** Key of its value; a `repeated` flag collects its values, shared with flags of the same key. */
  readonly key: string;
  /** Placeholder of its value in --help; absent for a switch. */
  readonly value?: string;
  /** Default for a flag given without a value; an explicit value then requires `=`. */
  readonly whenBare?: string;
  /** Whether all uses count, instead of the last one. */
  readonly repeated?: boolean;
  readonly about: string;
  readonly parse: (text: string, flag: string) => unknown;
}

/** Flags by name, in the order of --help. */
export type FlagTable = Readonly<Record<string, FlagSpec>>;

/** A flag as given; a switch has no text. */
export interface GivenFlag {
  readonly name: string;
  readonly spec: FlagSpec;
  readonly text: string | undefined;
  readonly value: unknown;
}

/** A parsed command line. */
export interface ParsedFlags {
  readonly given: readonly GivenFlag[];
  /** Arguments that are not flags. */
  readonly positionals: readonly string[];
}

/** Parser for one of `values`. */
export function oneOf<T extends string>(values: readonly T[]): (text: string, flag: string) => T {
  return (text, flag) => {
    if (values.includes(text as T)) return text as T;
    throw new UsageError(
      `${flag}: expected one of ${values.join(', ')}; got '${text}'.${didYouMean(text, values)}`,
    );
  };
}

/** Parser for positive numbers. */
export function positive(integer: boolean): (text: string, flag: string) => number {
  return (text, flag) => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (value > 0 && Number.isFinite(value) && (!integer || Number.isInteger(value))) return value;
    throw new UsageError(`${flag}: expected a positive ${integer ? 'integer' : 'number'}; got '${text}'.`);
  };
}

/** Parser for non-empty texts. */
export function nonEmpty(text: string, flag: string): string {
  if (text !== '') return text;
  throw new UsageError(`${flag}: expected a value; got ''.`);
}

/** Flags that are refused, each with its reason: those of another program, which users may try. */
export type RefusedFlags = Readonly<Record<string, string>>;

function unknownFlag(name: string, table: FlagTable, refused: RefusedFlags): UsageError {
  if (Object.hasOwn(refused, name)) return new UsageError(`--${name} has no meaning here: ${refused[name]}.`);
  const dashed = Object.keys(table).map((flag) => `--${flag}`);
  const suggestion = didYouMean(`--${name}`, dashed);
  const bySet = Object.hasOwn(table, 'set') ? ' Constants and fields are set by --set NAME=VALUE.' : '';
  return new UsageError(`Unknown flag --${name}.${suggestion || bySet} The flags are: ${dashed.join(', ')}.`);
}

/** Reads the flag at `argument`, and removes its value from `rest`. */
function readFlag(argument: string, rest: string[], table: FlagTable, refused: RefusedFlags): GivenFlag {
  const match = /^--?([^=]+)(?:=([\s\S]*))?$/.exec(argument);
  if (!match) throw new UsageError(`Unexpected argument '${argument}': flags are written --name=value.`);
  const name = match[1] === 'h' ? 'help' : match[1]!;
  const spec = Object.hasOwn(table, name) ? table[name]! : undefined;
  if (!spec) throw unknownFlag(name, table, refused);
  const text = textOf(name, spec, match[2], rest);
  return { name, spec, text, value: spec.parse(text ?? '', `--${name}`) };
}

function textOf(name: string, spec: FlagSpec, text: string | undefined, rest: string[]): string | undefined {
  if (spec.value === undefined) {
    if (text !== undefined) throw new UsageError(`--${name}: takes no value; got '${text}'.`);
    return undefined;
  }
  if (text !== undefined || spec.whenBare !== undefined) return text ?? spec.whenBare;
  const following = rest.shift();
  if (following === undefined || following.startsWith('--')) {
    throw new UsageError(`--${name}: expected a value: --${name}=${spec.value}.`);
  }
  return following;
}

/**
 * Parses `argv`: flags are `--flag=value` or `--flag value`; other arguments are positional.
 *
 * @param refused flags that are refused with a reason.
 * @throws UsageError for an unknown flag, or a wrong or missing value.
 */
export function parseFlagTable(
  argv: readonly string[],
  table: FlagTable,
  refused: RefusedFlags = {},
): ParsedFlags {
  const given: GivenFlag[] = [];
  const positionals: string[] = [];
  const rest = [...argv];
  while (rest.length > 0) {
    const argument = rest.shift()!;
    if (argument.startsWith('-')) given.push(readFlag(argument, rest, table, refused));
    else positionals.push(argument);
  }
  return { given, positionals };
}

/** Values by key: the last one of a repeated use, or all of a `repeated` flag. */
export function valuesOf(given: readonly GivenFlag[]): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const { spec, value } of given) {
    if (spec.repeated) ((values[spec.key] ??= []) as unknown[]).push(value);
    else values[spec.key] = value;
  }
  return values;
}

/** The list of flags for --help. */
export function flagsHelp(table: FlagTable): string {
  return Object.entries(table)
    .map(([name, { value, whenBare, about }]) => {
      const shown = value === undefined ? '' : whenBare === undefined ? `=${value}` : `[=${value}]`;
      return `  --${name}${shown}\n      ${about}`;
    })
    .join('\n');
}
