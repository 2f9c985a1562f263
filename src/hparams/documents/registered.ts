/** @file Classes and constants by the names that documents and generated code give them. */
import { ConfigError, didYouMean } from '../errors.js';
import {
  aliasNames,
  classesNamed,
  classOfAlias,
  concreteClasses,
  nameOf,
  qualifiedName,
  severalProblem,
} from '../fields/classNames.js';
import { showValue } from '../fields/describe.js';
import { abstractProblem } from '../fields/fields.js';
import { isContainer } from '../nodes/containers.js';
import { nodeOf } from '../nodes/node.js';
import { captureTrace, placeText } from '../source.js';
import type { AbstractClass } from '../types.js';

/** The class that a document calls `name`. Nothing is imported. @throws ConfigError for none, or more than one. */
export function findClass(
  name: string,
  given: readonly AbstractClass[],
  notify: (notice: string) => void,
): AbstractClass {
  const short = name.slice(name.lastIndexOf('.') + 1);
  const own = given.filter((cls) => cls.name === short && (name === short || qualifiedName(cls) === name));
  const found = own.length > 0 ? own : classesNamed(name);
  const problem = found.length === 1 ? abstractProblem(found[0]!) : undefined;
  if (problem !== undefined) throw new ConfigError(problem);
  if (found.length === 1) return found[0]!;
  if (found.length > 1) throw new ConfigError(severalProblem(name, found));
  const renamed = classOfAlias(name);
  if (renamed !== undefined) {
    notify(`The config document calls ${renamed.name} by its old name '${name}'.`);
    return renamed;
  }
  const known = [...concreteClasses(), ...given].map((cls) => (cls.name === short ? nameOf(cls) : cls.name));
  throw new ConfigError(
    `No class '${name}' is known.${didYouMean(name, [...known, ...aliasNames()])} ` +
      'A document names only classes that the program has imported and used, or was given by the option classes.',
  );
}

const named = new Map<string, unknown>();
const names = new Map<unknown, string>();

/**
 * Lets documents hold `value`, a function, symbol or instance, by `name`. It is found by identity, so a value has one
 * name; register it where it is declared, so that it is there before a document is read.
 *
 * @throws ConfigError where the name stands for something else, or the value has a form, or a name, already.
 */
export function registerConstant(name: string, value: unknown): void {
  const problem = problemWith(name, value);
  if (problem !== undefined) {
    throw new ConfigError(`registerConstant(${showValue(name)}): ${problem}`, {
      place: placeText(captureTrace()),
    });
  }
  named.set(name, value);
  names.set(value, name);
}

function problemWith(name: string, value: unknown): string | undefined {
  if (typeof name !== 'string' || name === '') return 'a constant needs a name.';
  const hasIdentity = ['function', 'symbol', 'object'].includes(typeof value) && value !== null;
  if (!hasIdentity || isContainer(value)) return `${showValue(value)} has a JSON form, and needs no name.`;
  if (nodeOf(value) !== undefined) return 'configs are kept as configs; share one object instead.';
  if (named.has(name) && named.get(name) !== value) return 'the name stands for another constant already.';
  const other = names.get(value);
  if (other !== undefined && other !== name) return `the value is called '${other}' already.`;
  return undefined;
}

/** The name that `value` was registered under. */
export function constantNameOf(value: unknown): string | undefined {
  return names.get(value);
}

/** The constant called `name`. @throws ConfigError with the nearest name. */
export function constantNamed(name: unknown): unknown {
  if (typeof name === 'string' && named.has(name)) return named.get(name);
  const hint = typeof name === 'string' ? didYouMean(name, named.keys()) : '';
  throw new ConfigError(
    `No constant ${showValue(name)} is known.${hint} Import the module that registers it with registerConstant().`,
  );
}
