/** @file Groups of ranks as a program's code names them, and the errors of its collectives. */
import type { RankCalls } from '../program/rankCalls.js';
import { CompilerError, sizeOf } from '../program/tensors.js';
import { type Group, memberOf, membersOf, ranksOf } from '../rules/collectiveRules.js';
import { call, open, type ProgramFunctions } from './library.js';

/** Functions and groups of a program with collectives. */
export interface RankFunctions {
  /** A table of lt_group (runtime/collectives.h). */
  readonly words: readonly (number | bigint)[];
  /** Replaces the program's own where each rank needs a thread. */
  readonly run?: ProgramFunctions['run'];
  /** The collective that ended the last run. */
  failure(program: bigint): string;
}

/** By their numbers in collectives.h. */
const OPERATIONS = ['allReduce', 'reduceScatter', 'allGather', 'allToAll', 'collectivePermute'];

function checkRanks(name: string, groups: readonly Group[], ranks: RankCalls | undefined): RankCalls {
  if (ranks === undefined)
    throw new CompilerError(
      `${name}: it has collectives of a mesh of ${groups[0]!.mesh.join('x')} ranks, and was compiled without the option 'ranks'.`,
    );
  const other = groups.find((group) => sizeOf(group.mesh) !== ranks.count);
  if (other !== undefined)
    throw new CompilerError(
      `${name}: expected a mesh of as many ranks as there are, ${ranks.count}, got ${other.mesh.join('x')}.`,
    );
  return ranks;
}

/**
 * Opens the groups of a program.
 *
 * @throws CompilerError where there are no such ranks.
 */
export async function openGroups(
  name: string,
  groups: readonly Group[],
  given: RankCalls | undefined,
  threads: number,
  runtime: string,
): Promise<RankFunctions> {
  const ranks = checkRanks(name, groups, given);
  if (ranks.areThreads && threads > 1)
    throw new CompilerError(`${name}: expected numThreads 1 of ranks that are threads, got ${threads}.`);
  const words: (number | bigint)[] = [];
  for (const group of groups) {
    const { mesh, axes } = group;
    const members = membersOf(group);
    const context =
      members === 1
        ? 0
        : await ranks.open(ranksOf(group, ranks.rank), `${mesh.join('x')} along ${axes.join()}`);
    words.push(members === 1 ? 0 : ranks.transport, context, memberOf(group, ranks.rank), members);
  }
  const [begin, wait, describe] = await open(
    runtime,
    'int lt_begin(void *program, void *inputs, void *outputs, void *request)',
    'int lt_await(void *program)',
    'void lt_failed_collective(void *program, void *words)',
  );
  return {
    words,
    ...(ranks.areThreads && {
      // koffi has fewer threads than there may be ranks: those only wait.
      run: async (program, inputs, outputs, request) => {
        if (begin!(program, inputs, outputs, request) === 0)
          throw new CompilerError(`${name}: the system has no thread for rank ${ranks.rank}.`);
        return call<number>(wait!, program);
      },
    }),
    failure: (program) => {
      const failed = new BigInt64Array(4);
      describe!(program, failed);
      const [error, operation, group, bytes] = Array.from(failed, Number) as [number, number, number, number];
      const { mesh, axes } = groups[group]!;
      return (
        `${OPERATIONS[operation]} of ${bytes} bytes along the axes ${axes.join(', ')} of the mesh ${mesh.join('x')} ` +
        `failed on rank ${ranks.rank}: ${ranks.reason(error)}`
      );
    },
  };
}
