/** @file Folders in which tests do what users do: with commands alone, and nothing of the tests' own settings of Node. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';

/** How a command ended, and what it said. */
interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The tests' environment without their settings of Node. */
export function usersEnvironment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _, ...env } = process.env;
  return env;
}

/** A folder, and the environment of the commands that are run there. */
export class UserProject {
  constructor(
    readonly folder: string,
    readonly env: NodeJS.ProcessEnv = usersEnvironment(),
  ) {}

  /** Runs a command as a user's shell does. */
  run(command: string, ...args: readonly string[]): Promise<Said> {
    const options = { cwd: this.folder, env: this.env, maxBuffer: 1 << 26 };
    return new Promise((resolve) => {
      execFile(command, args, options, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr });
      });
    });
  }

  /** Its output, where it succeeds. */
  async succeed(command: string, ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(command, ...args);
    expect(code, `${command} ${args.join(' ')}:\n${stdout}\n${stderr}`).toBe(0);
    return stdout;
  }

  luthier(...args: readonly string[]): Promise<string> {
    return this.succeed('npx', '--no-install', 'luthier', ...args);
  }

  /** The text of a file of the project. */
  read(file: string): string {
    return readFileSync(join(this.folder, file), 'utf8');
  }
}
