/** @file Launchers of MPI on this machine: those on PATH, and those that scripts/setup-mpi.sh has set up. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
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
export function mpirun({ bin }: Mpi, ranks: number, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
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
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (data) => (output += data));
  child.stderr.on('data', (data) => (output += data));
  const ended = new Promise<Ended>((resolve) => child.on('close', (code) => resolve({ code, output })));
  return { child, ended, output: () => output };
}
