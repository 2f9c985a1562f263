/** @file Settings that differ between runs: swept constants, and settings that do not follow from them. */
import type { RunSummary } from './runSummary.js';

/** Names of the settings that differ between runs: constants, and paths. */
export interface RunDifferences {
  /** Constants that flags set, then other settings. */
  readonly differing: readonly string[];
  /** Constants and settings that follow from those constants. */
  readonly following: readonly string[];
}

/** A constant or setting. */
interface Setting {
  readonly name: string;
  readonly read: (run: RunSummary) => string | undefined;
}

/** Whether a flag or a file set the constant in a run; classes are named by identifiers. */
const isSwept = (runs: readonly RunSummary[], { name }: Setting): boolean =>
  runs.some(({ constants }) => /[^\w$.]/.test(constants.get(name)?.setBy ?? ''));

/** Whether the setting is the same in all runs for which `given` is. */
function follows(
  runs: readonly RunSummary[],
  given: (run: RunSummary) => string,
  { read }: Setting,
): boolean {
  const known = new Map(runs.map((run) => [given(run), read(run)]));
  return runs.every((run) => known.get(given(run)) === read(run));
}

/** Whether a flag sets one of the constants: `--set learningRate=1e-3`. */
const setsOne = (flag: string, constants: readonly Setting[]): boolean =>
  constants.some(({ name }) => flag.replace(/^--\S+ ['"]?/, '').startsWith(`${name}=`));

/**
 * Settings that differ between runs. They follow from swept constants where equal constants have equal settings, unless
 * something else may be why they differ: another flag, or another experiment.
 */
export function differencesOf(runs: readonly RunSummary[]): RunDifferences {
  const named = (names: readonly string[], read: (run: RunSummary, name: string) => string | undefined) =>
    [...new Set(names)]
      .map((name): Setting => ({ name, read: (run) => read(run, name) }))
      .filter(({ read }) => new Set(runs.map(read)).size > 1);
  const constants = named(
    runs.flatMap((run) => [...run.constants.keys()]),
    (run, name) => run.constants.get(name)?.value,
  );
  const settings = named(['experiment', ...runs.flatMap((run) => [...run.settings.keys()])], (run, name) =>
    run.settings.get(name),
  );
  const swept = constants.filter((constant) => isSwept(runs, constant));
  const flags = new Set(runs.flatMap(({ overrides }) => overrides));
  const hasOtherCause =
    settings.some(({ name }) => name === 'experiment') ||
    [...flags].some(
      (flag) => !setsOne(flag, swept) && !runs.every(({ overrides }) => overrides.includes(flag)),
    );
  const given = (run: RunSummary) => JSON.stringify(swept.map(({ read }) => read(run)));
  const isFollowing = (each: Setting) => swept.length > 0 && !hasOtherCause && follows(runs, given, each);
  const names = (list: readonly Setting[]) => list.map(({ name }) => name);
  const derived = constants.filter((each) => !swept.includes(each));
  return {
    differing: names([...swept, ...settings.filter((each) => !isFollowing(each))]),
    following: names([...derived, ...settings].filter(isFollowing)),
  };
}
