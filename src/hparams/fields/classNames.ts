/**
 * @file Names of classes in documents and flags: short where that leads back to the class, else qualified by the module
 * that declares it.
 */
import { ConfigError } from '../errors.js';
import { captureTrace, placeText } from '../source.js';
import type { AbstractClass } from '../types.js';
import { isOfLibrary, moduleOf, specifierOfClass } from './declaringModule.js';

const byName = new Map<string, Set<AbstractClass>>();
const aliases = new Map<string, AbstractClass>();

/** Key of the static property of classes that only display uses, which no name leads to. */
export const UNNAMED: unique symbol = Symbol('luthier.unnamed');
/** Key of the static property that holds the function or class that `configurable` was given. */
export const DECLARED: unique symbol = Symbol('luthier.declared');

/** The declared function: for a `configurable` target, its argument. */
function sourceOf(cls: AbstractClass): Function {
  return (cls as { [DECLARED]?: Function })[DECLARED] ?? cls;
}

/**
 * Makes classes known by their names to `fromJSON` and to command-line flags. Classes that were configured, or named in
 * `sub` or `instance`, are known already; a module that offers several to choose from (activations, say) names them all.
 */
export function registerClass(...classes: AbstractClass[]): void {
  for (const cls of classes) {
    if (Object.hasOwn(cls, UNNAMED)) continue;
    const same = byName.get(cls.name);
    if (same === undefined) byName.set(cls.name, new Set([cls]));
    else same.add(cls);
  }
}

/**
 * Lets documents that were written when `cls` was called `oldName` be read. A class that has the name now wins. An alias
 * that is the short name of `cls` itself says which of several classes of that name the short name means.
 *
 * @throws ConfigError where the name stands for another class.
 */
export function registerAlias(oldName: string, cls: AbstractClass): void {
  const isClaim = oldName === cls.name;
  const known = aliases.get(oldName) ?? (isClaim ? cls : classesNamed(oldName)[0]);
  if (known !== undefined && known !== cls) {
    throw new ConfigError(`registerAlias('${oldName}', ${cls.name}): the name belongs to ${known.name}.`, {
      place: placeText(captureTrace()),
    });
  }
  aliases.set(oldName, cls);
}

/** The class that was called `name` before. */
export function classOfAlias(name: string): AbstractClass | undefined {
  return aliases.get(name);
}

/** The names that `cls` had before. */
export function formerNamesOf(cls: Function): string[] {
  return [...aliases].flatMap(([name, of]) => (of === cls && name !== cls.name ? [name] : []));
}

/** All names that classes had before. */
export function aliasNames(): Iterable<string> {
  return aliases.keys();
}

/** The classes that were used so far and can be configured. */
export function concreteClasses(): AbstractClass[] {
  return [...byName.values()].flatMap((classes) => [...classes].filter((cls) => !isAbstract(cls)));
}

/** Whether a class is there to be extended only. */
export function isAbstract(cls: AbstractClass): boolean {
  return Object.hasOwn(cls, 'isAbstract') && (cls as { isAbstract?: unknown }).isAbstract === true;
}

/**
 * The classes that `name` may mean, ideally one. A short name that several classes share means the alias's class, else
 * the library's: older documents keep their meaning when a program declares its own class of that name.
 */
export function classesNamed(name: string): AbstractClass[] {
  const dot = name.lastIndexOf('.');
  const named = [...(byName.get(name.slice(dot + 1)) ?? [])];
  if (dot >= 0) return named.filter((cls) => qualifiedName(cls) === name);
  if (named.length <= 1) return named;
  const concrete = named.filter((cls) => !isAbstract(cls));
  const candidates = concrete.length > 0 ? concrete : named;
  const claimed = candidates.find((cls) => aliases.get(name) === cls);
  if (claimed !== undefined) return [claimed];
  if (candidates.length === 1) return candidates;
  const own = candidates.filter((cls) => isOfLibrary(sourceOf(cls)));
  return own.length === 1 ? own : candidates;
}

/** `layers.Linear` for a class of the library, `experiments/mine.Linear` for one of a program. */
export function qualifiedName(cls: AbstractClass): string {
  const module = moduleOf(sourceOf(cls));
  return module === undefined ? cls.name : `${module}.${cls.name}`;
}

/** The specifier in documents of the file that declares `cls`; undefined for a class of the library. */
export function specifierOfDeclared(cls: AbstractClass): string | undefined {
  return specifierOfClass(sourceOf(cls));
}

/** Message for an ambiguous class name. */
export function severalProblem(name: string, classes: readonly AbstractClass[]): string {
  const names = [...new Set(classes.map(qualifiedName))].sort();
  const option = `choose one by the option { classes: [${classes[0]!.name}] }.`;
  const several = `There are ${classes.length} classes called '${name}'`;
  // Those that one module declares have no other name either.
  if (names.length < classes.length) return `${several}: ${option}`;
  return `${several}: ${names.join(', ')}. Write one of these names, or ${option}`;
}

/** The name that leads back to `cls`: the short one where it does, else the qualified one. */
export function nameOf(cls: AbstractClass): string {
  const { name } = cls;
  if (!hasNamesake(cls)) return name;
  const meant = classesNamed(name);
  return meant.length === 1 && meant[0] === cls ? name : qualifiedName(cls);
}

/** Whether the program knows another class of the same name. */
export function hasNamesake(cls: AbstractClass): boolean {
  const same = byName.get(cls.name);
  return same !== undefined && same.size > (same.has(cls) ? 1 : 0);
}
