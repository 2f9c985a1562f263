/** @file Processes of the command line, by default in the project of test/fixtures. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { commandEnvironment } from './loader.js';
import { typescriptEnvironment } from './typescriptEnvironment.js';

/** Root of the repository. */
const repository = fileURLToPath(new URL('..', import.meta.url));
/** A project with experiments for tests. */
export const project = join(repository, 'test/fixtures/project');

/** How a process ended, and what it said. */
export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process that may be sent signals while it runs. */
export interface Running {
  readonly child: ChildProcess;
  readonly finished: Promise<Finished>;
}

/** Starts the command, or another script of the repository, with these flags. */
export function startCommand(
  flags: readonly string[],
  cwd = project,
  script = 'src/main.ts',
  env: Readonly<Record<string, string>> = {},
): Running {
  const child = spawn(process.execPath, [join(repository, script), ...flags], {
    cwd,
    env: script.startsWith('src/') ? commandEnvironment(env) : typescriptEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const finished = new Promise<Finished>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return { child, finished };
}

/** Runs the command to its end. */
export function runCommand(flags: readonly string[], cwd?: string): Promise<Finished> {
  return startCommand(flags, cwd).finished;
}

/** Runs `luthier` to its end. */
export function runLuthier(
  args: readonly string[],
  cwd?: string,
  env?: Readonly<Record<string, string>>,
): Promise<Finished> {
  return startCommand(args, cwd, 'src/tools/commandLine.ts', env).finished;
}

/** What a command said, and its exit code. */
type Said = Pick<Finished, 'code' | 'stdout' | 'stderr'>;

/**
 * Runs commands that only look at a project one after another in one process, started for the first of them: for many
 * such commands starting takes most of the time. What they have imported stays: an experiment's file that changes is not
 * read again. A process of its own, with its signals and exit code, is {@link startCommand}'s.
 */
export function oneProcess(
  script: 'src/main.ts' | 'src/tools/commandLine.ts',
  cwd = project,
): (flags: readonly string[], elsewhere?: string) => Promise<Said> {
  const waiting: { resolve(said: Said): void; reject(error: Error): void }[] = [];
  let child: ChildProcess | undefined;
  const start = (): ChildProcess => {
    const program = join(repository, 'test/commandsProgram.ts');
    const started = fork(program, [join(repository, script)], { cwd, env: commandEnvironment() });
    started.on('message', (said: Said) => waiting.shift()!.resolve(said));
    started.on('exit', () => {
      child = undefined;
      for (const { reject } of waiting.splice(0)) reject(new Error('The process of the commands ended.'));
    });
    processes.push(started);
    return started;
  };
  return (flags, elsewhere = cwd) =>
    new Promise((resolve, reject) => {
      child ??= start();
      waiting.push({ resolve, reject });
      child.send({ flags, cwd: elsewhere });
    });
}

/** An empty directory for the tests of a file, removed after them. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-test-'));
  made.push(directory);
  return directory;
}

const made: string[] = [];
const processes: ChildProcess[] = [];
afterAll(() => {
  for (const child of processes.splice(0)) child.disconnect();
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true });
});
