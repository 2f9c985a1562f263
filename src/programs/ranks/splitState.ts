/**
 * @file A training state that ranks hold in parts. Rank 0 has the whole beside its part: it is what begins, is restored, saved and
 * evaluated, and ranks exchange it variable by variable.
 */
import { type FlatArray, type FlatLayout, heldView } from '../../compiler/index.js';
import { ConfigError } from '../../hparams/index.js';
import type { JobOptions, JobRanks } from '../../runs/index.js';
import { cut, isPart, type Mesh, paste, type Shard, type SingleTask } from '../../tasks/index.js';
import { type StateInParts, type TrainMemory, trainStateOf } from '../taskState.js';
import { announce } from './agreement.js';

/** The task's variables as a rank holds them. */
const variablesInParts = ({ variables }: SingleTask, shards: readonly Shard[]) =>
  variables.map((variable, i) => {
    const shard = shards[i]!;
    if (!isPart(shard)) return variable;
    const { shape, whole, group: ranks, axes } = shard;
    const stack = variable.repeatPrefix.length;
    const sliceAxes = axes.slice(stack).flat();
    const sliceRanks = { mesh: ranks.mesh, axes: sliceAxes };
    const part = { ranks, whole, ...(sliceAxes.length < ranks.axes.length && { sliceRanks }) };
    return { ...variable, shape, repeatPrefix: shape.slice(0, stack), part };
  });

/** The elements of a variable or a slot in a state's buffers. */
type Elements = Readonly<Record<string, FlatArray>>;

export class SplitState implements StateInParts {
  readonly parts: TrainMemory;
  /** Parts of each variable by rank, by path. */
  readonly #ofRanks: readonly ReadonlyMap<string, Shard>[];
  /** Whether the whole is that of the parts. */
  #isFresh = true;
  /** Whether the parts are those of a completed step. */
  #isWhole = true;
  /** Whether summaries or checks read gradients. */
  readonly #tellsGradients: boolean;

  private constructor(
    task: SingleTask,
    mesh: Mesh,
    private readonly ranks: JobRanks,
    readonly shards: readonly Shard[],
    /** On rank 0. */
    private readonly whole: TrainMemory | undefined,
    checksGradients: boolean,
  ) {
    this.parts = trainStateOf(task, task.layout(undefined, variablesInParts(task, shards)));
    const { learner, histogramIntervalSteps } = task.hp.train.hp;
    this.#tellsGradients =
      checksGradients || learner.hp.gradNormIndividualVars || histogramIntervalSteps !== null;
    this.#ofRanks = Array.from(
      { length: ranks.count },
      (_, rank) => new Map(mesh.shards(task.variables, rank).map((shard) => [shard.path, shard])),
    );
  }

  /**
   * The parts of a state, zeroed; undefined where every rank holds all of it and has rows of its own.
   *
   * @param whole the state, on rank 0: its memory then brings itself up to date by the parts.
   * @throws ConfigError for variables that cannot be split so, and for learners that need them whole.
   */
  static async of(
    { ranks, mesh, debug }: Pick<JobOptions, 'ranks' | 'mesh' | 'debug'>,
    task: SingleTask,
    whole?: TrainMemory,
  ): Promise<SplitState | undefined> {
    if (ranks === undefined || mesh === undefined) return undefined;
    const shards = mesh.shards(task.variables, ranks.rank);
    if (!shards.some(isPart) && mesh.shareOf(ranks.rank).count === ranks.count) return undefined;
    if (task.auxiliaryNames.length > 0)
      throw new ConfigError(
        'A task with auxiliaryTasks trains whole variables: set a mesh of rows alone, and no task.mesh.weightSplitDimsMapping.',
        { path: 'task.mesh' },
      );
    const state = new SplitState(task, mesh, ranks, shards, whole, debug === 'nan');
    await whole?.memory?.copyOn('ranks', () => ({ toHost: () => state.#toWhole(), drop: () => {} }));
    return state;
  }

  async change(update: () => Promise<void>): Promise<void> {
    this.#isFresh = false;
    this.#isWhole = false;
    await update();
    this.#isWhole = true;
  }

  /** Gives each rank its part of rank 0's state. All ranks call it. */
  async scatter(): Promise<void> {
    await this.#each(false, async (path, part, whole) => {
      const shard = this.#shard(this.ranks.rank, path, part);
      const all = whole ?? like(part, sizeOf(shard.whole));
      await this.ranks.broadcast(bytesOf(all));
      cut(all, shard, part);
    });
    this.#isFresh = true;
  }

  /** Makes rank 0's state that of the parts. All ranks call it. */
  async gather(): Promise<void> {
    await this.#each(this.#tellsGradients, async (path, part, whole) => {
      const { rank, count } = this.ranks;
      if (!isPart(this.#shard(rank, path, part))) {
        whole?.set(part as never);
        return;
      }
      const all = like(part, count * part.length);
      all.set(part as never, rank * part.length);
      await this.ranks.allGather(bytesOf(all));
      if (whole === undefined) return;
      for (let i = 0; i < count; i++)
        paste(all.subarray(i * part.length, (i + 1) * part.length), this.#shard(i, path, part), whole);
    });
    this.#isFresh = true;
  }

  async #toWhole(): Promise<void> {
    // What is half-way on some rank is of no step, and that rank may wait for this one.
    if (this.#isFresh || !this.#isWhole) return;
    await announce(this.ranks, 'gather');
    await this.gather();
  }

  /**
   * Calls `act` with each variable, and each slot of one, here and on rank 0, in the same order on all ranks.
   *
   * @param grads whether with gradients, too.
   */
  async #each(
    grads: boolean,
    act: (path: string, part: FlatArray, whole: FlatArray | undefined) => Promise<void>,
  ): Promise<void> {
    const { parts, whole } = this;
    const kinds: (readonly [FlatLayout, FlatArray, FlatLayout | undefined, FlatArray | undefined])[] = [
      [parts.layout, parts.params, whole?.layout, whole?.params],
      ...(grads ? [[parts.changing, parts.grads, whole?.changing, whole?.grads] as const] : []),
      ...Object.entries(parts.slotLayouts).map(
        ([slot, layout]) =>
          [layout, parts.slots[slot]!, whole?.slotLayouts[slot], whole?.slots[slot]] as const,
      ),
    ];
    for (const [layout, buffer, wholeLayout, wholeBuffer] of kinds) {
      const wholes = wholeLayout && wholeBuffer && elementsOf(wholeLayout, wholeBuffer);
      for (const [path, part] of Object.entries(elementsOf(layout, buffer)))
        await act(path, part, wholes?.[path]);
    }
  }

  /** A rank's part of a variable, or of a slot of it: those of whole variables may have other shapes. */
  #shard(rank: number, path: string, { length }: FlatArray): Shard {
    const shard = this.#ofRanks[rank]!.get(path)!;
    return isPart(shard) ? shard : { ...shard, whole: [length], shape: [length], begin: [0] };
  }
}

const elementsOf = ({ entries }: FlatLayout, buffer: FlatArray): Elements =>
  Object.fromEntries(
    entries.map((entry) => [
      entry.name,
      buffer instanceof Float32Array
        ? heldView(buffer, entry)
        : buffer.subarray(entry.offset, entry.offset + entry.size),
    ]),
  );

const sizeOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);
const like = (array: FlatArray, length: number): FlatArray =>
  new (array.constructor as new (length: number) => FlatArray)(length);
const bytesOf = ({ buffer, byteOffset, byteLength }: FlatArray): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);
