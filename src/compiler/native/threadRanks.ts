/**
 * @file Ranks that are threads of this process and share its memory: programs of a whole mesh without MPI.
 *
 *     const { ranks, close } = await openThreadRanks(4);
 *     const programs = await Promise.all(ranks.map((each) => compileProgram(program, { ranks: each })));
 *     await Promise.all(programs.map((program, rank) => …));  // all calls at once: each waits for the others
 *     close();  // after the programs' dispose
 */
import type { RankCalls } from '../program/rankCalls.js';
import { CompilerError, NativeEngineError } from '../program/tensors.js';
import { open } from './library.js';
import { openToolchain } from './toolchain/index.js';

/** The ranks of a process. */
export interface ThreadRanks {
  readonly ranks: readonly RankCalls[];
  /** Frees their shared memory, once no program uses it. */
  close(): void;
}

/** By their numbers in threadRanks.c. */
const REASONS = ['', 'another rank has ended with an error', 'the ranks call different collectives'];

/** As in threadRanks.c. */
const MOST = 64;

/**
 * Opens ranks, up to 64. Once a run of one of them has failed, so do collectives of all.
 *
 * @throws CompilerError for too many; NativeEngineError without a C compiler.
 */
export async function openThreadRanks(count: number): Promise<ThreadRanks> {
  if (count > MOST) throw new CompilerError(`Expected up to ${MOST} ranks that are threads, got ${count}.`);
  const toolchain = await openToolchain();
  if ('reason' in toolchain) throw new NativeEngineError(toolchain.reason);
  const [transport, newWorld, newGroup, member, end, close] = await open(
    toolchain.runtime.library,
    'void *lt_thread_transport()',
    'void *lt_thread_world()',
    'void *lt_thread_group(void *world, int64_t members)',
    'void *lt_thread_member(void *group, int64_t number)',
    'void lt_thread_end(void *world)',
    'void lt_thread_close(void *world)',
  );
  const allocated = (memory: unknown): bigint => {
    if (memory === null) throw new NativeEngineError('There is not enough memory for ranks.');
    return memory as bigint;
  };
  const world = allocated(newWorld!());
  /** By their names and first ranks. */
  const groups = new Map<string, bigint>();
  const ranks = Array.from(
    { length: count },
    (_, rank): RankCalls => ({
      rank,
      count,
      transport: transport!() as bigint,
      areThreads: true,
      async open(members, name) {
        const key = `${name} ${members[0]}`;
        const group = groups.get(key) ?? allocated(newGroup!(world, members.length));
        groups.set(key, group);
        return member!(group, members.indexOf(rank)) as bigint;
      },
      reason: (code) => REASONS[code] ?? `error ${code}`,
      end: () => void end!(world),
    }),
  );
  return { ranks, close: () => void close!(world) };
}
