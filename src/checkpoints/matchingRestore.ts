/** @file Restoring what fits of a checkpoint into a state of other variables, slots, shapes or precision. */
import { type FlatArray, type FlatDtype, narrow } from '../compiler/index.js';
import { openWholeState, readBeside, readMetadata } from './checkedFiles.js';
import { checkIdentity } from './compatibility.js';
import { type CheckpointMetadata, slotsOf } from './metadata.js';
import type { SafetensorsFile } from './safetensorsFile.js';
import { fileSpec, formatPlace, stateTensors, type TrainState, tensorName } from './trainState.js';

/**
 * - `restored`: bit for bit
 * - `converted`: from another float type
 * - `initial`: not restored, since the checkpoint has none of this shape; a variable is drawn, a slot that of a first step
 * - `dropped`: of the checkpoint alone
 */
type Outcome = 'restored' | 'converted' | 'initial' | 'dropped';

/** A variable (`params/<path>`) or slot (`slots/<slot>/<path>`), as the checkpoint and the model have it: `F32 [2, 3]`. */
export interface TensorMatch {
  readonly name: string;
  readonly saved: string | undefined;
  readonly model: string | undefined;
  readonly outcome: Outcome;
}

interface Spec {
  readonly dtype: FlatDtype;
  readonly shape: readonly number[];
}

const FLOATS: readonly FlatDtype[] = ['float32', 'bfloat16', 'float16'];

function outcomeOf(saved: Spec | undefined, model: Spec | undefined): Outcome {
  if (model === undefined) return 'dropped';
  if (saved === undefined || `${saved.shape}` !== `${model.shape}`) return 'initial';
  if (saved.dtype === model.dtype) return 'restored';
  return FLOATS.includes(saved.dtype) && FLOATS.includes(model.dtype) ? 'converted' : 'initial';
}

type Layouts = Pick<TrainState, 'layout' | 'slotLayouts'>;

function* specsOf({ layout, slotLayouts }: Layouts): Generator<[string, Spec]> {
  for (const { name, shape, storage = 'float32' } of layout.entries)
    yield [tensorName(null, name), { dtype: storage, shape }];
  for (const [slot, { dtype, entries }] of Object.entries(slotLayouts))
    for (const { name, shape } of entries) yield [tensorName(slot, name), { dtype, shape }];
}

function* savedSpecs(metadata: CheckpointMetadata): Generator<[string, Spec]> {
  for (const [variable, saved] of Object.entries(metadata.variables))
    for (const [slot, spec] of [[null, saved] as const, ...Object.entries(slotsOf(metadata, saved))])
      yield [tensorName(slot, variable), spec];
}

/** Every tensor of a model's state, and then those of the checkpoint alone. */
export function matchTensors(metadata: CheckpointMetadata, layouts: Layouts): TensorMatch[] {
  const saved = new Map(savedSpecs(metadata));
  const model = new Map(specsOf(layouts));
  const shown = (spec: Spec | undefined) => spec && formatPlace(fileSpec(spec));
  return [...new Set([...model.keys(), ...saved.keys()])].map((name) => ({
    name,
    saved: shown(saved.get(name)),
    model: shown(model.get(name)),
    outcome: outcomeOf(saved.get(name), model.get(name)),
  }));
}

/** An open checkpoint, whose files are whole, and what of it fits a state. */
export class MatchingRestore {
  private constructor(
    readonly path: string,
    readonly metadata: CheckpointMetadata,
    readonly matches: readonly TensorMatch[],
    private readonly state: TrainState,
    private readonly file: SafetensorsFile,
  ) {}

  /**
   * @param path the checkpoint's directory.
   * @param experiment that must have written it; undefined accepts any.
   * @throws CheckpointError where it is damaged, or another experiment's
   */
  static open(path: string, experiment: string | undefined, state: TrainState): MatchingRestore {
    const metadata = readMetadata(path);
    checkIdentity(path, metadata, experiment);
    const matches = matchTensors(metadata, state);
    return new MatchingRestore(path, metadata, matches, state, openWholeState(path, metadata));
  }

  /** States that were saved beside: of the input, and of the run. */
  beside(): { readonly inputState: unknown; readonly progress: unknown } {
    return readBeside(this.path, this.metadata);
  }

  /** Reads the variables that fit into the state, whose others have their initial values. */
  load(): void {
    this.#read((slot) => slot === null);
  }

  /** Reads the slots that fit into the state, whose others are those of a first step. */
  loadSlots(): void {
    this.#read((slot) => slot !== null);
  }

  close(): void {
    this.file.close();
  }

  #read(isRead: (slot: string | null) => boolean): void {
    const outcomes = new Map(this.matches.map(({ name, outcome }) => [name, outcome]));
    for (const { name, slot, data, dtype } of stateTensors(this.state)) {
      const outcome = outcomes.get(name);
      if (!isRead(slot)) continue;
      if (outcome === 'restored') this.file.readInto(name, data);
      if (outcome === 'converted') this.#convert(name, data, dtype === 'F16' ? 'float16' : 'bfloat16');
    }
  }

  /** @param storage of `data`, where it is not float32. */
  #convert(name: string, data: FlatArray, storage: 'bfloat16' | 'float16'): void {
    const floats = data instanceof Float32Array ? data : new Float32Array(data.length);
    this.file.readFloats(name, floats);
    if (floats !== data) data.set(narrow(floats, storage));
  }
}
