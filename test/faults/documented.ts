/** @file The documented commands, as a person starts and stops them: with npx, npm or tsx, from a shell or a terminal. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isAlive } from '../../src/system/processes.js';
import { project, temporaryDirectory } from '../command.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const command = join(root, 'src/tools/luthier.js');

/** Ways to start a run, by what a person types. */
export const forms = ['node luthier.js', 'npx luthier', 'npm start', 'npx tsx'] as const;
export type Form = (typeof forms)[number];

/** A command that was started, the leader of its group. */
export interface Started {
  readonly child: ChildProcess;
  /** Types Ctrl-C at its terminal; where the machine has no script(1), signals its whole group, as a terminal does. */
  interrupt(): void;
  /** All that it wrote. */
  output(): string;
  /** The exit code as a shell tells it. */
  readonly closed: Promise<number>;
  /** The same, once all that the command started has ended, and nobody works in the directory. */
  ended(): Promise<number>;
}

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

function words(form: Form, flags: readonly string[]): { cwd: string; argv: string[] } {
  if (form === 'npm start') {
    const folder = temporaryDirectory();
    const start = `cd ${project} && node ${command} train`;
    writeFileSync(
      join(folder, 'package.json'),
      JSON.stringify({ name: 'one', version: '1.0.0', scripts: { start } }),
    );
    return { cwd: folder, argv: ['npm', 'start', '--', ...flags] };
  }
  const argv = {
    'node luthier.js': [process.execPath, command, 'train'],
    'npx luthier': ['npx', 'luthier', 'train'],
    'npx tsx': ['npx', 'tsx', join(root, 'src/main.ts')],
  }[form];
  return { cwd: project, argv: [...argv, ...flags] };
}

const hasScript = process.platform === 'linux' && existsSync('/usr/bin/script');
const numbers: Record<string, number> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };

/** Starts a training run. @param terminal whether it has one */
export function start(form: Form, directory: string, flags: readonly string[], terminal = false): Started {
  const { cwd, argv } = words(form, [`--job_log_dir=${directory}`, ...flags]);
  const onTerminal = terminal && hasScript;
  const line = argv.map(quote).join(' ');
  const [file, args] = onTerminal
    ? ['script', ['-qefc', `exec ${line}`, '/dev/null']]
    : [argv[0]!, argv.slice(1)];
  const child = spawn(file, args, { cwd, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const closed = new Promise<number>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? 128 + numbers[signal!]!)),
  );
  return {
    child,
    interrupt: () => {
      if (onTerminal) child.stdin.write('\x03');
      else process.kill(-child.pid!, 'SIGINT');
    },
    output: () => output,
    closed,
    ended: async () => {
      const code = await closed;
      while (trainer(directory) !== undefined || members(child.pid!) > 0) await sleep(20);
      return code;
    },
  };
}

/** The process that trains in a directory, if one does. */
export function trainer(directory: string): number | undefined {
  try {
    const { pid } = JSON.parse(readFileSync(join(directory, '.train.lock'), 'utf8')) as { pid: number };
    return isAlive(pid) ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** How many processes of a group live; those of a group whose leader was killed may still be starting. */
function members(group: number): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => {
    try {
      const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const [state, , pgrp] = text.slice(text.lastIndexOf(')') + 2).split(' ');
      return Number(pgrp) === group && state !== 'Z';
    } catch {
      return false;
    }
  }).length;
}
