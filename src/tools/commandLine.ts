/** @file The `luthier` command line: dispatch to a command, and output of its report. */

import { type Mode, modes, runCommand } from '../cli/commandLine/index.js';
import { warn, writeResult, writeText } from '../system/index.js';
import { didYouMean, paintFor, UsageError } from '../system/text/index.js';
import type { Arguments, Report } from './command.js';
import { commands } from './commands.js';

function help(): string {
  const widest = Math.max(...Object.keys(commands).map((name) => name.length));
  const lines = Object.entries(commands).map(([name, { about }]) => `  ${name.padEnd(widest)}  ${about}`);
  return [
    'Runs experiments, shows their configs, and reviews changes to them.',
    '',
    '  npx luthier train --exp=lm.Small --job_log_dir=out/lm_small',
    '  npx luthier COMMAND [arguments] [flags]',
    '',
    `Runs: ${modes.join(', ')}.`,
    '',
    'Commands:',
    ...lines,
    '',
    'luthier COMMAND --help lists the flags of a command or a run.',
    'Exit codes: 0; 1 if a check or the command fails; 2 for a wrong command line or config.',
  ].join('\n');
}

function write(report: Report, format: Arguments['format']): void {
  const further = report.further?.[format];
  if (further !== undefined) writeResult(`${further()}\n`);
  else if (format === 'json') writeResult(`${JSON.stringify(report.json(), null, 2)}\n`);
  else writeText(`${report.text(paintFor(process.stdout))}\n`);
}

async function run([name, ...rest]: readonly string[]): Promise<number> {
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    writeText(`${help()}\n`);
    return name === undefined ? 2 : 0;
  }
  if (modes.includes(name as Mode)) {
    const { runFlags } = await import('../cli/run/index.js');
    // Of a flag given twice, the last one wins.
    return runFlags([`--mode=${name}`, ...rest], () => import('../rooms.js'));
  }
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry === undefined) {
    const names = [...modes, ...Object.keys(commands)];
    throw new UsageError(
      `luthier has no command '${name}'.${didYouMean(name, names)} The commands are: ${names.join(', ')}.`,
    );
  }
  // Parsing flags loads hparams, which --help needn't wait for.
  const [{ commandHelp, parseArguments }, command] = await Promise.all([
    import('./command.js'),
    entry.load(),
  ]);
  const args = await parseArguments(name, command, rest, warn);
  if (args === 'help') {
    writeText(`${await commandHelp(name, entry.about, command)}\n`);
    return 0;
  }
  const report = await command.run(args);
  write(report, args.format);
  return report.exitCode ?? 0;
}

await runCommand(() => run(process.argv.slice(2)));
