/** @file The lanes of an input: batches of their rows, hosts' shares of them, and states that join. */
import { InputError } from '../inputErrors.js';
import type { InputState } from '../inputSource.js';
import type { Segment } from './featureConverter.js';
import { isFurther, Lane, type LanePosition, type LaneSetting } from './lane.js';

/** The share of the rows that goes to one host. */
export interface HostShare {
  readonly batchSize: number;
  readonly numInfeedHosts: number;
  readonly infeedHostIndex: number;
}

/** A state of lanes as JSON: batches taken, and of each lane [rows, examples, …drawn]. */
export interface LanesState {
  readonly batches: number;
  readonly lanes: readonly (readonly number[])[];
}

const positionsOf = ({ lanes }: LanesState): LanePosition[] =>
  lanes.map(([rows = 0, examples = 0, ...drawn]) => ({ rows, examples, drawn }));

const entryOf = ({ rows, examples, drawn }: LanePosition): number[] => [rows, examples, ...drawn];

/**
 * Rows of lanes. Where the data repeats, lane l belongs to host l mod H, which makes each batch wholly from one of its
 * lanes, in turn. Where it ends, there is one lane, which every host walks and takes its share of.
 */
export class Lanes {
  readonly #lanes: readonly Lane[];
  #batches = 0;

  constructor(
    private readonly setting: LaneSetting,
    private readonly share: HostShare,
    /** Whether rows at the end that fill no batch of all hosts are left out. */
    private readonly dropsRemainder: boolean,
  ) {
    this.#lanes = Array.from({ length: setting.numLanes }, (_, l) => new Lane(setting, l));
  }

  /** The host's next rows, at most a batch; undefined at the end, which all hosts reach after as many batches. */
  next(): readonly Segment[][] | undefined {
    const rows = this.setting.numLanes === 1 ? this.#shareOfAll() : this.#fromOwnLane();
    if (rows !== undefined) this.#batches += 1;
    return rows;
  }

  /** Number of readers that have lanes of their own where batches are dealt out in turn: a divisor of the host's lanes. */
  numReaders(most: number): number {
    let count = Math.min(most, this.#own.length);
    while (this.#own.length % count !== 0) count--;
    return count;
  }

  /** Passes batches: at no cost where others read their lanes. */
  skip(batches: number): void {
    if (this.setting.numLanes > 1) this.#batches += batches;
    else for (let i = 0; i < batches && this.next() !== undefined; i++);
  }

  get #own(): readonly Lane[] {
    const { numInfeedHosts, infeedHostIndex } = this.share;
    if (this.setting.numLanes === 1) return this.#lanes;
    return this.#lanes.filter((_, l) => l % numInfeedHosts === infeedHostIndex);
  }

  #fromOwnLane(): Segment[][] {
    const own = this.#own;
    const lane = own[this.#batches % own.length]!;
    return Array.from({ length: this.share.batchSize }, () => lane.next()!);
  }

  #shareOfAll(): Segment[][] | undefined {
    const { batchSize, numInfeedHosts, infeedHostIndex } = this.share;
    const [lane] = this.#lanes;
    const all: Segment[][] = [];
    while (all.length < batchSize * numInfeedHosts) {
      const row = lane!.next();
      if (row === undefined) break;
      all.push(row);
    }
    const isWhole = all.length === batchSize * numInfeedHosts;
    if (all.length === 0 || (this.dropsRemainder && !isWhole)) return undefined;
    return all.slice(infeedHostIndex * batchSize, (infeedHostIndex + 1) * batchSize);
  }

  get state(): LanesState {
    return { batches: this.#batches, lanes: this.#lanes.map(({ position }) => entryOf(position)) };
  }

  set state(state: LanesState) {
    this.#batches = state.batches;
    for (const [l, position] of positionsOf(state).entries()) this.#lanes[l]!.position = position;
  }
}

/** The state of a saved one that has these numbers of lanes and tasks. @throws InputError for another state */
export function lanesState(
  inputName: string,
  { batches, lanes }: InputState,
  { numLanes, tasks }: Pick<LaneSetting, 'numLanes' | 'tasks'>,
): LanesState {
  const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
  const isLane = (lane: unknown): boolean =>
    Array.isArray(lane) && lane.length === 2 + tasks.length && lane.every(isCount);
  if (isCount(batches) && Array.isArray(lanes) && lanes.length === numLanes && lanes.every(isLane))
    return { batches, lanes } as unknown as LanesState;
  throw new InputError(
    `Input '${inputName}': expected a state with a number of batches and ${numLanes} lanes of ${2 + tasks.length} numbers, ` +
      `got ${JSON.stringify({ batches, lanes }).slice(0, 80)}.`,
  );
}

/** The furthest place of each lane in states of hosts, or of threads, that read the same data. */
export function joinLanes(states: readonly LanesState[]): LanesState {
  const positions = states.map(positionsOf);
  const furthest = positions[0]!.map((_, l) =>
    positions.map((lanes) => lanes[l]!).reduce((a, b) => (isFurther(b, a) ? b : a)),
  );
  return { batches: Math.max(...states.map(({ batches }) => batches)), lanes: furthest.map(entryOf) };
}
