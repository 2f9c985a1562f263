/** @file Job directories that a command line names, at any depth. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { explain } from '../files/index.js';
import { UsageError } from '../system/text/index.js';

/** Files of a job directory, one of which makes a directory one. The directory of a sweep has none of them. */
const marks = ['status.json', 'experiment.json', 'metrics.jsonl', 'model_params.txt', 'checkpoints'];

/** The job directories at or below a directory; links to directories are not followed. */
function* jobDirectories(directory: string): Generator<string> {
  if (marks.some((name) => existsSync(join(directory, name)))) {
    yield directory;
    return;
  }
  for (const entry of readdirSync(directory, { withFileTypes: true }))
    if (entry.isDirectory() && !/^\.|^node_modules$/.test(entry.name))
      yield* jobDirectories(join(directory, entry.name));
}

function found(directory: string): string[] {
  try {
    return [...jobDirectories(directory)].sort();
  } catch (error) {
    throw new UsageError(
      `${directory}: expected a directory with runs, and it cannot be read: ${explain(error)}.`,
    );
  }
}

/** The job directories at or below directories, each once. @throws UsageError where there is none */
export function runsIn(given: readonly string[]): readonly string[] {
  const directories = [...new Set(given.flatMap(found))];
  if (directories.length === 0)
    throw new UsageError(`There is no run in ${given.join(', ')}: expected directories of luthier train.`);
  return directories;
}
