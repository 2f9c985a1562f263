/**
 * @file A training state that ranks hold in parts. Rank 0 has the whole beside its part, for decodes and the like:
 * ranks exchange it then, variable by variable. Training begins, is saved and summarised by the parts alone.
 */
import { stateTensors, tensorName } from '../../checkpoints/index.js';
import {
  type FlatArray,
  type FlatLayout,
  flatViews,
  floatsOf,
  heldView,
  sizeOf,
} from '../../compiler/index.js';
import { ConfigError } from '../../hparams/index.js';
import { fillSlots, refillSlots, sumOfSquares } from '../../learners/index.js';
import type { EngineOptions, JobOptions, JobRanks } from '../../runs/index.js';
import { cut, isPart, type Mesh, paste, type Shard, type SingleTask } from '../../tasks/index.js';
import {
  type ForwardInParts,
  outlineOf,
  type PartsTurn,
  type SquaresOfVariable,
  type StateInParts,
  type StateSource,
  type TrainMemory,
  trainStateOf,
} from '../taskState.js';
import { announce, tell } from './agreement.js';
import { SharedCheckpoints } from './sharedCheckpoints.js';
import type { HeldTensor, HeldTensors } from './stateExchange.js';

/** The task's variables as a rank holds them. */
export const variablesInParts = ({ variables }: SingleTask, shards: readonly Shard[]) =>
  variables.map((variable, i) => {
    const shard = shards[i]!;
    if (!isPart(shard)) return variable;
    const { shape, whole, group: ranks, axes } = shard;
    const stack = variable.repeatPrefix.length;
    const sliceAxes = axes.slice(stack).flat();
    const sliceRanks = { mesh: ranks.mesh, axes: sliceAxes };
    const part = { ranks, whole, axes, ...(sliceAxes.length < ranks.axes.length && { sliceRanks }) };
    return { ...variable, shape, repeatPrefix: shape.slice(0, stack), part };
  });

/** The elements of a variable or a slot in a state's buffers. */
type Elements = Readonly<Record<string, FlatArray>>;

export class SplitState implements StateInParts {
  readonly parts: TrainMemory;
  /** Parts of each variable by rank, by path. */
  readonly #ofRanks: readonly ReadonlyMap<string, Shard>[];
  readonly checkpoints: SharedCheckpoints;
  source: StateSource = { from: 'whole' };
  forward?: ForwardInParts;
  /** Whether the whole is that of the parts. */
  #isFresh = true;
  /** Whether the parts are those of a completed step. */
  #isWhole = true;
  /** Whether summaries or checks read gradients. */
  readonly #tellsGradients: boolean;

