/** @file A trained run's record: experiment.json of its directory, with the configs of its task and datasets. */
import { existsSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { explain, readJsonFile } from '../files/index.js';
import { type Config, fromJSON, type JsonDocument, loadModules } from '../hparams/index.js';
import type { BaseInput } from '../inputs/index.js';
import { type ResolvedExperiment, resolveExperiment } from '../registry/index.js';
import { JobError, type JobOptions } from '../runs/index.js';
import { UsageError } from '../system/text/index.js';
import type { SingleTask } from '../tasks/index.js';

/** A run directory's record of its experiment. */
export interface RunDocument
  extends Pick<JobOptions, 'evalPrograms' | 'decodePrograms' | 'executor' | 'inputSpecsProvider'> {
  /** Full name of the experiment. */
  readonly name: string;
  /** Commit that it was trained at; null outside of a repository. */
  readonly gitRevision: string | null;
  readonly task: Config<SingleTask>;
  readonly datasets: readonly Config<BaseInput>[];
  readonly decodeDatasets: readonly Config<BaseInput>[];
  /** File URL of the experiment's module, where the configs have classes of its own. */
  readonly moduleUrl: string;
}

const schema = z.looseObject({
  name: z.string(),
  gitRevision: z.string().nullish(),
  /** Where the run was; records of before have none. */
  directory: z.string().optional(),
  config: z.looseObject({
    configs: z.array(z.looseObject({ class: z.string() })),
    modules: z.record(z.string(), z.array(z.string())).optional(),
  }),
});

function parse(directory: string, path: string): z.infer<typeof schema> {
  if (!existsSync(path)) {
    throw new JobError(
      `${directory}: expected the directory of a trained run, which has an experiment.json, and there is none. ` +
        'Give the --job_log_dir of luthier train.',
    );
  }
  try {
    const document = readJsonFile(path, schema);
    const { directory: before, config } = document;
    return before === undefined
      ? document
      : { ...document, config: moved(config, before, resolve(directory)) };
  } catch (cause) {
    throw new JobError(`${path}: not the record of a run (${explain(cause)}).`, { cause });
  }
}

/** A JSON value in which paths into a directory lead to another one. */
function moved<T>(value: T, from: string, to: string): T {
  const change = (part: unknown): unknown => {
    if (typeof part === 'string') return part.startsWith(from + sep) ? to + part.slice(from.length) : part;
    if (Array.isArray(part)) return part.map(change);
    if (typeof part !== 'object' || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([key, each]) => [key, change(each)]));
  };
  return from === to ? value : (change(value) as T);
}

/**
 * Reads the record of a run. Paths into its directory are those of where it is now. Classes outside of the library are imported: from the experiment's module, if it still
 * exists, then from the modules that the record lists.
 *
 * @param experiments directories to look for the experiment in; default: ./experiments, then the package's.
 * @throws JobError for a directory without a record; UsageError for a missing experiment whose classes no listed
 * module has; ConfigError for modules that can't be loaded, and configs that their classes don't accept.
 */
export async function readRunDocument(
  directory: string,
  experiments?: readonly string[],
): Promise<RunDocument> {
  const file = join(directory, 'experiment.json');
  const { name, gitRevision = null, config } = parse(directory, file);
  const { registerLibrary, rooms } = await import('../rooms.js');
  registerLibrary();
  const library = new Set(Object.values(rooms).flatMap((room) => Object.keys(room)));
  const isForeign =
    config.modules !== undefined || config.configs.some(({ class: cls }) => !library.has(cls));
  const module = isForeign ? await moduleOf(name, config.modules !== undefined, experiments) : undefined;
  const classes = await loadModules(config, {
    folders: [process.cwd(), ...(module === undefined ? [] : [dirname(module.file)])],
    file,
  });
  const read = fromJSON(config as unknown as JsonDocument, { classes });
  const { decodeDatasets = [], ...configs } = read as Pick<RunDocument, 'task' | 'datasets'> &
    Partial<Pick<RunDocument, 'decodeDatasets'>>;
  return {
    name,
    gitRevision,
    ...configs,
    decodeDatasets,
    moduleUrl: module ? pathToFileURL(module.file).href : '',
  };
}

/** The experiment of a run, imported. A record that lists its modules can do without it. */
async function moduleOf(
  name: string,
  hasModules: boolean,
  experiments: readonly string[] | undefined,
): Promise<ResolvedExperiment | undefined> {
  try {
    return await resolveExperiment(name, experiments);
  } catch (error) {
    if (hasModules && error instanceof UsageError) return undefined;
    throw error;
  }
}
