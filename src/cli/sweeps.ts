/** @file Expansion of --sweep flags to runs. */
import { ConfigError, formatLiteral, parseCall, showValue } from '../hparams/index.js';
import type { ResolvedExperiment } from '../registry/index.js';
import { showFile } from '../registry/names/index.js';
import { UsageError } from '../system/text/index.js';
import { argumentsFor, findFunction } from './commandFunctions.js';
import { configure } from './configure.js';
import { callFunction, isRecord } from './fiddlers.js';
import { asUsage, type Change, isCall, type Override, type SweepChange } from './overrides.js';
import { DistinctRuns } from './sweepEffects.js';
import { combinationNames, parseSweptPath, product, type Setting } from './sweepGrammar.js';

/** A run of a sweep. */
export interface Combination {
  /** Unique directory name: `learningRate=0.001,numLayers=4`. */
  readonly name: string;
  /** Settings of this run. */
  readonly settings: readonly Setting[];
  /** All changes of the command line, with each sweep replaced by its settings. */
  readonly overrides: readonly Override[];
}

/** A sweep's choices, as settings. */
function choicesOf(change: SweepChange, resolved: ResolvedExperiment): Setting[][] {
  const { text, origin } = change;
  if (!isCall(text)) {
    const { path, texts } = asUsage(origin, () => parseSweptPath(text));
    return texts.map((value) => [{ path, text: value }]);
  }
  const call = asUsage(origin, () => parseCall(text));
  const command = findFunction('sweep', call.name, origin, resolved.exports, showFile(resolved.file));
  const values = asUsage(origin, () => argumentsFor(command, call, 0));
  return asUsage(origin, () => settingsOf(callFunction(command, values, origin), command.name));
}

function settingsOf(result: unknown, name: string): Setting[][] {
  const isList = Array.isArray(result) && result.length > 0;
  if (!isList || !result.every((each) => isRecord(each))) {
    throw new ConfigError(
      `${name}() must return a list of records, { path: value } for each run, got ${showValue(result)}.`,
    );
  }
  return result.map((each: Record<string, unknown>) =>
    Object.entries(each).map(([path, value]) => ({ path, text: formatLiteral(value) })),
  );
}

function checkOverlaps(changes: readonly Change[], settings: readonly Setting[][][]): void {
  const swept = new Map<string, SweepChange>();
  let next = 0;
  for (const change of changes) {
    if (change.kind === 'set' && swept.has(change.path)) {
      const { origin } = swept.get(change.path)!;
      throw new UsageError(`${change.origin} overrides the earlier ${origin}: leave one out.`);
    }
    if (change.kind !== 'sweep') continue;
    for (const path of new Set(settings[next++]!.flat().map((setting) => setting.path))) {
      if (swept.has(path)) {
        throw new UsageError(`${change.origin} and ${swept.get(path)!.origin} both sweep '${path}'.`);
      }
      swept.set(path, change);
    }
  }
}

/**
 * Expands the sweeps of a command line to runs: all combinations of their choices, the last sweep varying fastest.
 * Without a sweep, there is one run without a name.
 *
 * @throws UsageError for a sweep that can't be parsed, calls an unknown function, or repeats another's path.
 */
export function expandSweeps(changes: readonly Change[], resolved: ResolvedExperiment): Combination[] {
  const sweeps = changes.filter((change) => change.kind === 'sweep');
  const choices = sweeps.map((change) => choicesOf(change, resolved));
  checkOverlaps(changes, choices);
  const picks = asUsage(sweeps.map(({ origin }) => origin).join(' '), () => product(choices));
  const names = combinationNames(picks.map((pick) => pick.flat()));
  const seen = new Set<string>();
  return picks.map((pick, i) => {
    const name = names[i]!;
    if (seen.has(name)) throw new UsageError(`Two runs of the sweep are alike: ${name}.`);
    seen.add(name);
    let next = 0;
    const overrides = changes.flatMap((change): Override[] => {
      if (change.kind !== 'sweep') return [change];
      const { origin } = change;
      return pick[next++]!.map((setting) => ({ kind: 'set', ...setting, origin }));
    });
    return { name: sweeps.length === 0 ? '' : name, settings: pick.flat(), overrides };
  });
}

/**
 * Expands sweeps and makes every run's configs, so that no run starts if a later one would fail.
 *
 * @throws UsageError for a sweep that can't be expanded, two runs with equal configs, or settings that `configure` refuses.
 */
export function checkedCombinations(changes: readonly Change[], resolved: ResolvedExperiment): Combination[] {
  const combinations = expandSweeps(changes, resolved);
  const distinct = new DistinctRuns(changes);
  for (const { name, overrides } of combinations) distinct.add(name, configure(resolved, overrides).configs);
  return combinations;
}
