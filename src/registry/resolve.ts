/** @file Resolution of --exp to an experiment class (Pax's experiment_registry.py, without registration). */
import { join } from 'node:path';
import { type Experiment, isExperimentClass } from '../experiment/index.js';
import { importModule, isFieldName, untranslated } from '../hparams/index.js';
import { enterForeignCode } from '../system/index.js';
import { didYouMean, UsageError } from '../system/text/index.js';
import { experimentDirectories, extensions, isFile, showFile, showPlace } from './names/directories.js';
import type { FoundExperiment } from './names/index.js';
import { fullNameOf, suggestExperiment } from './names/suggest.js';

/** An experiment class with its canonical name and file. */
export interface ResolvedExperiment {
  readonly name: string;
  readonly file: string;
  readonly cls: new () => Experiment;
  /** File URL of the module with classes of its own, where that is not `file`; empty for none. */
  readonly moduleUrl?: string;
  /** All exports of the file, including fiddlers and sweeps. */
  readonly exports: Readonly<Record<string, unknown>>;
}

/** The file of a full name: experiments/lm.ts for lm.Small. */
function directFile(name: string, directories: readonly string[]): string | undefined {
  return filesOf(name, directories).find(isFile);
}

/** The files that a full name can be of. */
function filesOf(name: string, directories: readonly string[]): string[] {
  const parts = name.split('.');
  if (parts.length < 2 || parts.some((p) => !/^[\w$-]+$/.test(p))) return [];
  const stem = parts.slice(0, -1).join('/');
  return directories.flatMap((d) => extensions.map((e) => join(d, stem + e)));
}

/** Failure to load an experiment's module: a fault of the file, not of the name. */
export class ExperimentLoadError extends Error {
  override name = 'ExperimentLoadError';
}

async function load(name: string, file: string): Promise<ResolvedExperiment['exports']> {
  const done = enterForeignCode(name, 'loaded');
  try {
    return await importModule(file);
  } catch (cause) {
    const fix =
      (cause as NodeJS.ErrnoException).code === 'ERR_UNKNOWN_FILE_EXTENSION' ? ` ${untranslated}` : '';
    throw new ExperimentLoadError(`Experiment '${name}': ${showFile(file)} failed to load.${fix}`, { cause });
  } finally {
    done();
  }
}

async function notFound(name: string, why: string, directories: readonly string[]): Promise<UsageError> {
  const { scan } = await import('./names/discovery.js');
  const { experiments, unclassified, problems } = scan(directories);
  const open = unclassified.filter(({ exportName }) => exportName !== '*');
  const names = [...experiments.filter(({ abstract }) => !abstract), ...open].map((each) => each.name).sort();
  const meant = filesOf(name, directories);
  const unread = problems
    .filter(({ file }) => meant.includes(file))
    .map((each) => `${showPlace(each)} cannot be read: ${each.message}\n`);
  const near = suggestExperiment(name, names);
  return new UsageError(
    `Could not find experiment '${name}'${why}.${near === '' ? renamedHint(name, names) : near}\n` +
      `${unread.join('')}Experiments: ${listed(names, name)}.`,
  );
}

/** What keeps a name that no other is near, if it is a former one, in a file that is still there. */
function renamedHint(name: string, names: readonly string[]): string {
  const [family, exportName] = [name.slice(0, name.lastIndexOf('.') + 1), name.split('.').at(-1)!];
  const others = names.filter((each) => family !== '' && each.slice(0, each.lastIndexOf('.') + 1) === family);
  if (others.length === 0 || !isFieldName(exportName)) return '';
  const present = others.length === 1 ? others[0]!.split('.').at(-1)! : 'NEW_NAME';
  return ` If it was renamed, \`export { ${present} as ${exportName} };\` there keeps the old name.`;
}

/** Lists names; if there are many, only counts those of large files, except the file of `name`. */
function listed(names: readonly string[], name: string): string {
  if (names.length === 0) return 'none';
  if (names.length <= 20) return names.join(', ');
  const families = new Map<string, string[]>();
  for (const each of names) {
    const family = each.slice(0, each.lastIndexOf('.') + 1);
    families.set(family, [...(families.get(family) ?? []), each]);
  }
  const shown = [...families].map(([family, members]) =>
    members.length <= 4 || name.startsWith(family) ? members.join(', ') : `${members.length} in ${family}*`,
  );
  return `${shown.join(', ')} (npx luthier list shows them all)`;
}

/**
 * The experiment class called `name`: a full name (`lm.Small` is export Small of experiments/lm.ts) or any unique
 * dotted suffix. Imports only the class's file. `lm.Pair/small` is the sub-experiment `small` of lm.Pair.
 *
 * @throws UsageError with the available names if there is no such class or the suffix is ambiguous.
 * @throws ExperimentLoadError around the error of a file that fails to load.
 */
export async function resolveExperiment(
  name: string,
  directories: readonly string[] = experimentDirectories(),
): Promise<ResolvedExperiment> {
  const [whole, part] = name.split('/') as [string, string | undefined];
  const resolved = await resolveWhole(whole, directories);
  if (part === undefined) return resolved;
  const found = subExperimentsOf(resolved).find((each) => each.part === part);
  if (found !== undefined) return found.resolved;
  const parts = subExperimentsOf(resolved).flatMap((each) => (each.part === '' ? [] : [each.part]));
  throw new UsageError(
    `${resolved.name} has no sub-experiment '${part}'.${didYouMean(part, parts)} It has ${parts.join(', ') || 'none'}.`,
  );
}

/** The experiments that a run of `resolved` consists of: itself under the empty name, or its sub-experiments by theirs. */
export function subExperimentsOf(
  resolved: ResolvedExperiment,
): { readonly part: string; readonly resolved: ResolvedExperiment }[] {
  const parts = Object.entries((resolved.cls as unknown as typeof Experiment).subExperiments());
  return parts.map(([part, cls]) => ({
    part,
    resolved: {
      ...resolved,
      cls: cls as ResolvedExperiment['cls'],
      name: part === '' ? resolved.name : `${resolved.name}/${part}`,
    },
  }));
}

async function resolveWhole(name: string, directories: readonly string[]): Promise<ResolvedExperiment> {
  const direct = directFile(name, directories);
  if (direct) {
    const exportName = name.split('.').at(-1)!;
    const exports = await load(name, direct);
    const cls = exports[exportName];
    if (isExperimentClass(cls)) return { name, file: direct, cls, exports };
    const is =
      cls === undefined ? `exports no class '${exportName}'` : `'${exportName}' is no Experiment class`;
    throw await notFound(name, `: ${showFile(direct)} ${is}`, directories);
  }
  const { scan } = await import('./names/discovery.js');
  const { experiments, unclassified } = scan(directories);
  const named = (all: readonly Pick<FoundExperiment, 'name' | 'file' | 'exportName'>[]) => {
    const fullName = fullNameOf(
      name,
      all.map((each) => each.name),
    );
    return all.find((each) => each.name === fullName);
  };
  // Whether one of the others is an experiment, its file tells once it is loaded.
  const match = named(experiments.filter(({ abstract }) => !abstract)) ?? named(unclassified);
  if (!match) {
    const searched = directories.map(showFile).join(' and ');
    throw await notFound(name, ` (searched ${searched})`, directories);
  }
  const exports = await load(match.name, match.file);
  const cls = exports[match.exportName];
  if (!isExperimentClass(cls)) {
    throw await notFound(
      name,
      `: ${showFile(match.file)} '${match.exportName}' is no Experiment class`,
      directories,
    );
  }
  return { name: match.name, file: match.file, cls, exports };
}
