/** @file `tsx src/main.ts …`: the same as `luthier train …`. */
import { constants } from 'node:os';
import { runCommand } from './cli/commandLine/index.js';
import { isUnderTsx, OwnProcess, StopSignal } from './system/index.js';

/**
 * Runs the command in a child process and forwards signals: tsx's wrapper kills a process that does not acknowledge a
 * signal within 60 ms.
 */
async function runBeneath(flags: readonly string[]): Promise<number> {
  const stop = new StopSignal({
    first: (signal) => beneath.stop(signal),
    again: () => beneath.kill(),
  });
  const beneath = new OwnProcess(['train', ...flags]);
  // Listening may receive at once, where npx has ended already.
  stop.listen();
  const end = await beneath.ended;
  return typeof end === 'number' ? end : 128 + constants.signals[end];
}

const flags = process.argv.slice(2);
await runCommand(async () => {
  if (isUnderTsx()) return runBeneath(flags);
  const { runFlags } = await import('./cli/run/index.js');
  return runFlags(flags, () => import('./rooms.js'));
});
