/** @file Constants of experiments: schemas per class, values per instance, errors. */
import type { z } from 'zod';
import { ConfigError, coerce, didYouMean, type OldNames, presentNameHint } from '../hparams/index.js';
import { checkValue } from './checkConstant.js';

/** Schemas of an experiment's constants, by name. */
export type Constants = Readonly<Record<string, z.ZodType>>;
/** A constant set on the command line: `--set numLayers=6`, a value from a file, or `--unset numLayers`. */
export type ConstantOverride = {
  readonly name: string;
  /** The flag as written, or the place in the file, for messages and experiment_cls_vars.txt. */
  readonly origin: string;
} & ({ readonly text: string } | { readonly value: unknown } | { readonly toDefault: true });

/** A write to a constant; writes are in constructor order. */
export interface Write {
  readonly name: string;
  /** Values of the constants that were read since the write before: a class field's initializer may have used them. */
  readonly reads: ReadonlyMap<string, unknown>;
}

export interface State {
  /** Values, or how they are computed. */
  readonly values: Map<string, unknown>;
  /** Values that are being computed, outermost first. */
  readonly computing: Computed[];
  readonly overridden: Map<string, ConstantOverride>;
  readonly writes: Write[];
  /** Values of the constants read since the last write. */
  readonly recentReads: Map<string, unknown>;
  /** Constants read so far. */
  readonly reads: Set<string>;
}

export const declared = Symbol('constants');
/** Marks classes made by `preset`. */
export const presets = Symbol('presets');
export const states = new WeakMap<object, State>();
export const oldNames = Symbol('oldNames');

export type Declaring = { [declared]?: Constants; [oldNames]?: OldNames; [presets]?: true };

/** Schemas of all constants of `cls`, ancestors' first; a redeclared constant replaces its ancestor's. */
export function constantsOf(cls: Function): Record<string, z.ZodType> {
  const chain: Constants[] = [];
  for (let c: any = cls; typeof c === 'function'; c = Object.getPrototypeOf(c)) {
    if (Object.hasOwn(c, declared)) chain.unshift((c as Declaring)[declared]!);
  }
  return Object.assign({}, ...chain);
}

/** Present names of the constants of `cls`, by old name (see `renamed`). */
export function oldConstantsOf(cls: Function): OldNames {
  return (cls as Declaring)[oldNames] ?? {};
}

/** Error for a constant without value or default. */
export class MissingConstantError extends ConfigError {
  constructor(
    message: string,
    readonly constant: string,
    /** A flag that would set it: `--set dataPath=PATH`. */
    readonly flag: string,
  ) {
    super(message);
  }
}

export const unset = Symbol('unset');

/** A constant that follows others: its value is computed at each read, from whatever sets the others. */
export class Computed {
  constructor(
    readonly name: string,
    readonly compute: () => unknown,
    /** The value of the base class, or its way of being computed, which `compute` sees under its own name. */
    readonly inherited: unknown,
    readonly place: string | undefined,
  ) {}
}

/**
 * A constant's value, or `unset` if nothing sets it.
 *
 * @throws ConfigError for a computed value that is invalid, that reads a constant without value, or that depends on itself.
 */
export function currentValue(state: State, schema: z.ZodType, name: string): unknown {
  const innermost = state.computing.at(-1);
  // `preset({ width: ({ width }) => 2 * width })` doubles the base class's width.
  const entry =
    innermost?.name === name ? innermost.inherited : state.values.has(name) ? state.values.get(name) : unset;
  if (entry instanceof Computed) return computed(state, entry);
  if (entry !== unset) return entry;
  const byDefault = schema.safeParse(undefined);
  return byDefault.success ? byDefault.data : unset;
}

function computed(state: State, entry: Computed): unknown {
  const { computing } = state;
  const start = computing.indexOf(entry);
  if (start >= 0) {
    const cycle = [...computing.slice(start), entry].map(({ name }) => name).join(' → ');
    throw new ConfigError(
      `The constants ${cycle} are computed from each other: set one of them to a value, in a preset or by ` +
        `--set ${entry.name}=VALUE.`,
      { place: entry.place },
    );
  }
  computing.push(entry);
  try {
    return entry.compute();
  } finally {
    computing.pop();
  }
}

/** Whether a constant has a value, computed or not, or a default. */
function isSet(state: State, schema: z.ZodType, name: string): boolean {
  return state.values.has(name) || schema.safeParse(undefined).success;
}

/** Errors for all constants without value or default. */
export function missingConstants(cls: Function, state: State): MissingConstantError[] {
  return Object.entries(constantsOf(cls))
    .filter(([name, schema]) => !isSet(state, schema, name))
    .map(([name, schema]) => missing(cls, name, schema));
}

export function missing(cls: Function, name: string, schema: z.ZodType): MissingConstantError {
  const about = schema.description ? ` (${schema.description.replace(/\.$/, '')})` : '';
  const example = /path|dir|file/i.test(name) ? 'PATH' : 'VALUE';
  const flag = `--set ${name}=${example}`;
  return new MissingConstantError(
    `${cls.name} needs a value for its constant '${name}'${about}: it has no default. ` +
      `Set it with ${flag}, or in the class with preset({ ${name}: … }).`,
    name,
    flag,
  );
}

export function unknownConstant(cls: Function, name: string, place: string | undefined): ConfigError {
  const names = Object.keys(constantsOf(cls));
  const list = names.sort().join(', ') || 'none';
  const hint = presentNameHint(oldConstantsOf(cls), name) || didYouMean(name, names);
  return new ConfigError(`${cls.name} has no constant '${name}'.${hint} Its constants are: ${list}.`, {
    path: name,
    place,
  });
}

/** Parses an override's value. @throws ConfigError for an invalid one. */
export function parseOverride(cls: Function, schema: z.ZodType, override: ConstantOverride): unknown {
  const label = `${cls.name}.${override.name}`;
  if ('toDefault' in override) return defaultOf(schema, label, override.origin);
  try {
    // Texts in files are parsed like flags: YAML reads `1e-3` as a string, which stands for a number.
    const text = 'text' in override ? override.text : override.value;
    const value = typeof text === 'string' ? coerce(schema, text, label) : text;
    return checkValue(
      schema,
      value,
      () => label,
      () => override.origin,
    );
  } catch (error) {
    if (!(error instanceof ConfigError) || error.place !== undefined) throw error;
    throw new ConfigError(error.problem, { path: override.name, place: override.origin });
  }
}

function defaultOf(schema: z.ZodType, label: string, origin: string): unknown {
  const byDefault = schema.safeParse(undefined);
  if (byDefault.success) return byDefault.data;
  throw new ConfigError(`${label} has no default to go back to`, { place: origin });
}
