/**
 * @file Check for silent corruption: a step is taken twice from one state and batch, and its results are compared bit by bit.
 * Processors that compute wrongly now and then, without a sign of it, are found in large fleets (Hochschild et al., Cores that
 * don't count, 2021; Dixit et al., Silent data corruptions at scale, 2021).
 */

import type { TrainState } from '../checkpoints/index.js';
import type { FlatArray } from '../compiler/index.js';
import { JobError } from '../runs/index.js';
import type { TrainMemory } from './taskState.js';

/** Bytes that are swapped at a time. */
const CHUNK_BYTES = 1 << 18;

type Bytes = Uint8Array<ArrayBufferLike>;

const bytesOf = (array: ArrayBufferView): Bytes =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

type StateLayout = Pick<TrainState['layout'], 'entries'>;

/** A tensor of the state, with its place in one of the state's buffers, in elements. */
interface Place {
  readonly name: string;
  readonly buffer: number;
  readonly offset: number;
  readonly size: number;
}

/** Takes chosen steps twice. It holds one copy of parameters and slots, made for the first of them. */
export class CorruptionCheck {
  readonly #buffers: readonly FlatArray[];
  readonly #places: readonly Place[];
  #copies: readonly Bytes[] | undefined;

  /**
   * @param intervalSteps steps between checked ones; null: none is.
   * @param hint what else may make two results of one step, for the error.
   */
  constructor(
    private readonly state: TrainMemory,
    private readonly intervalSteps: number | null,
    private readonly hint = '',
  ) {
    const { params, layout, slots, slotLayouts } = state;
    this.#buffers = [params, ...Object.values(slots)];
    const named: [string, StateLayout][] = [
      ['params', layout],
      ...Object.entries(slotLayouts).map(([slot, at]): [string, StateLayout] => [`slots/${slot}`, at]),
    ];
    this.#places = named.flatMap(([prefix, { entries }], buffer) =>
      entries.map(({ name, offset, size }) => ({
        name: `${prefix}/${name}`,
        buffer,
        offset,
        size,
      })),
    );
  }

  /** Whether the step, counted from 1, is taken twice. */
  isAt(step: number): boolean {
    return this.intervalSteps !== null && step % this.intervalSteps === 0;
  }

  /**
   * Takes a step twice; its results are those of the second time.
   *
   * @param take takes the step, from the present state; returns its loss.
   * @throws JobError where the two differ; the state is that of no step then.
   */
  async takeTwice(step: number, take: () => Promise<number>): Promise<void> {
    const { memory } = this.state;
    await memory?.toHost();
    this.#copies ??= this.#buffers.map((buffer) => new Uint8Array(buffer.byteLength));
    for (const [i, copy] of this.#copies.entries()) copy.set(bytesOf(this.#buffers[i]!));
    const first = await take();
    await memory?.toHost();
    // The state that the step began with comes back, and the results of the first time take its place.
    for (const [i, copy] of this.#copies.entries()) swap(copy, bytesOf(this.#buffers[i]!));
    memory?.wrote();
    const second = await take();
    await memory?.toHost();
    const found = Object.is(first, second) ? this.#difference() : `its loss is ${first} and ${second}`;
    if (found === undefined) return;
    throw new JobError(
      `Step ${step} has two results from the same state and batch: ${found}. This machine computes wrongly, or its memory ` +
        `is damaged; go on from the newest checkpoint on another one.${this.hint}`,
    );
  }

  /** The first element that differs, and how many tensors have some. */
  #difference(): string | undefined {
    const differing = this.#places.filter((place) => {
      const [a, b] = this.#both(place).map(bytesOf) as [Bytes, Bytes];
      return Buffer.compare(a, b) !== 0;
    });
    const [place] = differing;
    if (place === undefined) return undefined;
    const [a, b] = this.#both(place);
    const size = a!.BYTES_PER_ELEMENT;
    const [x, y] = [bytesOf(a!), bytesOf(b!)];
    const at = Math.floor(x.findIndex((byte, i) => byte !== y[i]) / size);
    const bits = (bytes: Bytes) =>
      `0x${Buffer.from(bytes.slice(at * size, (at + 1) * size))
        .reverse()
        .toString('hex')}`;
    return (
      `${place.name}[${at}] is ${a![at]} and ${b![at]} (${bits(x)}, ${bits(y)}), the first such element, ` +
      `in ${differing.length} of ${this.#places.length} tensors`
    );
  }

  /** The values of a tensor the first and the second time. */
  #both({ buffer, offset, size }: Place): FlatArray[] {
    const second = this.#buffers[buffer]!;
    const copy = this.#copies![buffer]!;
    const first = new (second.constructor as Float32ArrayConstructor)(
      copy.buffer as ArrayBuffer,
      0,
      second.length,
    );
    return [first, second].map((array) => array.subarray(offset, offset + size));
  }
}

/** Exchanges the contents of two arrays of one length. */
function swap(a: Bytes, b: Bytes): void {
  const held = new Uint8Array(Math.min(CHUNK_BYTES, a.length));
  for (let at = 0; at < a.length; at += CHUNK_BYTES) {
    const [x, y] = [a, b].map((bytes) => bytes.subarray(at, at + CHUNK_BYTES)) as [Bytes, Bytes];
    held.set(x);
    x.set(y);
    y.set(held.subarray(0, y.length));
  }
}
