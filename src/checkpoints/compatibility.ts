/**
 * @file Compatibility of a checkpoint with a model: its writer, its variables and their slots, each difference a line. Decided by
 * descriptions alone, so that reviews ask the same code as jobs do.
 */

import { basename } from 'node:path';
import { shellWord } from '../system/text/index.js';
import { CheckpointError } from './checkpointErrors.js';
import { stepOfName } from './directory.js';
import { type CheckpointDescription, slotsOf } from './metadata.js';
import { fileSpec, formatPlace, type TrainState } from './trainState.js';

/** Places of a model's variables and slots. */
export type StateLayouts = Pick<TrainState, 'layout' | 'slotLayouts'>;

/** Parts of a state that a checkpoint is to fill. */
export interface WantedParts {
  /** Whether to leave optimizer slots out, as evaluation and decoding do; a slot's name: its values become the parameters. */
  readonly paramsOnly?: boolean | string | undefined;
  /** Slots that the state or the checkpoint may lack. */
  readonly optionalSlots?: readonly string[] | undefined;
}

/** Optional slots that one of state and checkpoint has alone. */
interface SlotChanges {
  /** Those of the state, which are left as they are. */
  readonly slotsAdded: readonly string[];
  /** Those of the checkpoint. */
  readonly slotsDropped: readonly string[];
}

/** What becomes of a state that a checkpoint fills. */
export interface RestorePlan extends SlotChanges {
  /** Variables whose slots are not in the checkpoint, since they were not trained; theirs are left as they are. */
  readonly withoutSlots: readonly string[];
}

/**
 * How a checkpoint fills a state.
 *
 * @param directory of the checkpoint, for errors. @param experiment that must have written it; undefined accepts any.
 * @throws CheckpointError where it can't, with every difference
 */
export function planRestore(
  directory: string,
  metadata: CheckpointDescription,
  state: StateLayouts,
  { experiment, ...wanted }: WantedParts & { readonly experiment?: string | undefined },
): RestorePlan {
  checkIdentity(directory, metadata, experiment);
  const changes = checkCompatible(directory, metadata, state, wanted);
  const trained = (wanted.paramsOnly ?? false) === false ? Object.entries(state.slotLayouts) : [];
  const withoutSlots = trained
    .filter(([slot]) => !changes.slotsAdded.includes(slot))
    .flatMap(([slot, { entries }]) =>
      entries.flatMap(({ name }) =>
        slotsOf(metadata, metadata.variables[name]!)[slot] === undefined ? [name] : [],
      ),
    );
  return { ...changes, withoutSlots: [...new Set(withoutSlots)] };
}

/** @throws CheckpointError where the checkpoint is of another step than its name says, or of another experiment */
export function checkIdentity(
  directory: string,
  metadata: CheckpointDescription,
  experiment: string | undefined,
): void {
  const named = stepOfName(basename(directory));
  if (named !== undefined && named !== metadata.step) {
    throw new CheckpointError(
      'broken',
      directory,
      `the directory names step ${named}, the state in it step ${metadata.step}`,
    );
  }
  if (experiment !== undefined && metadata.experiment !== experiment) {
    throw new CheckpointError(
      'mismatch',
      directory,
      `written by experiment '${metadata.experiment}', not by '${experiment}'; use another --job_log_dir for this one, ` +
        `or, if it was renamed, keep the old name: ${keptBy(metadata.experiment, experiment)}`,
    );
  }
}

/** What keeps the former name of an experiment, for its runs: `export { Tiny as Small } and --exp=lm.Small`. */
function keptBy(former: string, present: string): string {
  const [was, is] = [former, present].map((name) => name.split('/')[0]!.split('.').at(-1)!);
  return `export { ${was === is ? is : `${is} as ${was}`} } where it was, and --exp=${shellWord(former)}`;
}

/** @throws CheckpointError with every difference between the checkpoint and the state that keeps it from being filled */
function checkCompatible(
  directory: string,
  metadata: CheckpointDescription,
  state: StateLayouts,
  { paramsOnly = false, optionalSlots = [] }: WantedParts,
): SlotChanges {
  const trains = paramsOnly === false;
  const slot = typeof paramsOnly === 'string' ? paramsOnly : null;
  const [saved, ours] = trains
    ? [savedSlotNames(metadata, state), Object.keys(state.slotLayouts)]
    : [metadata.slots.filter((name) => name === slot), slot === null ? [] : [slot]];
  const slotsAdded = optionalSlots.filter((name) => ours.includes(name) && !saved.includes(name));
  const slotsDropped = optionalSlots.filter((name) => saved.includes(name) && !ours.includes(name));
  const differences = [
    ...compareVariables(metadata, state),
    ...compareSlots([...saved, ...slotsAdded], [...ours, ...slotsDropped]),
  ];
  if (trains && differences.length === 0)
    differences.push(...compareSlotsOfVariables(metadata, state, optionalSlots));
  if (differences.length > 0) throw differencesError(directory, differences, trains);
  return { slotsAdded, slotsDropped };
}

