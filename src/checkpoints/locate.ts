/** @file The checkpoint that a path and a step mean. */
import { basename, dirname, join, resolve } from 'node:path';
import { isThere } from '../files/index.js';
import { readMetadata } from './checkedFiles.js';
import { CheckpointError } from './checkpointErrors.js';
import { listCheckpoints, noCheckpointsError, stepOfName } from './directory.js';
import { METADATA_FILE } from './metadata.js';
import { holdsWeights } from './weightFiles.js';

/**
 * The step of a checkpoint among those of a directory.
 *
 * @param found checkpoints by step, as `listCheckpoints` gives them; not empty.
 * @throws CheckpointError of kind `missing`
 */
export function stepOf(
  directory: string,
  found: ReadonlyMap<number, string>,
  wanted: number | 'best',
): number {
  const step = wanted === 'best' ? bestOf(directory, found) : wanted;
  if (found.has(step)) return step;
  const problem = `no checkpoint for step ${step}; there are checkpoints for steps ${[...found.keys()].join(', ')}`;
  throw new CheckpointError('missing', directory, problem);
}

/** The best step, by the newest checkpoint that names one. */
function bestOf(directory: string, found: ReadonlyMap<number, string>): number {
  for (const name of [...found.values()].reverse()) {
    const { best } = readMetadata(join(directory, name));
    if (best !== undefined) return best.step;
  }
  const problem = 'there is no best checkpoint: the run did not track a metric (task.train.trackMetric)';
  throw new CheckpointError('missing', directory, problem);
}

/**
 * The directory of one checkpoint.
 *
 * @param path a run's directory, its directory of checkpoints, either with `/STEP` or `/best` behind, or one checkpoint.
 * @param wanted a step, or the best; undefined is the newest. A path of one checkpoint takes none.
 * @throws CheckpointError of kind `missing`
 */
export function locateCheckpoint(path: string, wanted?: number | 'best'): string {
  if (stepOfName(basename(resolve(path))) !== undefined && isThere(join(path, METADATA_FILE))) {
    if (wanted === undefined) return path;
    throw new CheckpointError('missing', path, `it is one checkpoint and has no step ${wanted} to choose`);
  }
  const last = basename(path);
  const named = last === 'best' ? last : stepOfName(last);
  if (named !== undefined && wanted === undefined && !isThere(path))
    return locateCheckpoint(dirname(path), named);
  if (holdsWeights(path)) {
    const problem =
      'it is neither a run nor a checkpoint; if it has weights, train.initFromCheckpoint starts from them';
    throw new CheckpointError('missing', path, problem);
  }
  const inRun = join(path, 'checkpoints');
  const directory = isThere(inRun) ? inRun : path;
  const found = listCheckpoints(directory);
  if (found.size === 0) throw noCheckpointsError(directory);
  const step = wanted === undefined ? [...found.keys()].at(-1)! : stepOf(directory, found, wanted);
  return join(directory, found.get(step)!);
}
