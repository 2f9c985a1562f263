/** @file One call of the compiler in a folder of its own, with its messages in a log. */
import { appendFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CompilerError } from '../../tensors.js';
import type { CCompiler } from './compiler.js';
import { diskFullError, InterruptedBuild, isDiskFull, isRefusal } from './interrupted.js';
import { endText, runProcess } from './process.js';

/** Where something is built, and with what. */
export interface Build {
  readonly compiler: CCompiler;
  readonly env: NodeJS.ProcessEnv;
  /** What is built, for messages. */
  readonly name: string;
  /** Where the compiler works; relative paths are meant from here. */
  readonly folder: string;
  /** Where this folder will be kept if the build fails. */
  readonly log: string;
}

const LOG = 'compiler.log';
/** A compiler that takes longer than that for one of our files will not end. */
const seconds = 300;
const linesShown = 8;

/** The first errors, or what else was said. */
function firstLines(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const first = lines.findIndex((line) => /\berror\b|undefined reference/.test(line));
  const from = Math.max(first, 0);
  return lines.slice(from, from + linesShown).join('\n');
}

/**
 * Calls the compiler.
 *
 * @returns whether it succeeded; where that is optional, it may have refused.
 * @throws CompilerError with the first lines of its message, and where the log is kept.
 */
export async function compile(
  build: Build,
  args: readonly string[],
  { optional = false }: { optional?: boolean } = {},
): Promise<boolean> {
  const { compiler, folder, name } = build;
  // The compiler's own temporary files go where they are removed whatever happens to it.
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
  const where = `All that it said is in ${join(build.log, LOG)}.`;
  const text = `${name}: ${compiler.command} ${failed} (${endText(ended)})${rest}\n${where}`;
  throw refused ? new CompilerError(text) : new InterruptedBuild(text);
}
