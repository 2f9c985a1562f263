/** @file Processes whose system calls fail at a chosen place: what a full disk, a broken one or a kill does to them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Whether faults can be made here. */
export const canInject = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0;

/** What happens to a call. */
export interface Fault {
  /** Kinds of calls that count: open, create, read, write, fsync, ftruncate, rename, mkdir, unlink, rmdir. */
  readonly calls: readonly string[];
  /** What the path of a file must have in it. */
  readonly part?: string;
  /** Which of them, from 1; 0: none. */
  readonly nth: number;
  /** How many in a row. */
  readonly times?: number;
  /** A file that gets all calls of the process on files under the directory, failing or not. */
  readonly trace?: string;
  readonly how: 'ENOSPC' | 'EIO' | 'EACCES' | 'EDQUOT' | 'EROFS' | 'EINTR' | 'short' | 'kill';
}

let library: string | undefined;

function build(folder: string): string {
  const path = join(mkdtempSync(join(folder, 'preload-')), 'faults.so');
  const source = fileURLToPath(new URL('faults.c', import.meta.url));
  execFileSync('cc', ['-shared', '-fPIC', '-O1', '-Wall', '-o', path, source, '-ldl']);
  return path;
}

/** The environment of a process to which it happens, on files under `directory`; calls are noted in `log`. */
export function faultEnv(
  folder: string,
  directory: string,
  fault: Fault,
  log: string,
): Record<string, string> {
  library ??= build(folder);
  const isErrno = fault.how !== 'short' && fault.how !== 'kill';
  return {
    LD_PRELOAD: library,
    FAULT_DIR: directory,
    FAULT_CALLS: fault.calls.join(','),
    ...(fault.part && { FAULT_PART: fault.part }),
    FAULT_NTH: String(fault.nth),
    FAULT_TIMES: String(fault.times ?? 1),
    FAULT_HOW: isErrno ? 'errno' : fault.how,
    FAULT_ERRNO: isErrno ? String(constants.errno[fault.how]) : '0',
    FAULT_LOG: log,
    ...(fault.trace && { FAULT_TRACE: fault.trace }),
  };
}

/** A system call on a file. */
export interface SystemCall {
  readonly call: string;
  readonly path: string;
  /** The former path, of a rename in a trace. */
  readonly from?: string;
}

/** The calls that a log or a trace has, in order. */
export function callsIn(log: string): SystemCall[] {
  if (!existsSync(log)) return [];
  const lines = readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  return lines.map((line) => {
    const at = line.indexOf(' ');
    const [path, from] = line.slice(at + 1).split('\t') as [string, string?];
    return { call: line.slice(0, at), path, ...(from !== undefined && { from }) };
  });
}
