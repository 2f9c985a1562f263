/** @file Fiddlers and sweeps: functions that an experiment's file exports, their declarations and calls. */

import type { ExperimentConfigs } from '../experiment/index.js';
import {
  type Argument,
  type Call,
  ConfigError,
  coerceLiteral,
  describeSchema,
  didYouMean,
  type Fields,
  type HpFrom,
  plainValue,
  problemAt,
} from '../hparams/index.js';
import { UsageError } from '../system/text/index.js';
import { mostArguments } from './parameters.js';

/** A fiddler's result: nothing if it edits the configs, or replacements for some of them. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement is of this type.
export type FiddlerResult = void | Partial<ExperimentConfigs>;
/** A sweep's result: values by path for each run. */
export type SweepResult = readonly Readonly<Record<string, unknown>>[];

/** Key under which `fiddler` and `sweep` mark their functions. */
const DECLARED: unique symbol = Symbol('luthier.commandLine');

interface Declared {
  readonly kind: 'fiddler' | 'sweep';
  readonly fields: Fields;
}

/**
 * Declares a function for `--fiddler name(argument=value)`. Schemas parse and check its arguments, give defaults, and
 * document them in `--help`. Plain exported functions also work, and take literals.
 *
 *     export const scaleWidth = fiddler({ factor: z.number().positive().default(2) }, (configs, { factor }) => { … });
 */
export function fiddler<F extends Fields>(
  fields: F,
  fn: (configs: ExperimentConfigs, values: HpFrom<F>) => FiddlerResult,
): (configs: ExperimentConfigs, values: HpFrom<F>) => FiddlerResult {
  const declared: Declared = { kind: 'fiddler', fields };
  return Object.assign((configs: ExperimentConfigs, values: HpFrom<F>) => fn(configs, values), {
    [DECLARED]: declared,
  });
}

/**
 * Declares a function for `--sweep name(argument=value)`. It returns one entry per run: values by `--set` path.
 *
 *     export const sizes = sweep({ most: z.int() }, ({ most }) => range(most).map((n) => ({ numLayers: n, modelDims: 64 * n })));
 */
export function sweep<F extends Fields>(
  fields: F,
  fn: (values: HpFrom<F>) => SweepResult,
): (values: HpFrom<F>) => SweepResult {
  const declared: Declared = { kind: 'sweep', fields };
  return Object.assign((values: HpFrom<F>) => fn(values), { [DECLARED]: declared });
}

/** A function that the command line can call. */
export interface CommandFunction {
  readonly name: string;
  /** Undefined for a plain function, which may be either. */
  readonly kind: 'fiddler' | 'sweep' | undefined;
  /** Schemas of its arguments; undefined for a plain function. */
  readonly fields: Fields | undefined;
  readonly fn: (...values: any[]) => unknown;
}

function isPlainFunction(value: unknown): value is (...values: any[]) => unknown {
  // Exported classes and configurable functions are not for calling.
  return (
    typeof value === 'function' &&
    !('config' in value) &&
    !/^class\b/.test(Function.prototype.toString.call(value))
  );
}

/** A module's own exported functions, by name. */
export function commandFunctions(exports: Readonly<Record<string, unknown>>): CommandFunction[] {
  return Object.entries(exports).flatMap(([name, fn]) => {
    if (!isPlainFunction(fn)) return [];
    const declared = (fn as { [DECLARED]?: Declared })[DECLARED];
    return [{ name, kind: declared?.kind, fields: declared?.fields, fn }];
  });
}

/** Finds the function of a call. @throws UsageError that lists the available ones. */
export function findFunction(
  kind: 'fiddler' | 'sweep',
  name: string,
  origin: string,
  exports: Readonly<Record<string, unknown>>,
  file: string,
): CommandFunction {
  const all = commandFunctions(exports);
  const found = all.find((each) => each.name === name);
  if (found !== undefined && (found.kind ?? kind) === kind) return found;
  const fitting = all.filter((each) => (each.kind ?? kind) === kind).map((each) => each.name);
  const why =
    found === undefined ? `${file} exports no ${kind} '${name}'` : `'${name}' of ${file} is a ${found.kind}`;
  const hint = didYouMean(name, fitting);
  throw new UsageError(`${origin}: ${why}.${hint} Its ${kind}s are: ${fitting.sort().join(', ') || 'none'}.`);
}

/**
 * Arguments of a call, after `leading` others. A declared function gets one object with all arguments; a plain one gets
 * positional literals, then an object of the named ones.
 *
 * @throws ConfigError that points at the wrong or superfluous argument, or at the end where arguments are missing.
 */
export function argumentsFor({ fields, fn }: CommandFunction, call: Call, leading: number): unknown[] {
  if (fields !== undefined) return [declaredArguments(fields, call)];
  const named = call.arguments.filter(({ name }) => name !== undefined);
  const values = call.arguments
    .filter(({ name }) => name === undefined)
    .map(({ value }) => plainValue(value));
  if (named.length > 0)
    values.push(Object.fromEntries(named.map(({ name, value }) => [name, plainValue(value)])));
  checkCount(fn, call, values.length, leading);
  return values;
}

/** Checks the number of arguments of a plain function. */
function checkCount(fn: CommandFunction['fn'], call: Call, count: number, leading: number): void {
  const amount = (n: number) => `${n} ${n === 1 ? 'argument' : 'arguments'}, got ${count}.`;
  const least = fn.length - leading;
  if (count < least) throw problemAt(`${call.name} needs ${amount(least)}`, call.text, call.text.length);
  if (count <= Math.max(0, least)) return;
  const most = Math.max(0, mostArguments(fn) - leading);
  if (count <= most) return;
  // Named arguments are one object, wherever they are.
  const positional = call.arguments.filter(({ name }) => name === undefined);
  const extra = positional[most] ?? call.arguments.find(({ name }) => name !== undefined)!;
  const problem =
    most === 0 ? `${call.name} takes no arguments.` : `${call.name} takes at most ${amount(most)}`;
  throw problemAt(problem, call.text, extra.column);
}

function declaredArguments(fields: Fields, call: Call): Record<string, unknown> {
  const names = Object.keys(fields);
  const given = new Map<string, Argument>();
  for (const [i, argument] of call.arguments.entries()) {
    const name = argument.name ?? names[i];
    const fail = (problem: string) => problemAt(problem, call.text, argument.column);
    const list = names.length === 0 ? 'It takes none.' : `It takes ${names.join(', ')}.`;
    if (name === undefined) throw fail(`${call.name} got one argument too many. ${list}`);
    if (!Object.hasOwn(fields, name)) {
      throw fail(`${call.name} has no argument '${name}'.${didYouMean(name, names)} ${list}`);
    }
    if (given.has(name)) throw fail(`The argument '${name}' is given twice.`);
    given.set(name, argument);
  }
  return Object.fromEntries(names.map((name) => [name, argumentValue(name, fields, call, given.get(name))]));
}

function argumentValue(name: string, fields: Fields, call: Call, argument: Argument | undefined): unknown {
  const schema = fields[name]!;
  if (argument === undefined) {
    const byDefault = schema.safeParse(undefined);
    if (byDefault.success) return byDefault.data;
    throw problemAt(
      `${call.name} needs the argument '${name}': ${describeSchema(schema)}.`,
      call.text,
      call.text.length,
    );
  }
  try {
    return schema.parse(coerceLiteral(schema, argument.value, name));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw problemAt(error.problem, call.text, argument.column);
  }
}
