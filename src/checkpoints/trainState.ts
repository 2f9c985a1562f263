/** @file TrainState: the flat buffers that training changes, and their copy as named tensors of a file. */

import { encodePrefix, placeTensors, type SafetensorsLayout, type TensorSpec } from './safetensors.js';

/** A variable's place in a flat buffer; `offset` and `size` count elements. */
interface StateEntry {
  readonly name: string;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly size: number;
}

/** Places of all variables, as in the compiler's FlatLayout. `size` counts elements, padding included. */
export interface StateLayout {
  readonly entries: readonly StateEntry[];
  readonly size: number;
}

/** State of training. */
export interface TrainState {
  /** Number of finished train steps. */
  step: number;
  /** All variables, placed by `layout`. */
  readonly params: Float32Array;
  /** Optimizer slots and the like (`m`, `v`, `ema`), by name, placed by `changing`. */
  readonly slots: Readonly<Record<string, Float32Array>>;
  readonly layout: StateLayout;
  /** The front of `layout`: variables that training changes. Those behind are frozen, and have no slots. */
  readonly changing: StateLayout;
}

/** A state of zeros. */
export function createTrainState(
  layout: StateLayout,
  slotNames: readonly string[] = [],
  changing = layout,
): TrainState {
  return {
    step: 0,
    params: new Float32Array(layout.size),
    slots: Object.fromEntries(slotNames.map((name) => [name, new Float32Array(changing.size)])),
    layout,
    changing,
  };
}

/** The tensor that holds the step, an I64 scalar. */
export const STEP_TENSOR = 'step';

/** Metadata in the header of a state's file that names its writer. */
export const STATE_FORMAT = 'luthier';

/** A variable's tensor: its values, `params/<path>`, or those of an optimizer slot, `slots/<slot>/<path>`. */
export function tensorName(slot: string | null, variable: string): string {
  return slot === null ? `params/${variable}` : `slots/${slot}/${variable}`;
}

/** A variable, or a slot's value of one, with its elements in the flat buffer. */
interface StateTensor extends TensorSpec {
  readonly variable: string;
  readonly slot: string | null;
  readonly data: Float32Array;
}

/** Every variable and slot of a state. */
export function* stateTensors({ params, slots, layout, changing }: TrainState): Generator<StateTensor> {
  const tensor = (slot: string | null, buffer: Float32Array, entry: StateEntry): StateTensor => ({
    ...{ variable: entry.name, slot, name: tensorName(slot, entry.name) },
    ...{ dtype: 'F32', shape: entry.shape },
    data: buffer.subarray(entry.offset, entry.offset + entry.size),
  });
  for (const entry of layout.entries) yield tensor(null, params, entry);
  for (const [slot, buffer] of Object.entries(slots))
    for (const entry of changing.entries) yield tensor(slot, buffer, entry);
}

/**
 * A copy of a state in the format of its file, so that training can go on while a worker writes. It is allocated once, in
 * shared memory, and used again for every save.
 */
export class StateSnapshot {
  readonly layout: SafetensorsLayout;
  /** The file up to its data section. */
  readonly prefix: Uint8Array;
  /** The data section. */
  readonly data: SharedArrayBuffer;

  /** @param state gives names and shapes; nothing is copied yet */
  constructor(state: TrainState) {
    const step: TensorSpec = { name: STEP_TENSOR, dtype: 'I64', shape: [] };
    this.layout = placeTensors([step, ...stateTensors(state)], { format: STATE_FORMAT });
    this.prefix = encodePrefix(this.layout);
    this.data = new SharedArrayBuffer(this.layout.byteLength);
  }

  /** Copies the state's present values, bit for bit; it must have the variables that the snapshot was made for. */
  take(state: TrainState): void {
    const places = this.layout.tensors;
    new BigInt64Array(this.data, places[0]!.offset, 1)[0] = BigInt(state.step);
    let index = 1;
    for (const { name, data } of stateTensors(state)) {
      const place = places[index++];
      if (place?.name !== name || place.byteLength !== data.byteLength) {
        throw new RangeError(
          `variable '${name}' (${data.length} elements) is not in the snapshot at this place`,
        );
      }
      new Float32Array(this.data, place.offset, data.length).set(data);
    }
  }
}
