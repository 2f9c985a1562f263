/** @file One run of the compiler in its own folder, with its messages in a log. */
import { appendFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { NativeEngineError } from '../../program/tensors.js';
import type { CCompiler } from './compiler.js';
import { diskFullError, InterruptedBuild, isDiskFull, isRefusal } from './interrupted.js';
import { endText, runProcess } from './process.js';

/** Folder, name and compiler of a build. */
export interface Build {
  readonly compiler: CCompiler;
  readonly env: NodeJS.ProcessEnv;
  /** Name of the program or library, for messages. */
  readonly name: string;
  /** Working folder of the compiler; relative paths refer to it. */
  readonly folder: string;
  /** Where the folder is kept if the build fails. */
  readonly log: string;
}

const LOG = 'compiler.log';
/** Time limit in seconds: a compiler that exceeds it for one of our files will not end. */
const seconds = 300;
const linesShown = 8;

/** The first errors, or else the first lines of output. */
function firstLines(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const first = lines.findIndex((line) => /\berror\b|undefined reference/.test(line));
  const from = Math.max(first, 0);
  return lines.slice(from, from + linesShown).join('\n');
}

/**
 * Runs the compiler.
 *
 * @returns whether it succeeded; an optional build may be rejected.
 * @throws NativeEngineError with the first lines of the compiler's message and the path of the log.
 */
export async function compile(
  build: Build,
  args: readonly string[],
  { optional = false }: { optional?: boolean } = {},
): Promise<boolean> {
  const { compiler, folder, name } = build;
  // Puts the compiler's temporary files where they are removed in any case.
  const env = { ...build.env, TMPDIR: folder };
  const ended = await runProcess(compiler.command, [...compiler.args, ...args], {
    cwd: folder,
    env,
    seconds,
  });
  const { code, output } = ended;
  const line = [compiler.command, ...compiler.args, ...args].join(' ');
  appendFileSync(join(folder, LOG), `${line}\n${output}${code === 0 ? '' : `(${code})\n`}\n`);
  if (code === 0) return true;
  const refused = isRefusal(ended);
  if (refused && optional) return false;
  if (isDiskFull(output)) throw diskFullError(name, dirname(build.log));
  const said = firstLines(output);
  const failed = refused ? 'could not compile its C code' : 'was kept from compiling its C code';
  const rest = said === '' ? '.' : `:\n${said}`;
  const where = `Its full output is in ${join(build.log, LOG)}.`;
  const text = `${name}: ${compiler.command} ${failed} (${endText(ended)})${rest}\n${where}`;
  throw refused ? new NativeEngineError(text) : new InterruptedBuild(text);
}
