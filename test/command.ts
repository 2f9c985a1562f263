/** @file Runs main.ts in a process of its own, in the project of test/fixtures. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';

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
  const tsx = fileURLToPath(import.meta.resolve('tsx'));
  const child = spawn(process.execPath, ['--import', tsx, join(repository, script), ...flags], {
    cwd,
    env: { ...process.env, ...env },
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
  return startCommand(args, cwd, 'src/tools/main.ts', env).finished;
}

/** An empty directory for the tests of a file, removed after them. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-test-'));
  made.push(directory);
  return directory;
}

const made: string[] = [];
afterAll(() => {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true });
});
