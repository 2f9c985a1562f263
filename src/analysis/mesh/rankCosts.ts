/** @file Costs of a training on one device of a mesh: its memory by part, and its step. */

import type { BatchSpecs } from '../../inputs/index.js';
import { changingPart, slotBytes } from '../../learners/index.js';
import { variablesInParts } from '../../programs/index.js';
import type { Mesh, SingleTask } from '../../tasks/index.js';
import type { TrainingMemory } from '../analyze.js';
import { specBytes, withRows } from '../batchSpecs.js';
import { type DeviceStep, deviceStep } from './deviceStep.js';

/** Bytes of a float32, the type of variables and gradients. */
const FLOAT_BYTES = 4;

/** Costs of a device. */
export interface RankCosts {
  readonly step: DeviceStep;
  readonly memory: TrainingMemory;
  /** Bytes of variables, gradients and slots, which an update reads and writes. */
  readonly state: number;
}

/** Variables, gradients and slots alone are more than a device has. */
export class TooLarge extends Error {}

/**
 * Costs of a device's rows.
 *
 * @param batch specs of any number of rows.
 * @param rows of a global batch.
 * @param most bytes that a device has, and its name.
 * @throws TooLarge without planning the step; others as `deviceStep`.
 */
export function rankCosts(
  task: SingleTask,
  batch: BatchSpecs,
  mesh: Mesh,
  rows: number,
  { memoryBytes, name }: { readonly memoryBytes: number; readonly name: string },
): RankCosts {
  const own = mesh.localRows(rows);
  const layout = task.layout(undefined, variablesInParts(task, mesh.shards(task.variables, 0)));
  const held = {
    variables: FLOAT_BYTES * layout.size,
    gradients: FLOAT_BYTES * changingPart(layout).size,
    optimizer: slotBytes(task.slotLayouts(layout)),
  };
  const state = held.variables + held.gradients + held.optimizer;
  if (state > memoryBytes)
    throw new TooLarge(`variables, gradients and slots alone are more than ${name} has.`);
  const batches = withRows(batch, () => own);
  const step = deviceStep(task, batches, mesh, layout);
  const { arena, packed, scratch, constants } = step.memory;
  const parts = {
    ...held,
    batches: specBytes(batches),
    activations: arena,
    working: packed + scratch + constants,
  };
  const total = Object.values(parts).reduce((sum, part) => sum + part, 0);
  return { step, memory: { ...parts, total }, state };
}
