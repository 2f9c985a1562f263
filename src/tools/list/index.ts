/** @file `luthier list`: lists a project's experiments from source text. */

import { matching } from '../../registry/names/index.js';
import type { Command } from '../command.js';
import { buildAll, loaded } from './buildAll.js';
import { listReport } from './listReport.js';

export const list: Command = {
  usage: '[PATTERN]',
  positionals: [0, 1],
  flags: {
    abstract: {
      key: 'abstract',
      about: 'Includes abstract families, which run only through subclasses.',
      parse: () => true,
    },
    build: {
      key: 'build',
      about:
        "Builds each experiment's task in a separate process, and shows its number of parameters or its error.",
      parse: () => true,
    },
  },
  changes: false,
  details: [
    'PATTERN is part of a name; case does not matter. With * (any text) or ? (any character) it must match the whole name,',
    "or the part of it behind a dot: 'lm.*', 'Small*'.",
    "Without PATTERN, the experiments of ./experiments are listed, or luthier's own if there are none; PATTERN searches both.",
    'luthier validate explains why experiments do not build, and takes values for constants.',
    '',
    "  npx luthier list 'lm.*' --format=json",
    '',
    'Exit codes: 0; 1 if no experiment matches; 2 for a wrong command line.',
  ].join('\n'),
  async run({ positionals: [pattern], values, warn }) {
    const { directoriesFor, scan, showPlace } = await import('../../registry/names/index.js');
    const directories = directoriesFor(pattern !== undefined);
    const isBuilt = values.build === true;
    const { experiments, unclassified, problems } = isBuilt
      ? await loaded(scan(directories))
      : scan(directories);
    for (const problem of problems) {
      const left = problem.line === undefined ? 'It is skipped.' : 'The rest of this file may not be listed.';
      warn(`${showPlace(problem)}: ${problem.message} ${left}`);
    }
    const shown = experiments.filter((found) => values.abstract === true || !found.abstract);
    const found = pattern === undefined ? shown : matching(pattern, shown);
    const built = isBuilt ? await buildAll(found) : undefined;
    const open = pattern === undefined ? unclassified : matching(pattern, unclassified);
    const names = [...shown, ...unclassified].map(({ name }) => name);
    return listReport(found, { pattern, directories, names, built, unclassified: open });
  },
};
