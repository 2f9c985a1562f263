/** @file Constants that the settings of reviews give to experiments that have no value for them. */

import { isPattern, matching, suggestExperiment } from '../../registry/names/index.js';
import { UsageError } from '../../system/text/index.js';
import type { ReviewSettings } from '../settings.js';
import type { GivenConstant, GivenConstants } from '../versions/protocol.js';

type Constants = ReviewSettings['constants'];

/**
 * The constants of each experiment: those of the base's settings; for experiments that the base lacks, those of the
 * working tree, too. Constants of a pattern come before those of a name.
 *
 * @throws UsageError for a name or pattern of the working tree's settings without an experiment.
 */
export function givenConstants(
  settings: { readonly base: Constants; readonly workingTree: Constants },
  experiments: { readonly old: ReadonlySet<string>; readonly all: readonly string[] },
): GivenConstants {
  const { old, all } = experiments;
  for (const key of Object.keys(settings.workingTree)) {
    if (meant(key, all).length > 0) continue;
    const hint = isPattern(key) ? '' : suggestExperiment(key, all);
    throw new UsageError(`${originOf(key)}: no experiment has this name.${hint}`);
  }
  const known = all.filter((name) => old.has(name));
  const added = all.filter((name) => !old.has(name));
  const of = new Map<string, GivenConstant[]>();
  const give = (constants: Constants, names: readonly string[]): void => {
    const keys = Object.keys(constants).sort((a, b) => Number(isPattern(b)) - Number(isPattern(a)));
    for (const key of keys) {
      const given = Object.entries(constants[key]!).map(([path, value]): GivenConstant => {
        const text = typeof value === 'string' ? value : JSON.stringify(value);
        return { kind: 'set', path, text, origin: originOf(key), isForOne: !isPattern(key) };
      });
      for (const name of meant(key, names)) of.set(name, [...(of.get(name) ?? []), ...given]);
    }
  };
  give(settings.workingTree, added);
  give(settings.base, [...known, ...added]);
  return { kind: 'given', of: Object.fromEntries(of) };
}

function meant(key: string, names: readonly string[]): readonly string[] {
  if (!isPattern(key)) return names.filter((name) => name === key);
  return matching(
    key,
    names.map((name) => ({ name })),
  ).map(({ name }) => name);
}

function originOf(key: string): string {
  return `luthier.review.constants['${key}'] of package.json`;
}
