/** @file metadata.json: contents of a checkpoint, and digests that reveal damage to its files. */

import { createHash } from 'node:crypto';
import type { FlatDtype } from '../compiler/index.js';
import { CheckpointError } from './checkpointErrors.js';
import type { FileDigest } from './durableFile.js';
import type { TrainState } from './trainState.js';

/**
 * Readable versions. The written version is the earliest one that covers the checkpoint's features, so that older
 * readers can load it: 1.1 has frozen variables without slots, 1.2 slots of shapes of their own, 1.3 storage besides float32
 * and int8, 1.4 digests of chunks.
 */
export const CHECKPOINT_VERSIONS = ['1.0', '1.1', '1.2', '1.3', '1.4'] as const;

export const STATE_FILE = 'state.safetensors';
export const METADATA_FILE = 'metadata.json';
export const TRAIN_INPUT_FILE = 'train_input.json';
export const PROGRESS_FILE = 'progress.json';

/** The checkpoint with the best value of a metric. */
export interface BestCheckpoint {
  readonly step: number;
  /** The metric's name, as `eval_test_validation/total_loss`. */
  readonly metric: string;
  readonly value: number;
}

/** A slot of a variable. */
interface SavedSlot {
  readonly shape: readonly number[];
  readonly dtype: FlatDtype;
}

/** A variable of a checkpoint. */
interface SavedVariable {
  readonly shape: readonly number[];
  readonly dtype: FlatDtype;
  /** Whether training left it alone, so that it has no slots. Written only where it is so. */
  readonly isFrozen?: boolean | undefined;
  /** Its slots by name. Written only where they are not all of the checkpoint's, as float32 of the variable's shape. */
  readonly slots?: Readonly<Record<string, SavedSlot>> | undefined;
}

/** Contents of metadata.json, less the digest of itself. `files` has every other file of the checkpoint. */
export interface CheckpointMetadata {
  readonly version: (typeof CHECKPOINT_VERSIONS)[number];
  readonly experiment: string;
  readonly step: number;
  /** An ISO date and time. */
  readonly savedAt: string;
  readonly variables: Readonly<Record<string, SavedVariable>>;
  readonly slots: readonly string[];
  /** Whether training was sound at the save. Written only where it was not. */
  readonly isGood?: boolean | undefined;
  /** The best checkpoint of the run up to this one, where the run tracks a metric. */
  readonly best?: BestCheckpoint | undefined;
  readonly files: Readonly<Record<string, FileDigest>>;
}

/** Metadata of a checkpoint before its files are written. */
export type CheckpointDescription = Omit<CheckpointMetadata, 'files'>;

/** The slots that a checkpoint has of a variable, by name. */
export function slotsOf(
  { slots }: Pick<CheckpointMetadata, 'slots'>,
  { shape, isFrozen, slots: own }: SavedVariable,
): Readonly<Record<string, SavedSlot>> {
  if (own !== undefined || isFrozen) return own ?? {};
  return Object.fromEntries(slots.map((slot) => [slot, { shape, dtype: 'float32' }]));
}

/** The slots of each variable of a state, by path. */
function slotsByVariable({
  slotLayouts,
}: Pick<TrainState, 'slotLayouts'>): Map<string, Record<string, SavedSlot>> {
  const found = new Map<string, Record<string, SavedSlot>>();
  for (const [slot, { dtype, entries }] of Object.entries(slotLayouts))
    for (const { name, shape } of entries)
      found.set(name, { ...found.get(name), [slot]: { shape: [...shape], dtype } });
  return found;
}

export function describeState(
  state: Pick<TrainState, 'step' | 'layout' | 'changing' | 'slotLayouts'>,
  experiment: string,
  savedAt: Date,
  {
    isGood = true,
    best,
    hasChunks = false,
  }: Pick<CheckpointMetadata, 'isGood' | 'best'> & { readonly hasChunks?: boolean },
): CheckpointDescription {
  const changing = new Set(state.changing.entries.map(({ name }) => name));
  const slots = Object.keys(state.slotLayouts);
  const slotsOfState = slotsByVariable(state);
  const variables = state.layout.entries.map(({ name, shape, storage }): [string, SavedVariable] => {
    const isFrozen = !changing.has(name);
    const plain: SavedVariable = {
      ...{ shape: [...shape], dtype: storage ?? 'float32' },
      ...(isFrozen && { isFrozen }),
    };
    const own = slotsOfState.get(name) ?? {};
    const isPlain = JSON.stringify(own) === JSON.stringify(slotsOf({ slots }, plain));
    return [name, isPlain ? plain : { ...plain, slots: own }];
  });
  const hasOwnSlots = variables.some(([, variable]) => variable.slots !== undefined);
  const isNarrow =
    state.layout.entries.some(({ storage }) => storage !== undefined) ||
    Object.values(state.slotLayouts).some(({ dtype }) => !['float32', 'int8'].includes(dtype));
  return {
    version: hasChunks
      ? '1.4'
      : isNarrow
        ? '1.3'
        : hasOwnSlots
          ? '1.2'
          : changing.size < variables.length
            ? '1.1'
            : '1.0',
    experiment,
    step: state.step,
    savedAt: savedAt.toISOString(),
    variables: Object.fromEntries(variables),
    slots,
    ...(!isGood && { isGood }),
    ...(best && { best }),
  };
}

/** JSON texts of values that are saved beside the state, by file name; absent values have none. */
export function textsOf(values: Readonly<Record<string, unknown>>): Record<string, string> {
  const present = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(present.map(([name, value]) => [name, `${JSON.stringify(value)}\n`]));
}

/** The file's text; its last field is the SHA-256 of all the others. */
export function encodeMetadata(metadata: CheckpointMetadata): string {
  return `${JSON.stringify({ ...metadata, sha256: digestOfJson(metadata) }, null, 2)}\n`;
}

/** The problem of a file with a chunk that has not its digest. */
export const damagedChunk = (byteLength: number, index: number): string =>
  `damaged in the ${byteLength} bytes from ${index * byteLength} on`;

/** @throws CheckpointError of kind `broken` where a file is not the one in metadata.json. */
export function checkDigest(path: string, expected: FileDigest | undefined, found: FileDigest): void {
  if (expected === undefined) {
    throw new CheckpointError('broken', path, `${METADATA_FILE} does not name this file`);
  }
  if (found.byteLength !== expected.byteLength) {
    const what = found.byteLength < expected.byteLength ? 'truncated' : 'too long';
    const sizes = `expected ${expected.byteLength} bytes, found ${found.byteLength}`;
    throw new CheckpointError('broken', path, `${what}: ${sizes}`);
  }
  if (found.sha256 !== expected.sha256) {
    const { chunks } = expected;
    const damaged = chunks?.sha256.findIndex((sha256, i) => sha256 !== found.chunks?.sha256[i]) ?? -1;
    if (chunks !== undefined && damaged >= 0)
      throw new CheckpointError('broken', path, damagedChunk(chunks.byteLength, damaged));
    const digests = `expected sha256 ${expected.sha256}, found ${found.sha256}`;
    throw new CheckpointError('broken', path, `damaged: ${digests}`);
  }
}

export function digestOfBytes(bytes: Uint8Array): FileDigest {
  return { byteLength: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
}

export function digestOfJson(value: unknown): string {
  return digestOfBytes(Buffer.from(JSON.stringify(value))).sha256;
}