  private constructor(
    private readonly task: SingleTask,
    mesh: Mesh,
    private readonly ranks: JobRanks,
    readonly shards: readonly Shard[],
    /** On rank 0. */
    private readonly whole: TrainMemory | undefined,
    checksGradients: boolean,
  ) {
    this.parts = trainStateOf(task, task.layout(undefined, variablesInParts(task, shards)));
    const { histogramIntervalSteps } = task.hp.train.hp;
    this.#tellsGradients = checksGradients || histogramIntervalSteps !== null;
    this.#ofRanks = Array.from(
      { length: ranks.count },
      (_, rank) => new Map(mesh.shards(task.variables, rank).map((shard) => [shard.path, shard])),
    );
    this.checkpoints = new SharedCheckpoints(ranks, whole ?? outlineOf(task), this.#held());
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

  async read(directory: string): Promise<void> {
    await tell(this.ranks, { directory });
    await this.checkpoints.read(directory);
  }

  async fill(options: EngineOptions): Promise<void> {
    const { source, parts } = this;
    this.#isFresh = source.from === 'whole';
    if (source.from === 'whole') return this.#scatter();
    if (source.from === 'seed') {
      await this.task.draw((path, values, first) => {
        const part = parts.views[path]!;
        cut(values as never, this.#ofRanks[this.ranks.rank]!.get(path)!, part as never, first);
      }, options);
      return fillSlots(parts);
    }
    await this.checkpoints.spread();
    refillSlots(parts, parts.views, new Set(source.unfrozen));
    fillSlots(parts, source.slotsAdded);
  }

  async squares(): Promise<ReadonlyMap<string, SquaresOfVariable>> {
    await announce(this.ranks, 'norms');
    return this.#squares();
  }

  async take(turn: PartsTurn): Promise<void> {
    if (turn === 'gather') await this.gather();
    else if (turn === 'save') await this.checkpoints.follow();
    else if (turn === 'evaluate') await this.forward!.follow();
    else await this.#squares();
  }

  async #scatter(): Promise<void> {
    await this.#each(false, async (path, part, whole, isSplit) => {
      const shard = this.#ofRanks[this.ranks.rank]!.get(path)!;
      const all = whole ?? (isSplit ? like(part, sizeOf(shard.whole)) : part);
      await this.ranks.broadcast(bytesOf(all));
      if (isSplit) cut(all, shard, part);
      else part.set(all as never);
    });
  }

  /** Makes rank 0's state that of the parts. All ranks call it. */
  async gather(): Promise<void> {
    await this.#each(this.#tellsGradients, async (path, part, whole, isSplit) => {
      const { rank, count } = this.ranks;
      if (!isSplit) {
        whole?.set(part as never);
        return;
      }
      const all = like(part, count * part.length);
      all.set(part as never, rank * part.length);
      await this.ranks.allGather(bytesOf(all));
      if (whole === undefined) return;
      for (let i = 0; i < count; i++)
        paste(all.subarray(i * part.length, (i + 1) * part.length), this.#ofRanks[i]!.get(path)!, whole);
    });
    this.#isFresh = true;
  }

  /** Sums of squares of each variable over its parts, whose copies on several ranks count once. */
  async #squares(): Promise<ReadonlyMap<string, SquaresOfVariable>> {
    const { ranks, parts, shards } = this;
    const [params, grads] = [floatsOf(parts.layout, parts.views), flatViews(parts.changing, parts.grads)];
    const all = new Float64Array(2 * shards.length * ranks.count);
    const own = all.subarray(2 * shards.length * ranks.rank);
    for (const [i, { path }] of shards.entries()) {
      own[2 * i] = squaresOf(params[path]!);
      own[2 * i + 1] = grads[path] === undefined ? 0 : squaresOf(grads[path]);
    }
    await ranks.allGather(bytesOf(all as never));
    return new Map(
      shards.map(({ path, whole }, i) => {
        const counted = new Set<string>();
        const sums = [0, 0];
        for (const [rank, shardsOfRank] of this.#ofRanks.entries()) {
          const place = `${shardsOfRank.get(path)!.begin}`;
          if (counted.has(place)) continue;
          counted.add(place);
          for (const j of [0, 1]) sums[j]! += all[2 * (shards.length * rank + i) + j]!;
        }
        return [path, { size: sizeOf(whole), params: sums[0]!, grads: sums[1]! }];
      }),
    );
  }

  /** Tensors of this rank by their names in files. */
  #held(): HeldTensors {
    const { layout, slotLayouts } = this.parts;
    const of = new Map(this.shards.map((shard) => [shard.path, shard]));
    const parts = new Set(
      [[null, layout] as const, ...Object.entries(slotLayouts)].flatMap(([slot, each]) =>
        splitOf(each).map((path) => tensorName(slot, path)),
      ),
    );
    const held = new Map<string, HeldTensor>();
    for (const { name, variable, data } of stateTensors(this.parts)) {
      held.set(name, parts.has(name) ? { data, shard: of.get(variable)! } : { data });
    }
    return held;
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
   * @param act hears whether ranks hold it in parts.
   */
  async #each(
    grads: boolean,
    act: (path: string, part: FlatArray, whole: FlatArray | undefined, isSplit: boolean) => Promise<void>,
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
      const split = new Set(splitOf(layout));
      for (const [path, part] of Object.entries(elementsOf(layout, buffer)))
        await act(path, part, wholes?.[path], split.has(path));
    }
  }
}

/** Paths of the variables that ranks hold in parts, in a layout of them or of a slot: rules of whole variables have whole slots. */
const splitOf = ({ entries }: FlatLayout): string[] =>
  entries.filter(({ ranks }) => ranks !== undefined).map(({ name }) => name);

const elementsOf = ({ entries }: FlatLayout, buffer: FlatArray): Elements =>
  Object.fromEntries(
    entries.map((entry) => [
      entry.name,
      buffer instanceof Float32Array
        ? heldView(buffer, entry)
        : buffer.subarray(entry.offset, entry.offset + entry.size),
    ]),
  );

const squaresOf = (values: Float32Array): number => sumOfSquares(values, 0, values.length);
const like = (array: FlatArray, length: number): FlatArray =>
  new (array.constructor as new (length: number) => FlatArray)(length);
const bytesOf = ({ buffer, byteOffset, byteLength }: FlatArray): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);
