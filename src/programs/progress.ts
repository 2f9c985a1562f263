/** @file What a checkpoint keeps besides state and input, so that a run that goes on tells what an undisturbed one does. */
import { z } from 'zod';
import type { SaveOptions } from '../checkpoints/index.js';
import type { InputState } from '../inputs/index.js';
import { JobError } from './errors.js';
import type { Evaluations } from './evaluations.js';
import { meterState, type TrainMeter } from './trainMeter.js';
import type { TrainProgram } from './trainProgram.js';

const inputState = z.custom<InputState>((state) => typeof state === 'object' && state !== null);

const schema = z.strictObject({
  meter: meterState,
  /** Where evaluations are that go on through their data, by name. */
  positions: z.record(
    z.string(),
    z.strictObject({ step: z.int(), from: inputState.nullable(), to: inputState }),
  ),
  /** Evaluations and decodes of the step that had yet to run. */
  pending: z.array(z.string()),
});

/** `progress.json` of a checkpoint. */
export type Progress = z.output<typeof schema>;

interface Parts {
  readonly program: TrainProgram;
  readonly meter: TrainMeter;
  readonly evaluations: Evaluations;
}

/** What to save with the state of the present step. */
export function savedWith({ program, meter, evaluations }: Parts): SaveOptions {
  const progress: z.input<typeof schema> = {
    meter: meter.state(),
    positions: evaluations.positions(),
    pending: [...evaluations.pending],
  };
  return { inputState: program.inputState, isGood: meter.invalidInARow === 0, progress };
}

/** The progress in a checkpoint, undefined in one that has none. @throws JobError where it is of another version */
export function readProgress(saved: unknown, path: string): Progress | undefined {
  if (saved === null || saved === undefined) return undefined;
  const parsed = schema.safeParse(saved);
  if (parsed.success) return parsed.data;
  throw new JobError(
    `${path}: progress.json is not of this version of Luthier: ${z.prettifyError(parsed.error)}`,
  );
}
