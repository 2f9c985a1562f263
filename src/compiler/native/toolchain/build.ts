/** @file One call of the compiler in a folder of its own, its messages kept in a log there. */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { CompilerError } from '../../types.js';
import type { CCompiler } from './compiler.js';
import { runProcess } from './process.js';

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
 * @returns whether it succeeded; only where that is optional, it may not have.
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
  const { code, output } = await runProcess(compiler.command, [...compiler.args, ...args], {
    cwd: folder,
    env,
    seconds,
  });
  const line = [compiler.command, ...compiler.args, ...args].join(' ');
  appendFileSync(join(folder, LOG), `${line}\n${output}${code === 0 ? '' : `(${code})\n`}\n`);
  if (code === 0 || optional) return code === 0;
  const how = typeof code === 'number' ? `exit code ${code}` : code;
  const said = firstLines(output);
  throw new CompilerError(
    `${name}: ${compiler.command} could not compile its C code (${how})${said === '' ? '.' : `:\n${said}`}\n` +
      `All that it said is in ${join(build.log, LOG)}.`,
  );
}
