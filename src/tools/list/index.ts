/** @file `luthier list`: the experiments of a project, read from source. */

import type { Command } from '../command.js';
import { matching } from '../selection.js';
import { buildAll } from './buildAll.js';
import { listReport } from './listReport.js';

export const list: Command = {
  usage: '[PATTERN]',
  positionals: [0, 1],
  flags: {
    abstract: {
      key: 'abstract',
      about: 'Lists abstract families, too, which only their descendants can run.',
      parse: () => true,
    },
    build: {
      key: 'build',
      about:
        "Builds each one's task, too, in a process of its own, and tells how many parameters it has, or what is wrong.",
      parse: () => true,
    },
  },
  changes: false,
  details: [
    'PATTERN is a part of the name, in upper or lower case. With * (any text) and ? (any character) it is the whole name,',
    "or the name without what stands before a dot: 'lm.*', 'Small*'.",
    'Without it, those of ./experiments are listed; the ones that come with luthier where a project has none, or by PATTERN.',
    'What does not build is told of in its place; luthier validate tells more, and can be given values for constants.',
    '',
    "  npx luthier list 'lm.*' --format=markdown",
    '',
    'Exit codes: 0; 1 where no experiment matches; 2 for a wrong command line.',
  ].join('\n'),
  async run({ positionals: [pattern], values, warn }) {
    const { directoriesFor, showFile } = await import('../../registry/directories.js');
    const { scan } = await import('../../registry/scan.js');
    const directories = directoriesFor(pattern !== undefined);
    const { experiments, problems } = scan(directories);
    for (const { file, line, message } of problems) {
      warn(`${showFile(file)}:${line}: ${message} What follows in this file may not be listed.`);
    }
    const shown = experiments.filter((found) => values.abstract === true || !found.abstract);
    const found = pattern === undefined ? shown : matching(pattern, shown);
    const built = values.build === true ? await buildAll(found) : undefined;
    return listReport(found, { pattern, directories, names: shown.map(({ name }) => name), built });
  },
};
