/** @file Interface of `luthier` commands: flags, positional arguments, report. */
import { type FlagTable, flagsHelp, oneOf, parseFlagTable, valuesOf } from '../cli/commandLine/index.js';
import type { Override } from '../cli/index.js';
import { type Paint, UsageError } from '../system/text/index.js';

/** Output formats of every command. */
const formats = ['text', 'json'] as const;

/** Result of a command. Its text forms end without a newline. */
export interface Report {
  /** For terminals, where `paint` adds colours. */
  text(paint: Paint): string;
  /** Plain data for scripts. */
  json(): unknown;
  /** The command's further formats, by name. */
  readonly further?: Readonly<Record<string, () => string>>;
  /** 0 if absent; 1 if a check fails. */
  readonly exitCode?: number;
}

/** Arguments of a command. */
export interface Arguments {
  readonly positionals: readonly string[];
  /** Values of the command's flags, by key. */
  readonly values: Readonly<Record<string, unknown>>;
  /** --set, --unset, --fiddler and --config_file, in the given order. */
  readonly changes: readonly Override[];
  readonly format: string;
  /** Prints a warning to the terminal, outside of the report. */
  readonly warn: (line: string) => void;
}

/** A command. */
export interface Command {
  /** Positional arguments in --help: `EXP`, `A B`, `[PATTERN]`. */
  readonly usage: string;
  /** Smallest and largest number of positional arguments. */
  readonly positionals: readonly [least: number, most: number];
  readonly flags: FlagTable;
  /** Whether the command accepts --set, --unset, --fiddler and --config_file. */
  readonly changes: boolean;
  /** Formats besides the common ones: Markdown where a reviewer pastes the report into a comment. */
  readonly formats?: readonly string[];
  /** Text below the flags in --help: examples, exit codes. */
  readonly details?: string;
  run(args: Arguments): Promise<Report>;
}

/** All flags of a command, in --help order. */
async function flagsOf(command: Command): Promise<FlagTable> {
  // Flags that change experiments load hparams, which takes a third of the time that `list` may take.
  const changing = command.changes ? (await import('../cli/run/index.js')).overrideFlags : {};
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

/** Output of `luthier NAME --help`. */
export async function commandHelp(name: string, about: string, command: Command): Promise<string> {
  const usage = ['npx luthier', name, command.usage, '[flags]'].filter((part) => part !== '').join(' ');
  const details = command.details === undefined ? '' : `\n\n${command.details}`;
  return `${about}\n\n  ${usage}\n\nFlags:\n${flagsHelp(await flagsOf(command))}${details}`;
}

/**
 * Parses a command's arguments; returns 'help' for --help.
 *
 * @throws UsageError for unknown flags, invalid values, and too few or too many arguments.
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
        `luthier ${name} --help explains more.`,
    );
  }
  return { positionals, values, changes: changes as Override[], format: format as string, warn };
}
