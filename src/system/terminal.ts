/** @file Ties of a run to the terminal and the pipes that it was started with. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';

/** A stream that somebody reads or types into, and that goes with them. */
function isLive(file: number): boolean {
  try {
    const info = fstatSync(file);
    return isatty(file) || info.isFIFO() || info.isSocket();
  } catch {
    return false;
  }
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether this process was started to outlive its terminal. Node forgets that nohup(1) had SIGHUP ignored: what is left of
 * nohup is the shell's `$_`; besides, whoever has a terminal and gives none of it to the process does without.
 */
export function isDetached(env: NodeJS.ProcessEnv = process.env): boolean {
  if (/(^|\/)nohup$/.test(env._ ?? '')) return true;
  return ![0, 1, 2].some(isLive) && hasTerminal();
}
