/** @file Processes that read mutants: watched, ended where they exceed bounds, and begun again behind the culprit. */
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { startCommand } from '../../command.js';
import { bounds } from './bounds.js';
import type { MutantKind } from './mutantKind.js';

const PROGRAM = 'test/inputs/mutants/mutantsProgram.ts';
/** The campaign ends at so many problems. */
const MOST_PROBLEMS = 20;
/** A process that is not told apart from others by what it has used is ended when it says nothing for so long. */
const LONGEST_SILENCE = 60_000;

/** Seconds of the processor and resident bytes of a process; undefined where the system does not tell. */
function usageOf(pid: number): { readonly seconds: number; readonly bytes: number } | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ');
    // In hundredths of a second, and pages of 4096 bytes.
    return { seconds: (Number(fields[11]) + Number(fields[12])) / 100, bytes: 4096 * Number(fields[21]) };
  } catch {
    return undefined;
  }
}

/** Reads mutants from number `first` on. @returns the number of the next one, behind one that ended the process */
async function readFrom(
  first: number,
  { name }: MutantKind,
  folder: string,
  seed: number,
  count: number,
  problems: string[],
): Promise<number> {
  const args = [name, folder, ...[seed, count, first].map(String)];
  const { child, finished } = startCommand(args, folder, PROGRAM, {
    NODE_OPTIONS: '--max-old-space-size=1024',
    XDG_CACHE_HOME: folder,
  });
  let [mutant, at, silentSince, atStart] = ['', first - 1, Date.now(), usageOf(child.pid!)];
  let isTold = true;
  let reason: string | undefined;
  const watch = setInterval(() => {
    if (isTold || reason !== undefined) return;
    const usage = usageOf(child.pid!);
    const seconds = (usage?.seconds ?? 0) - (atStart?.seconds ?? 0);
    if (seconds > (2 * bounds.microseconds) / 1e6) reason = `it has taken ${seconds} s, and was ended`;
    else if ((usage?.bytes ?? 0) > 6 * bounds.bytes)
      reason = `it has taken ${usage!.bytes} bytes, and was ended`;
    else if (Date.now() - silentSince > LONGEST_SILENCE) reason = 'it hangs, and was ended';
    if (reason !== undefined) child.kill('SIGKILL');
  }, 200);
  createInterface(child.stdout!).on('line', (line) => {
    silentSince = Date.now();
    isTold = !isTold;
    if (!isTold) {
      mutant = line;
      at = Number(line.split(' ', 1)[0]);
      atStart = usageOf(child.pid!);
    } else if (line !== '') problems.push(`${mutant}: ${line}`);
    if (problems.length >= MOST_PROBLEMS) child.kill('SIGKILL');
  });
  const { code, signal, stderr } = await finished;
  clearInterval(watch);
  if (code === 0 || problems.length >= MOST_PROBLEMS) return count;
  if (isTold) throw new Error(`no mutant was read: ${signal ?? code}: ${stderr}`);
  problems.push(`${mutant}: ${reason ?? `it was ended by ${signal ?? code}: ${stderr.slice(0, 500)}`}`);
  return at + 1;
}

/** What went wrong with mutants of a kind. */
export async function problemsAmong(
  kind: MutantKind,
  folder: string,
  seed: number,
  count: number,
): Promise<string[]> {
  const problems: string[] = [];
  for (let next = 0; next < count && problems.length < MOST_PROBLEMS; )
    next = await readFrom(next, kind, folder, seed, count, problems);
  return problems;
}
