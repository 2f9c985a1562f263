/** @file Former names of fields, under which saved configs are still read. */
import type { z } from 'zod';
import { ConfigError } from '../errors.js';
import { refusedKeys } from '../nodes/containers.js';
import { captureTrace, placeText } from '../source.js';
import { markedOldNames, markOldNames } from './schema.js';

/** Key of the static property that leads from the old names of a class's fields to the present ones. */
export const OLD_NAMES: unique symbol = Symbol('luthier.oldNamesOfFields');

/** Present names of fields by the names that they had before. */
export type OldNames = Readonly<Record<string, string>>;

/**
 * A field's schema, with former names of the field. JSON, YAML, config files and flags may use a former name, with a
 * notice; in code it is an error that suggests the present one.
 *
 * with({ numHeads: renamed(z.int().default(8).describe('Attention heads.'), 'heads') })
 *
 * @throws ConfigError for invalid names, or none.
 */
export function renamed<S extends z.ZodType>(schema: S, ...oldNames: readonly [string, ...string[]]): S {
  const wrong = oldNames.find((name) => !isFieldName(name));
  if (wrong === undefined && oldNames.length > 0) return markOldNames(schema, oldNames);
  throw new ConfigError(
    wrong === undefined
      ? "renamed() takes a schema and the field's old names."
      : `renamed(): '${wrong}' cannot have been the name of a field.`,
    { place: placeText(captureTrace()) },
  );
}

/** Whether a field may be called `name`. */
export function isFieldName(name: unknown): name is string {
  return typeof name === 'string' && /^[A-Za-z_$][\w$]*$/.test(name) && !refusedKeys.has(name);
}

/**
 * The old names that a class has when it declares `fields` beside those that it inherits.
 *
 * @throws ConfigError that begins with `where`, for a name that is both old and present, or old for two fields.
 */
export function withOldNames(
  where: string,
  inherited: { readonly fields: Readonly<Record<string, z.ZodType>>; readonly oldNames: OldNames },
  fields: Readonly<Record<string, z.ZodType>>,
): OldNames {
  const own = Object.entries(fields).flatMap(([name, schema]) =>
    markedOldNames(schema).map((old) => [old, name] as const),
  );
  const names: Record<string, string> = Object.assign(Object.create(null), inherited.oldNames);
  const fail = (problem: string): never => {
    throw new ConfigError(`${where}: ${problem}`, { place: placeText(captureTrace()) });
  };
  for (const [old, name] of own) {
    const other = names[old];
    if (other !== undefined && other !== name)
      fail(`'${old}' is an old name of both '${other}' and '${name}'.`);
    names[old] = name;
  }
  for (const [old, name] of Object.entries(names)) {
    if (Object.hasOwn(fields, old) || Object.hasOwn(inherited.fields, old)) {
      fail(
        `'${old}' is an old name of '${name}', and cannot be a field, too: saved values would load into the wrong field.`,
      );
    }
  }
  return names;
}

/** The present names of a class's fields by those that they had before. */
export function formerFieldsOf(cls: object): OldNames {
  return (cls as { [OLD_NAMES]?: OldNames })[OLD_NAMES] ?? {};
}

/** ` It is called 'x' now.` for an old name, else the empty string. */
export function presentNameHint(oldNames: OldNames, name: string): string {
  const present = Object.hasOwn(oldNames, name) ? oldNames[name] : undefined;
  return present === undefined ? '' : ` It was renamed to '${present}'.`;
}

/** Notice of an old name; `who` is the document, the place in a file or the flag that uses it. */
export function oldNameNotice(who: string, owner: string, old: string, present: string): string {
  return `${who} uses the old name '${old}' of ${owner}.${present}.`;
}

/** Message for a field given by two of its names. */
export function givenTwice(owner: string, present: string, first: string, second: string): string {
  return `${owner}.${present} is given as '${first}' and as '${second}', which are the same field: leave one out.`;
}