/** Every difference between a checkpoint's variables and a model's, a line each. */
function compareVariables(metadata: CheckpointDescription, state: StateLayouts): string[] {
  const lines: string[] = [];
  const ours = new Map(state.layout.entries.map((entry) => [entry.name, entry]));
  for (const [name, { shape, storage = 'float32' }] of ours) {
    const { shape: saved, dtype } = metadata.variables[name] ?? {};
    if (saved === undefined) lines.push(`variable '${name}' [${shape.join(', ')}] is only in the model`);
    else if (saved.length !== shape.length || saved.some((size, axis) => size !== shape[axis])) {
      lines.push(
        `variable '${name}' is [${saved.join(', ')}] in the checkpoint, [${shape.join(', ')}] in the model`,
      );
    } else if (dtype !== storage) {
      lines.push(`variable '${name}' is ${dtype} in the checkpoint, ${storage} in the model`);
    }
  }
  for (const [name, { shape }] of Object.entries(metadata.variables)) {
    if (!ours.has(name)) lines.push(`variable '${name}' [${shape.join(', ')}] is only in the checkpoint`);
  }
  return lines;
}

function compareSlots(saved: readonly string[], ours: readonly string[]): string[] {
  const missing = ours.filter((slot) => !saved.includes(slot));
  const foreign = saved.filter((slot) => !ours.includes(slot));
  return [
    ...missing.map((slot) => `optimizer slot '${slot}' is only in the model`),
    ...foreign.map((slot) => `optimizer slot '${slot}' is only in the checkpoint`),
  ];
}

/** Names of the slots that a variable of the checkpoint has; those of the state where the checkpoint has not been trained. */
function savedSlotNames(metadata: CheckpointDescription, state: StateLayouts): string[] {
  if (Object.values(metadata.variables).every(({ isFrozen }) => isFrozen))
    return Object.keys(state.slotLayouts);
  const found = new Set(
    Object.values(metadata.variables).flatMap((each) => Object.keys(slotsOf(metadata, each))),
  );
  return metadata.slots.filter((slot) => found.has(slot));
}

/**
 * Every difference between the slots that variables have in a checkpoint and in a model, a line each. Variables that were
 * not trained before, or are not now, may have any.
 */
function compareSlotsOfVariables(
  metadata: CheckpointDescription,
  state: StateLayouts,
  optionalSlots: readonly string[],
): string[] {
  const ours = new Map<string, Map<string, string>>();
  for (const [slot, { dtype, entries }] of Object.entries(state.slotLayouts)) {
    if (optionalSlots.includes(slot)) continue;
    for (const { name, shape } of entries) {
      const slots = ours.get(name) ?? new Map<string, string>();
      ours.set(name, slots.set(slot, formatPlace(fileSpec({ dtype, shape }))));
    }
  }
  const lines: string[] = [];
  for (const [variable, slots] of ours) {
    const saved = new Map(
      Object.entries(slotsOf(metadata, metadata.variables[variable]!))
        .filter(([slot]) => !optionalSlots.includes(slot))
        .map(([slot, spec]) => [slot, formatPlace(fileSpec(spec))]),
    );
    if (saved.size === 0) continue;
    for (const slot of new Set([...slots.keys(), ...saved.keys()])) {
      const [theirs, own] = [saved.get(slot), slots.get(slot)];
      const name = `slot '${slot}' of '${variable}'`;
      if (theirs === undefined) lines.push(`${name} is only in the model`);
      else if (own === undefined) lines.push(`${name} is only in the checkpoint`);
      else if (theirs !== own) lines.push(`${name} is ${theirs} in the checkpoint, ${own} in the model`);
    }
  }
  return lines;
}

function differencesError(
  directory: string,
  differences: readonly string[],
  trains: boolean,
): CheckpointError {
  const count = differences.length === 1 ? '1 difference' : `${differences.length} differences`;
  const list = differences.map((line) => `\n  ${line}`).join('');
  const partly = trains
    ? ' Training restores what fits with --restore_changed; --restore_changed=dry_run shows what that is.'
    : '';
  const advice = `\nUse another --job_log_dir, or the settings that the checkpoint was trained with.${partly}`;
  return new CheckpointError(
    'mismatch',
    directory,
    `not compatible with this model, ${count}:${list}${advice}`,
  );
}
