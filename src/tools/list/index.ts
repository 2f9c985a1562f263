/** @file `luthier list`: the experiments that there are, read from their source. */
import type { Command } from '../command.js';
import { matching } from './pattern.js';
import { listReport } from './report.js';

export const list: Command = {
  usage: '[PATTERN]',
  positionals: [0, 1],
  flags: {
    abstract: {
      key: 'abstract',
      about: 'Lists abstract families, too, which only their descendants can run.',
      parse: () => true,
    },
  },
  changes: false,
  details: [
    'PATTERN is a part of the name, in upper or lower case. With * (any text) and ? (any character) it is the whole name,',
    "or the name without what stands before a dot: 'lm.*', 'Small*'.",
    'Experiments are looked for in ./experiments and among those that come with luthier.',
    '',
    "  npx luthier list 'lm.*' --format=markdown",
    '',
    'Exit codes: 0; 1 where no experiment matches; 2 for a wrong command line.',
  ].join('\n'),
  async run({ positionals: [pattern], values, warn }) {
    const { experimentDirectories, showFile } = await import('../../registry/directories.js');
    const { scan } = await import('../../registry/scan.js');
    const directories = experimentDirectories();
    const { experiments, problems } = scan(directories);
    for (const { file, line, message } of problems) {
      warn(`${showFile(file)}:${line}: ${message} What follows in this file may not be listed.`);
    }
    const shown = experiments.filter((found) => values.abstract === true || !found.abstract);
    const found = pattern === undefined ? shown : matching(pattern, shown);
    return listReport(found, { pattern, directories, names: shown.map(({ name }) => name) });
  },
};
