/** @file `luthier diff`: what a change does to experiments. */
import type { Arguments, Command, Report } from '../command.js';
import { compareTwo } from './compareTwo.js';
import { reportOf } from './report.js';

/** The command. */
export const diff: Command = {
  usage: 'A B',
  positionals: [2, 2],
  changes: true,
  flags: {},
  async run(args: Arguments): Promise<Report> {
    const [a, b] = args.positionals;
    return reportOf(await compareTwo(a!, b!, args.changes));
  },
};
