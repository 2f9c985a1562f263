/** @file TrainState: the flat buffers that training changes, and their copy as named tensors of a file. */

import {
  type FlatArray,
  type FlatDtype,
  flatArrayType,
  heldView,
  type NarrowType,
} from '../compiler/index.js';
import {
  encodePrefix,
  placeTensors,
  type SafetensorsDtype,
  type SafetensorsLayout,
  type TensorPlace,
  type TensorSpec,
} from './safetensors.js';

/** A variable's place in a flat buffer, as in the compiler's FlatEntry. */
interface StateEntry {
  readonly name: string;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly size: number;
  /** How the buffer holds it; absent: as float32. */
  readonly storage?: NarrowType;
}

/** Places of all variables, as in the compiler's FlatLayout. `size` counts elements, padding included. */
export interface StateLayout {
  readonly entries: readonly StateEntry[];
  readonly size: number;
}

/** Places of a slot, for the variables that have it. */
export interface StateSlotLayout extends StateLayout {
  readonly dtype: FlatDtype;
}

/** State of training. */
export interface TrainState {
  /** Number of finished train steps. */
  step: number;
  /** All variables, placed by `layout`. */
  readonly params: Float32Array;
  /** Optimizer slots and the like (`m`, `v`, `ema`), by name, placed by `slotLayouts`. */
  readonly slots: Readonly<Record<string, FlatArray>>;
  readonly slotLayouts: Readonly<Record<string, StateSlotLayout>>;
  readonly layout: StateLayout;
  /** The front of `layout`: variables that training changes. Those behind are frozen. */
  readonly changing: StateLayout;
}

/** Dtypes of slots in files. */
const FILE_DTYPES = {
  float32: 'F32',
  int8: 'I8',
  uint8: 'U8',
  bfloat16: 'BF16',
  float16: 'F16',
} as const satisfies Record<FlatDtype, SafetensorsDtype>;

/** A state of zeros. */
export function createTrainState(
  layout: StateLayout,
  slotLayouts: TrainState['slotLayouts'] = {},
  changing = layout,
): TrainState {
  return {
    step: 0,
    params: new Float32Array(layout.size),
    slots: Object.fromEntries(
      Object.entries(slotLayouts).map(([name, { dtype, size }]) => [name, new (flatArrayType(dtype))(size)]),
    ),
    slotLayouts,
    layout,
    changing,
  };
}

/** How a file holds a tensor of a state. */
export const fileSpec = ({
  dtype,
  shape,
}: {
  readonly dtype: FlatDtype;
  readonly shape: readonly number[];
}) => ({
  dtype: FILE_DTYPES[dtype],
  shape,
});

/** A tensor's dtype and shape in words. */
export const formatPlace = ({ dtype, shape }: Pick<TensorSpec, 'dtype' | 'shape'>): string =>
  `${dtype} [${shape.join(', ')}]`;

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
  readonly data: FlatArray;
}

/** Every variable and slot of a state. */
export function* stateTensors({ params, slots, slotLayouts, layout }: TrainState): Generator<StateTensor> {
  const tensor = (
    slot: string | null,
    buffer: FlatArray,
    dtype: FlatDtype,
    entry: StateEntry,
  ): StateTensor => ({
    ...{ variable: entry.name, slot, name: tensorName(slot, entry.name) },
    ...fileSpec({ dtype, shape: entry.shape }),
    data: buffer.subarray(entry.offset, entry.offset + entry.size),
  });
  for (const entry of layout.entries)
    yield {
      ...tensor(null, params, entry.storage ?? 'float32', entry),
      data: heldView(params, entry),
    };
  for (const [slot, { dtype, entries }] of Object.entries(slotLayouts))
    for (const entry of entries) yield tensor(slot, slots[slot]!, dtype, entry);
}

/** Tensors of a state's file, by the state's layouts. */
export function stateFileLayout({
  layout,
  slotLayouts,
}: Pick<TrainState, 'layout' | 'slotLayouts'>): SafetensorsLayout {
  const step: TensorSpec = { name: STEP_TENSOR, dtype: 'I64', shape: [] };
  const params = layout.entries.map(({ name, shape, storage }) => ({
    name: tensorName(null, name),
    ...fileSpec({ dtype: storage ?? 'float32', shape }),
  }));
  const slots = Object.entries(slotLayouts).flatMap(([slot, { dtype, entries }]) =>
    entries.map(({ name, shape }) => ({ name: tensorName(slot, name), ...fileSpec({ dtype, shape }) })),
  );
  return placeTensors([step, ...params, ...slots], { format: STATE_FORMAT });
}

/**
 * A copy of a state in the format of its file, so that training continues while a worker writes. It is allocated once, in
 * shared memory, and used again for every save.
 */
export class StateSnapshot {
  readonly layout: SafetensorsLayout;
  /** The file up to its data section. */
  readonly prefix: Uint8Array;
  /** The data section. */
  readonly data: SharedArrayBuffer;
  readonly #places: ReadonlyMap<string, TensorPlace>;

  /** @param state gives names and shapes; nothing is copied yet */
  constructor(state: TrainState) {
    this.layout = stateFileLayout(state);
    this.prefix = encodePrefix(this.layout);
    this.data = new SharedArrayBuffer(this.layout.byteLength);
    this.#places = new Map(this.layout.tensors.map((place) => [place.name, place]));
  }

  /** Copies the state's present values, bit for bit; it must have the variables that the snapshot was made for. */
  take(state: TrainState): void {
    const target = new Uint8Array(this.data);
    new BigInt64Array(this.data, this.#places.get(STEP_TENSOR)!.offset, 1)[0] = BigInt(state.step);
    let count = 1;
    for (const { name, data } of stateTensors(state)) {
      const place = this.#places.get(name);
      if (place?.byteLength !== data.byteLength)
        throw new RangeError(`variable '${name}' (${data.length} elements) is not in the snapshot`);
      target.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), place.offset);
      count++;
    }
    if (count !== this.#places.size)
      throw new RangeError(`the state has ${count} tensors, and the snapshot ${this.#places.size}`);
  }
}
