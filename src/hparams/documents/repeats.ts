/** @file What a config file says of one place twice: the first would be lost without a word. */
import { ConfigError } from '../errors.js';
import { formatPath, type Segment } from '../walking/paths.js';
import type { DocumentProblem } from './problems.js';
import { type Assignment, Section } from './sections.js';

/** A place that was set, and those on the way to it. */
interface Known {
  readonly place: string;
  readonly path: string;
}

/** The assignments, those in sections too, whose place an earlier one has set, or a part of it. */
export function repeatsIn(assignments: readonly Assignment[]): DocumentProblem[] {
  const problems: DocumentProblem[] = [];
  const set = new Map<string, Known>();
  const below = new Map<string, Known>();
  const look = (found: readonly Assignment[], around: readonly Segment[]): void => {
    for (const { path: own, value, place } of found) {
      const steps = [...around, ...own];
      const path = formatPath(steps);
      const names = steps.map((step) => (typeof step === 'object' ? step.key : step));
      const keys = names.map((_, i) => JSON.stringify(names.slice(0, i + 1)));
      const key = keys.at(-1) ?? '[]';
      if (value instanceof Section) {
        // A section of a config adds to it, and one of a record is the whole of it.
        const earlier = set.get(key) ?? below.get(key);
        if (earlier !== undefined) value.refuseRecord = undoes(path, earlier, place, set.has(key));
        look(value.assignments, steps);
        continue;
      }
      const earlier = set.get(key) ?? below.get(key);
      if (earlier !== undefined) {
        problems.push({ problem: undoes(path, earlier, place, set.has(key)).problem, path, place });
        continue;
      }
      set.set(key, { place, path });
      for (const outer of keys.slice(0, -1)) if (!below.has(outer)) below.set(outer, { place, path });
    }
  };
  look(assignments, []);
  return problems;
}

function undoes(path: string, earlier: Known, place: string, isSame: boolean): ConfigError {
  const problem = isSame
    ? `${path}: set twice, first at ${earlier.place}`
    : `${path}: replaces ${earlier.path}, which is set at ${earlier.place}; set the whole before its parts`;
  return new ConfigError(problem, { path, place });
}
