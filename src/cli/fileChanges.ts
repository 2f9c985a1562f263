/** @file Contents of --config_file: assignments written by hand, and documents from --dump and experiment.json. */

import { configRoots } from '../experiment/index.js';
import { type Assignment, type ReadOptions, readConfigFile, Section } from '../hparams/index.js';

/** What a file sets of an experiment: constants first, for the configs are made with them. */
export interface FileChanges {
  readonly constants: readonly Assignment[];
  /** Assignments to the configs. */
  readonly edits: readonly Assignment[];
}

/** The assignments that stand in a record called `constants`, as --dump writes it; others are themselves. */
function opened(assignment: Assignment): readonly Assignment[] {
  const { path, value, place } = assignment;
  if (path.length !== 1 || path[0] !== 'constants') return [assignment];
  if (value instanceof Section) return value.assignments;
  return Object.entries(value as object).map(([name, part]) => ({ path: [name], value: part, place }));
}

/** Reads a file. @throws ConfigError for one that is missing, broken or too large, with the line of what is wrong. */
export function readChanges(file: string, options: Pick<ReadOptions, 'notify'> = {}): FileChanges {
  const constants: Assignment[] = [];
  const edits: Assignment[] = [];
  for (const assignment of readConfigFile(file, options).flatMap(opened)) {
    const isConfig =
      assignment.path.length === 0 || (configRoots as readonly unknown[]).includes(assignment.path[0]);
    (isConfig ? edits : constants).push(assignment);
  }
  return { constants, edits };
}
