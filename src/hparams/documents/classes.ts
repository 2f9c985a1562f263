/** @file The classes that documents name: those that the program has, and the names that some had before. */
import { ConfigError } from '../errors.js';
import { abstractProblem, classesNamed, concreteClasses } from '../fields/fields.js';
import { didYouMean } from '../names.js';
import { captureTrace, placeText } from '../source.js';
import type { AbstractClass } from '../types.js';

const aliases = new Map<string, AbstractClass>();

/**
 * Lets documents that were written when `cls` was called `oldName` be read. A class that has the name now wins.
 *
 * @throws ConfigError where the name stands for another class.
 */
export function registerAlias(oldName: string, cls: AbstractClass): void {
  const known = aliases.get(oldName) ?? classesNamed(oldName).find((other) => other !== cls);
  if (known !== undefined && known !== cls) {
    throw new ConfigError(`registerAlias('${oldName}', ${cls.name}): the name stands for ${known.name}.`, {
      place: placeText(captureTrace()),
    });
  }
  aliases.set(oldName, cls);
}

/** The class that a document calls `name`. Nothing is imported. @throws ConfigError for none, or more than one. */
export function findClass(
  name: string,
  given: readonly AbstractClass[],
  notify: (notice: string) => void,
): AbstractClass {
  const own = given.filter((cls) => cls.name === name);
  const found = own.length > 0 ? own : classesNamed(name);
  const problem = found.length === 1 ? abstractProblem(found[0]!) : undefined;
  if (problem !== undefined) throw new ConfigError(problem);
  if (found.length === 1) return found[0]!;
  if (found.length > 1) {
    throw new ConfigError(
      `There are ${found.length} classes called '${name}': say which by the option { classes: [${name}] }.`,
    );
  }
  const renamed = aliases.get(name);
  if (renamed !== undefined) {
    notify(`The config document calls ${renamed.name} by its old name '${name}'.`);
    return renamed;
  }
  const known = [...concreteClasses(), ...given].map((cls) => cls.name);
  throw new ConfigError(
    `No class '${name}' is known.${didYouMean(name, [...known, ...aliases.keys()])} ` +
      'A document names only classes that the program has imported and used, or was given by the option classes.',
  );
}
