/** @file The interface of a `luthier` command: flags, positional arguments, report. */
import { type FlagTable, flagsHelp, oneOf, parseFlagTable, valuesOf } from '../cli/flagTable.js';
import type { Override } from '../cli/overrides.js';
import { UsageError } from '../registry/usageError.js';
import type { Paint } from './terminalOutput.js';

/** How every command can write what it found. */
const formats = ['text', 'json', 'markdown'] as const;

/** What a command found. Its text forms end without a newline. */
export interface Report {
  /** For people at a terminal; `paint` colours it there, and nowhere else. */
  text(paint: Paint): string;
  /** For scripts: plain data. */
  json(): unknown;
  /** For pages and comments. */
  markdown(): string;
  /** In the further formats of the command, by name. */
  readonly further?: Readonly<Record<string, () => string>>;
  /** 0 where it is absent; 1 where what was asked for does not hold. */
  readonly exitCode?: number;
}

/** What a command is given. */
export interface Arguments {
  readonly positionals: readonly string[];
  /** The values of the command's flags by key. */
  readonly values: Readonly<Record<string, unknown>>;
  /** --set, --unset, --fiddler and --config_file, in the order in which they were given. */
  readonly changes: readonly Override[];
  readonly format: string;
  /** Tells a person at the terminal of something that is no part of the report. */
  readonly warn: (line: string) => void;
}

/** One command. */
export interface Command {
  /** The positional arguments as they are written: `EXP`, `A B`, `[PATTERN]`. */
  readonly usage: string;
  /** How many positional arguments there may be. */
  readonly positionals: readonly [least: number, most: number];
  readonly flags: FlagTable;
  /** Whether --set, --unset, --fiddler and --config_file are taken. */
  readonly changes: boolean;
  /** Formats besides those of every command, which its reports have, too. */
  readonly formats?: readonly string[];
  /** What --help says below the flags: examples, exit codes. */
  readonly details?: string;
  run(args: Arguments): Promise<Report>;
}

/** All flags of a command, in the order of --help. */
async function flagsOf(command: Command): Promise<FlagTable> {
  // Those that change experiments know all of configs, which takes a third of the time that `list` may take.
  const changing = command.changes ? (await import('../cli/changeFlags.js')).overrideFlags : {};
  const offered = [...formats, ...(command.formats ?? [])];
  return {
    ...command.flags,
    ...changing,
    format: {
      key: 'format',
      value: 'FORMAT',
      about: `${offered.join(', ')}. Default: text, with colours on a terminal.`,
      parse: oneOf(offered),
    },
    help: { key: 'help', about: 'Shows this help.', parse: () => true },
  };
}

/** What `luthier NAME --help` prints. */
export async function commandHelp(name: string, about: string, command: Command): Promise<string> {
  const usage = ['npx luthier', name, command.usage, '[flags]'].filter((part) => part !== '').join(' ');
  const details = command.details === undefined ? '' : `\n\n${command.details}`;
  return `${about}\n\n  ${usage}\n\nFlags:\n${flagsHelp(await flagsOf(command))}${details}`;
}

/**
 * Takes a command's arguments apart; 'help' where that is asked for.
 *
 * @throws UsageError for unknown flags, wrong values, and too few or too many arguments.
 */
export async function parseArguments(
  name: string,
  command: Command,
  argv: readonly string[],
  warn: (line: string) => void,
): Promise<Arguments | 'help'> {
  const { given, positionals } = parseFlagTable(argv, await flagsOf(command));
  const { help, format = 'text', changes = [], ...values } = valuesOf(given);
  if (help === true) return 'help';
  const [least, most] = command.positionals;
  if (positionals.length < least || positionals.length > most) {
    const got = positionals.length === 0 ? 'none' : positionals.map((text) => `'${text}'`).join(' ');
    throw new UsageError(
      `luthier ${name} takes ${command.usage === '' ? 'no arguments' : command.usage}; got ${got}. ` +
        `luthier ${name} --help tells more.`,
    );
  }
  return { positionals, values, changes: changes as Override[], format: format as string, warn };
}
