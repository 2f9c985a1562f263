/** @file `luthier snapshot`: committed texts of experiments, whose plain diff shows the effect of a change. */

import { resolveExperiment } from '../../registry/index.js';
import { fullNameOf } from '../../registry/names/index.js';
import { counted, titled } from '../../review/text/index.js';
import { didYouMean, type Paint, shellWord, UsageError } from '../../system/text/index.js';
import type { Command, Report } from '../command.js';
import { diffText } from '../lineDiff.js';
import {
  badStates,
  checkSnapshots,
  type Entry,
  refreshSnapshots,
  removeSnapshots,
  type State,
  snapshotFile,
  snapshotNames,
} from './snapshots.js';

const said: Readonly<Record<State, string>> = {
  current: 'is current',
  new: 'was made',
  updated: 'was updated',
  removed: 'was removed',
  stale: 'is stale',
  missing: 'is missing',
  orphaned: 'has no experiment',
  failed: 'cannot be made',
};

const isBad = ({ state }: Entry) => badStates.includes(state);

/** Commands that make `--check` succeed; none for failing experiments, which need fixing. */
function commandsFor(entries: readonly Entry[]): string[] {
  const names = (...states: State[]) =>
    entries.filter(({ state }) => states.includes(state)).map(({ name }) => shellWord(name));
  const [outdated, orphaned] = [names('stale', 'missing'), names('orphaned')];
  return [
    ...(outdated.length === 0 ? [] : [`npx luthier snapshot ${outdated.join(' ')}`]),
    ...(orphaned.length === 0 ? [] : [`npx luthier snapshot --remove ${orphaned.join(' ')}`]),
  ];
}

/** `2 snapshots: 1 is stale, 1 is current.` */
function summaryOf(entries: readonly Entry[]): string {
  if (entries.length === 0) {
    return 'There are no snapshots. npx luthier snapshot EXP makes the first, to be committed.';
  }
  const counts = new Map<State, number>();
  for (const { state } of entries) counts.set(state, (counts.get(state) ?? 0) + 1);
  const plural = (words: string) =>
    words.replace(/^is /, 'are ').replace(/^was /, 'were ').replace(/^has /, 'have ');
  const bad = [...counts].sort(([a], [b]) => Number(badStates.includes(b)) - Number(badStates.includes(a)));
  const parts = bad.map(([state, count]) => `${count} ${count === 1 ? said[state] : plural(said[state])}`);
  return `${counted(entries.length, 'snapshot')}: ${parts.join(', ')}.`;
}

function sectionText(entry: Entry, paint: Paint): string {
  const style = isBad(entry) ? 'red' : 'green';
  const head = `${paint('bold', entry.name)} ${paint(style, said[entry.state])}`;
  const below = [entry.problem, entry.diff.length === 0 ? undefined : diffText(entry.diff, paint)];
  return [head, ...below.filter((part) => part !== undefined)].join('\n');
}

function text(entries: readonly Entry[], paint: Paint): string {
  const sections = entries
    .filter(({ state }) => state !== 'current')
    .map((entry) => sectionText(entry, paint));
  const commands = commandsFor(entries);
  const mend = commands.length === 0 ? [] : [titled('To mend:', ...commands)];
  return [...sections, summaryOf(entries), ...mend].join('\n\n');
}

/** Report on snapshots; fails if any is in a bad state. */
export function snapshotReport(entries: readonly Entry[]): Report {
  return {
    text: (paint) => text(entries, paint),
    json: () => ({
      ok: !entries.some(isBad),
      snapshots: entries.map(({ name, state, diff, problem }) => ({
        experiment: name,
        file: snapshotFile(name),
        state,
        ...(problem === undefined ? {} : { problem }),
        ...(diff.length === 0 ? {} : { diff: diffText(diff) }),
      })),
      commands: commandsFor(entries),
    }),
    exitCode: entries.some(isBad) ? 1 : 0,
  };
}

/** Finds a snapshot by full name or unique dotted suffix. */
function existing(name: string, names: readonly string[]): string {
  const fullName = fullNameOf(name, names);
  if (fullName !== undefined) return fullName;
  const list = names.length === 0 ? 'There are none.' : `Snapshots: ${names.join(', ')}.`;
  throw new UsageError(`'${name}' has no snapshot.${didYouMean(name, names)} ${list}`);
}

/** Full names of experiments; a deleted one is found by its snapshot. */
async function fullNames(given: readonly string[], names: readonly string[]): Promise<string[]> {
  const full: string[] = [];
  for (const name of given) {
    full.push(names.includes(name) ? name : (await resolveExperiment(name)).name);
  }
  return [...new Set(full)];
}

export const snapshot: Command = {
  usage: '[EXP…]',
  positionals: [0, Number.POSITIVE_INFINITY],
  flags: {
    check: {
      key: 'check',
      about:
        'Writes nothing; shows which snapshots are stale, what changed, and the command that updates them.',
      parse: () => true,
    },
    remove: {
      key: 'remove',
      about: 'Deletes the snapshots of these experiments.',
      parse: () => true,
    },
  },
  changes: false,
  details: [
    'luthier snapshot EXP writes experiments/__snapshots__/EXP.txt, to be committed. Without names, all existing snapshots',
    'are updated, or checked.',
    '',
    '  npx luthier snapshot lm.Small',
    '  npx luthier snapshot --check',
    '',
    'Exit codes: 0; 1 if a snapshot is stale or missing, or its experiment is gone or cannot be evaluated;',
    '2 for a wrong command line.',
  ].join('\n'),
  async run({ positionals, values }): Promise<Report> {
    const names = snapshotNames();
    if (values.remove === true) {
      if (values.check === true) throw new UsageError('--remove and --check: use one of them.');
      if (positionals.length === 0) throw new UsageError('--remove: expected the names of experiments.');
      return snapshotReport(removeSnapshots([...new Set(positionals.map((name) => existing(name, names)))]));
    }
    const wanted = positionals.length === 0 ? names : await fullNames(positionals, names);
    return snapshotReport(await (values.check === true ? checkSnapshots : refreshSnapshots)(wanted));
  },
};
