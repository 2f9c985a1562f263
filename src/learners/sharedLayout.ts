/** @file Layouts of variables that several learners train in turn, each with groups of its own, at the same places. */
import { type FlatLayout, flatLayout } from '../compiler/index.js';
import type { LearnableVariable } from './learnableVariable.js';
import type { Learner } from './learner.js';
import { FROZEN } from './optimizers/variableGroup.js';

/** Group of the variables that a learner leaves alone and another one trains. */
const KEPT = 'kept';

/**
 * One layout for each learner: places are the same in all of them, groups are the learner's own. Groups of the first lie
 * as in its own layout; where those of another are cut into several, these have numbers (`decay#2`). Variables that none of
 * them trains are last.
 *
 * @throws ConfigError as `Learner.layout`
 */
export function sharedLayouts(
  learners: readonly Learner[],
  variables: readonly LearnableVariable[],
): readonly FlatLayout[] {
  const groups = learners.map(
    (learner) => new Map(learner.layout(variables).entries.map(({ name, group }) => [name, group])),
  );
  const own = (path: string): string[] => {
    const all = groups.map((of) => of.get(path)!);
    return all.every((group) => group === FROZEN)
      ? all
      : all.map((group) => (group === FROZEN ? KEPT : group));
  };
  const placed = variables.map((variable) => ({ variable, own: own(variable.path) }));
  const rank = new Map<string, number>();
  for (const { own: all } of placed) if (!rank.has(all[0]!)) rank.set(all[0]!, rank.size);
  rank.set(KEPT, rank.size + 1);
  rank.set(FROZEN, rank.size + 2);
  placed.sort((a, b) => rank.get(a.own[0]!)! - rank.get(b.own[0]!)!);
  const whole = flatLayout(
    placed.map(({ variable: { path: name, shape, repeatPrefix = [], storage }, own: all }) => ({
      ...{ name, shape, group: all.join('\n') },
      ...(storage && { storage }),
      ...(repeatPrefix.length > 0 && { repeatPrefix }),
    })),
  );
  return learners.map((_, i) => groupedBy(whole, (group) => group.split('\n')[i]!));
}

/** A layout under other names of groups; neighbours of one name become one group. */
function groupedBy({ entries, groups, size }: FlatLayout, nameOf: (group: string) => string): FlatLayout {
  const runs: { readonly name: string; readonly of: string; readonly offset: number; size: number }[] = [];
  const names = new Map<string, string>();
  for (const group of groups) {
    const of = nameOf(group.name);
    const last = runs.at(-1);
    if (last?.of === of) last.size += group.size;
    else {
      const count = runs.filter((run) => run.of === of).length;
      runs.push({
        name: count === 0 ? of : `${of}#${count + 1}`,
        of,
        offset: group.offset,
        size: group.size,
      });
    }
    names.set(group.name, runs.at(-1)!.name);
  }
  return {
    entries: entries.map((entry) => ({ ...entry, group: names.get(entry.group)! })),
    groups: runs.map(({ name, offset, size: length }) => ({ name, offset, size: length })),
    size,
  };
}
