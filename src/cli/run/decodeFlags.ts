/** @file Flags of the modes that read checkpoints once: which ones, and evaluations beside decodes. */
import { join } from 'node:path';
import { UsageError } from '../../system/text/index.js';
import { type FlagTable, nonEmpty } from '../commandLine/flagTable.js';
import type { Mode } from '../commandLine/modes.js';

/** Flags of the decode modes, as parsed. */
export interface DecodeFlags {
  readonly restoreCheckpointDir?: string;
  readonly restoreCheckpointSteps?: readonly number[];
  readonly evalDuringDecode: boolean;
}

function stepOf(text: string, flag: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageError(`${flag}: expected the step of a checkpoint; got '${text}'.`);
}

export const decodeFlags = {
  restore_checkpoint_dir: {
    key: 'restoreCheckpointDir',
    value: 'DIR',
    about:
      'For the decode modes and infer: reads the newest checkpoint of this run or directory of checkpoints, and writes to ' +
      '--job_log_dir.',
    parse: nonEmpty,
  },
  restore_checkpoint_step: {
    key: 'restoreCheckpointSteps',
    value: 'STEP',
    repeated: true,
    about:
      'For the decode modes and infer: reads the checkpoint of this step. May be repeated: one after the other.',
    parse: stepOf,
  },
  eval_during_decode: {
    key: 'evalDuringDecode',
    about: 'For the decode modes: also evaluates the datasets of --mode=eval, with the same checkpoint.',
    parse: () => true,
  },
} satisfies FlagTable;

/** @throws UsageError for a flag of the decode modes in another mode, or beside `--checkpoint`. */
export function checkDecodeFlags(
  { restoreCheckpointDir, restoreCheckpointSteps, evalDuringDecode }: DecodeFlags,
  { mode, checkpoint }: { readonly mode: Mode; readonly checkpoint?: number | string },
): void {
  const [given] = [
    ...(restoreCheckpointDir === undefined ? [] : [`--restore_checkpoint_dir=${restoreCheckpointDir}`]),
    ...(restoreCheckpointSteps ?? []).map((step) => `--restore_checkpoint_step=${step}`),
    ...(evalDuringDecode ? ['--eval_during_decode'] : []),
  ];
  if (given === undefined) return;
  const evaluates = given.startsWith('--eval');
  if (mode !== 'decode' && mode !== 'decode_once' && (evaluates || mode !== 'infer'))
    throw new UsageError(
      evaluates
        ? `${given}: only for --mode=decode_once and --mode=decode. Use --mode=eval or --mode=train_and_eval.`
        : `${given}: only for --mode=decode_once, --mode=decode and --mode=infer. Use --checkpoint=STEP or --checkpoint=PATH.`,
    );
  if (checkpoint !== undefined && !evaluates)
    throw new UsageError(`${given} and --checkpoint=${checkpoint} name the checkpoint twice: leave one out.`);
}

/** The checkpoints that a command reads, one after the other, each as `--checkpoint` takes it; undefined is the default. */
export function checkpointsOf({
  checkpoint,
  restoreCheckpointDir: directory,
  restoreCheckpointSteps: steps = [],
}: Pick<DecodeFlags, 'restoreCheckpointDir' | 'restoreCheckpointSteps'> & {
  readonly checkpoint?: number | string;
}): readonly (number | string | undefined)[] {
  if (directory === undefined) return steps.length === 0 ? [checkpoint] : steps;
  // A folder called best is none of the run's.
  if (steps.length === 0) return [directory === 'best' ? './best' : directory];
  return steps.map((step) => join(directory, String(step)));
}
