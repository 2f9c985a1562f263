/** @file Later checkpoints of a run that goes back to an earlier one: kept aside, with the metrics of their steps. */
import { copyFileSync, existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { listCheckpoints } from '../checkpoints/index.js';
import { explain, makeDirectory, syncDirectory, syncFile } from '../files/index.js';
import { checkpointDirectory, isOfOwnRun, JobError, type JobOptions } from '../runs/index.js';

/** The next free name: replaced_1, replaced_2, … */
function freeDirectory(jobLogDir: string): string {
  for (let count = 1; ; count++) {
    const directory = join(jobLogDir, `replaced_${count}`);
    if (!existsSync(directory)) return directory;
  }
}

/**
 * Where `--checkpoint` goes back to a step, moves the checkpoints after it to a directory of their own, which `--checkpoint` takes as a run, together with a copy
 * of metrics.jsonl, whose later lines training then removes. Killed in between, it loses nothing.
 *
 * @returns a line about it; none where there are no later checkpoints.
 * @throws JobError where they can't be moved
 */
export function setAside(options: JobOptions, step: number): string[] {
  const { jobLogDir, checkpoint } = options;
  if (!isOfOwnRun(checkpoint)) return [];
  const directory = checkpointDirectory(options);
  const later = [...listCheckpoints(directory)].filter(([at]) => at > step);
  if (later.length === 0) return [];
  const aside = freeDirectory(jobLogDir);
  const target = join(aside, 'checkpoints');
  try {
    makeDirectory(target);
    const metrics = join(jobLogDir, 'metrics.jsonl');
    if (existsSync(metrics)) {
      copyFileSync(metrics, join(aside, 'metrics.jsonl'));
      syncFile(join(aside, 'metrics.jsonl'));
    }
    for (const [, name] of later.reverse()) renameSync(join(directory, name), join(target, name));
    for (const each of [target, aside, directory]) syncDirectory(each);
  } catch (cause) {
    throw new JobError(
      `Going back to step ${step}: later checkpoints can't be moved to ${target}: ${explain(cause)}.`,
      { cause },
    );
  }
  const steps = later.map(([at]) => at).reverse();
  const kept =
    steps.length === 1
      ? `the checkpoint of step ${steps[0]} is`
      : `the checkpoints of steps ${steps.join(', ')} are`;
  return [`Going back to step ${step}: ${kept} kept in ${aside}.`];
}
