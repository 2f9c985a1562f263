/**
 * @file Other ranks as compiled programs call them.
 *
 * A program with collectives (rules/collectiveRules.ts) is compiled with `ranks`, an option of `compile`, `compileProgram`
 * and `tryNative`: `compileProgram(program, { ranks })`. Two things are such ranks:
 * - `openThreadRanks(count)`: the ranks of one process, each running its program on a thread of its own. Compile the same
 *   program once for each of them (`numThreads` is 1), bind each, and start all calls before awaiting one.
 * - `MpiRanks.steps` of the room `collectives`, for ranks that are processes.
 */
/** The other ranks, for the collectives of a program. */
export interface RankCalls {
  /** Number of this rank, from 0, and of all. */
  readonly rank: number;
  readonly count: number;
  /** Address of the transport's functions, an lt_transport (native/runtime/collectives.h). */
  readonly transport: bigint;
  /** Whether the ranks are threads of this process, so that each one's runs need a thread of their own. */
  readonly areThreads: boolean;
  /**
   * The transport's context of a group. All ranks open theirs of the same name, in the same order.
   *
   * @param members the ranks of the group, this one among them, by their numbers in it.
   * @param name that no other division into groups has.
   */
  open(members: readonly number[], name: string): Promise<bigint>;
  /** The reason behind a code of the transport, as the end of a sentence. */
  reason(code: number): string;
  /** Tells the others that a run of this rank has failed, where they would wait for it. */
  end(): void;
}
