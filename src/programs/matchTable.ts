/** @file Table of what a checkpoint of other variables or slots gives to a model, and a dry run of restoring it. */
import { locateCheckpoint, matchTensors, readMetadata, type TensorMatch } from '../checkpoints/index.js';
import { isThere } from '../files/index.js';
import { build } from '../hparams/index.js';
import { checkpointDirectory, isOfOtherRun, isOfOwnRun, type JobOptions } from '../runs/index.js';
import { writeText } from '../system/index.js';
import { textTable } from '../system/text/index.js';

const RESULTS = {
  restored: 'restored',
  converted: 'restored, in another precision',
  initial: 'begins anew',
  dropped: 'left out',
} as const;

function tableOf(matches: readonly TensorMatch[]): string {
  const rows = matches.map(({ name, saved, model, outcome }) => [
    name,
    saved ?? '-',
    model ?? '-',
    RESULTS[outcome],
  ]);
  return textTable(rows, ['tensor', 'checkpoint', 'model', 'result']);
}

function sumOf(matches: readonly TensorMatch[]): string {
  const counts = Object.entries(RESULTS).flatMap(([outcome, result]) => {
    const count = matches.filter((match) => match.outcome === outcome).length;
    return count === 0 ? [] : [`${count} ${result}`];
  });
  return `Of ${matches.length} tensors: ${counts.join('; ')}.`;
}

/** Lines of the console: the number of tensors by their result, and a table of those that are not as they were saved. */
export function matchLines(matches: readonly TensorMatch[]): string[] {
  const changed = matches.filter(({ outcome }) => outcome !== 'restored');
  return [sumOf(matches), ...(changed.length > 0 ? [tableOf(changed)] : [])];
}

/**
 * Prints what `--restore_changed` would restore; nothing is written, and no memory of the model's size is taken.
 *
 * @throws CheckpointError where there is no checkpoint
 */
export function showRestore(options: JobOptions): void {
  const { checkpoint } = options;
  const directory = checkpointDirectory(options);
  const isOther = isOfOtherRun(checkpoint) && !isThere(directory);
  const path = isOther
    ? locateCheckpoint(checkpoint)
    : locateCheckpoint(directory, isOfOwnRun(checkpoint) ? checkpoint : undefined);
  const task = build(options.task);
  const layout = task.layout();
  const matches = matchTensors(readMetadata(path), {
    layout,
    slotLayouts: task.hp.train.hp.learner.slotLayouts(layout),
  });
  const isWhole = matches.every(({ outcome }) => outcome === 'restored');
  const needed = isWhole ? 'It fits as it is.' : 'Restoring it needs --restore_changed.';
  writeText(`${path}\n${tableOf(matches)}\n${sumOf(matches)} ${needed}\n`);
}
