/** @file A trained run's record: experiment.json of its directory, with the configs of its task and datasets. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { explain, readRegularFile } from '../files/index.js';
import { type Config, fromJSON, type JsonDocument } from '../hparams/index.js';
import type { BaseInput } from '../inputs/index.js';
import { JobError } from '../programs/jobErrors.js';
import { type ResolvedExperiment, resolveExperiment } from '../registry/index.js';
import type { SingleTask } from '../tasks/index.js';

/** What the directory of a run says of its experiment. */
export interface RunDocument {
  /** Full name of the experiment. */
  readonly name: string;
  /** Commit that it was trained at; null outside of a repository. */
  readonly gitRevision: string | null;
  readonly task: Config<SingleTask>;
  readonly datasets: readonly Config<BaseInput>[];
  /** File URL of the experiment's module, where the configs have classes of its own. */
  readonly moduleUrl: string;
}

const schema = z.looseObject({
  name: z.string(),
  gitRevision: z.string().nullish(),
  config: z.looseObject({ configs: z.array(z.looseObject({ class: z.string() })) }),
});

function parse(directory: string, path: string): z.infer<typeof schema> {
  if (!existsSync(path)) {
    throw new JobError(
      `${directory}: expected the directory of a trained run, which has an experiment.json, and there is none. ` +
        'Give the --job_log_dir of luthier train.',
    );
  }
  try {
    return schema.parse(JSON.parse(readRegularFile(path).toString()));
  } catch (cause) {
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : explain(cause);
    throw new JobError(`${path}: not the record of a run (${reason}).`, { cause });
  }
}

/**
 * Reads the record of a run. Its experiment's module is imported where the configs name classes that the library lacks.
 *
 * @param experiments directories to look for the module in; default: ./experiments, then the package's.
 * @throws JobError for a directory without a record; UsageError for an experiment that isn't there; ConfigError for
 *   configs that its classes don't take.
 */
export async function readRunDocument(
  directory: string,
  experiments?: readonly string[],
): Promise<RunDocument> {
  const { name, gitRevision = null, config } = parse(directory, join(directory, 'experiment.json'));
  const { registerLibrary, rooms } = await import('../rooms.js');
  registerLibrary();
  const library = new Set(Object.values(rooms).flatMap((room) => Object.keys(room)));
  const foreign = config.configs.some(({ class: cls }) => !library.has(cls));
  const module: ResolvedExperiment | undefined = foreign
    ? await resolveExperiment(name, experiments)
    : undefined;
  const configs = fromJSON(config as unknown as JsonDocument) as Pick<RunDocument, 'task' | 'datasets'>;
  return { name, gitRevision, ...configs, moduleUrl: module ? pathToFileURL(module.file).href : '' };
}
