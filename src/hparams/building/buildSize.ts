/** @file Limit on the configs of one build, and the field that exceeds it. */

import { countText, linesBelow } from '../../system/text/index.js';
import { ConfigError } from '../errors.js';
import { ConfigNode, TooManyConfigs } from '../nodes/configNode.js';
import { hasValue, rawValue } from '../nodes/node.js';
import { placeOfValue } from './buildErrors.js';

/** A config whose instance is being made. */
export interface BuildInProgress {
  readonly node: ConfigNode;
  /** Number of configs that there were when that began. */
  readonly began: number;
  /** Number of configs that it has built so far. */
  parts: number;
}

/** 1,700 transformer layers, which take 10 s. */
const DEFAULT_MOST = 200_000;
/** Configs of a part that is large. */
const MOST_OF_ONE = 1000;
const LONGEST_LIST = 2 ** 32 - 1;
const VARIABLE = 'LUTHIER_MAX_CONFIGS';

/** The most configs that a build may make. @throws ConfigError where the environment has no such number */
export function mostConfigs(env: NodeJS.ProcessEnv): number {
  const text = env[VARIABLE]?.trim() ?? '';
  const most = text === '' ? DEFAULT_MOST : Number(text);
  if (Number.isSafeInteger(most) && most > 0) return most;
  throw new ConfigError(`${VARIABLE}: expected a positive integer, got '${text}'.`);
}

/**
 * `error`, or a ConfigError where it says that too many configs were made, or that a list cannot be as long. That names the innermost config within which most
 * of them were, and its numbers that may have asked for them.
 *
 * @param building the configs that are being made, the innermost last.
 */
export function sized(error: unknown, building: readonly BuildInProgress[]): unknown {
  const isTooLong = error instanceof RangeError && error.message === 'Invalid array length';
  if (!isTooLong && !(error instanceof TooManyConfigs)) return error;
  const made = ConfigNode.count - building[0]!.began;
  const isOwner = ({ began }: BuildInProgress) => isTooLong || ConfigNode.count - began > made / 2;
  const owner = building.findLast(isOwner)!;
  const [first, ...others] = numbersOf(owner, isTooLong ? LONGEST_LIST : made / MOST_OF_ONE);
  const most = countText(mostConfigs(process.env));
  const limit = `a build of more than ${most} configs is considered a mistake; ${VARIABLE} sets another limit.`;
  if (first === undefined) return new ConfigError(`${owner.node.info.name} is too large: ${limit}`);
  const more = others.map(({ name, value }) => `Or it is because ${name} is ${value}.`);
  return new ConfigError(
    `${owner.node.info.name}.${first.name} is too large, ${first.value}: ${limit}${linesBelow(more)}`,
    { path: first.name, place: placeOfValue(owner.node, first.name) },
  );
}

interface NumberField {
  readonly name: string;
  readonly value: number;
}

/** Integers of a config that may count its parts, from a number on that is no smaller than that of its parts so far. The likeliest comes first. */
function numbersOf({ node, parts }: BuildInProgress, atLeast: number): NumberField[] {
  const least = Math.max(2, parts, atLeast);
  const numbers = [...node.info.fields.values()].flatMap((field): NumberField[] => {
    const value = hasValue(node, field) ? rawValue(node, field) : undefined;
    const counts = Number.isSafeInteger(value) && (value as number) >= least;
    return counts ? [{ name: field.name, value: value as number }] : [];
  });
  // Where parts were being built already, the count is most of the number; else copies for them were made, by the thousand.
  const sign = parts > 100 ? 1 : -1;
  return numbers.sort((a, b) => sign * (a.value - b.value)).slice(0, 3);
}
