/** @file Folders of a version of the project, and places relative to them. */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type {
  AnalysisDocument,
  ConfigEntry,
  ExperimentDocument,
  ExportsDocument,
  Failure,
  ResumedDocument,
} from './protocol.js';

/** A version of the project on disk. */
export interface Tree {
  /** Of the repository. */
  readonly root: string;
  /** The project's folder, which contains experiments/. */
  readonly project: string;
  /** The folder of the library that the experiments import. */
  readonly library: string;
  /** Of a worktree with the user's folders around it: the beginning of their paths. */
  readonly around?: string;
}

const own = realpathSync(fileURLToPath(new URL('../../..', import.meta.url))).replace(/\/$/, '');
const ownName = nameOf(own);

/** The project of `user` as it is in `root`: in the user's repository, or in a worktree of it. */
export function treeAt(root: string, user: { readonly root: string; readonly project: string }): Tree {
  const project = join(root, relative(user.root, user.project));
  const isAround = root !== user.root && root.endsWith(user.root);
  return {
    ...{ root, project, ...(isAround && { around: root.slice(0, -user.root.length) }) },
    library: libraryAbove(project) ?? installed(project) ?? inRoot(root, user.root),
  };
}

function nameOf(folder: string): unknown {
  try {
    return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name?: unknown }).name;
  } catch {
    return undefined;
  }
}

/** The library, where the project is part of it. */
function libraryAbove(project: string): string | undefined {
  for (let folder = project; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json')) && nameOf(folder) === ownName) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

/** The library among the project's packages. */
function installed(project: string): string | undefined {
  try {
    return libraryAbove(
      dirname(realpathSync(createRequire(join(project, 'package.json')).resolve(String(ownName)))),
    );
  } catch {
    return undefined;
  }
}

/** The library that this process runs, or its counterpart where it is in the repository. */
function inRoot(root: string, user: string): string {
  const inside = relative(user, own);
  return inside.startsWith('..') || !existsSync(join(root, inside)) ? own : join(root, inside);
}

/** A document with places relative to the project, those in the library from `luthier/`. */
export function tidiedDocument(document: ExperimentDocument, tree: Tree): ExperimentDocument {
  if ('error' in document) return { ...document, error: tidiedFailure(document.error, tree) };
  const entry = (each: ConfigEntry): ConfigEntry => {
    const places = Object.entries(each.places).map(([name, place]) => [name, tidyPlace(place, tree)]);
    return { ...each, places: Object.fromEntries(places) as ConfigEntry['places'] };
  };
  const { config } = document;
  return { ...document, config: { ...config, configs: config.configs.map(entry) } };
}

/** As `tidiedDocument`, of an analysis. */
export function tidiedAnalysis(document: AnalysisDocument, tree: Tree): AnalysisDocument {
  if (!('notAnalysed' in document)) return document;
  return { ...document, notAnalysed: tidiedFailure(document.notAnalysed, tree) };
}

/** As `tidiedDocument`, of a module's exports. */
export function tidiedExports(document: ExportsDocument, tree: Tree): ExportsDocument {
  return 'error' in document ? { ...document, error: tidiedFailure(document.error, tree) } : document;
}

/** As `tidiedDocument`, of an answer about checkpoints. */
export function tidiedResumption(document: ResumedDocument, tree: Tree): ResumedDocument {
  if (!('resumed' in document)) return document;
  const { resumed } = document;
  return {
    ...document,
    resumed:
      'refused' in resumed
        ? { ...resumed, refused: tidiedText(resumed.refused, tree) }
        : {
            ...resumed,
            differences: resumed.differences.map(({ what, text }) => ({
              what,
              text: tidiedText(text, tree),
            })),
          },
  };
}

const tidiedText = (text: string, { library, project, root }: Tree): string =>
  text.replaceAll(`${project}/`, '').replaceAll(`${root}/`, '').replaceAll(`${library}/`, 'luthier/');

function tidiedFailure({ message, place }: Failure, tree: Tree): Failure {
  const tidied = tidiedText(message, tree);
  return place === undefined ? { message: tidied } : { message: tidied, place: tidyPlace(place, tree) };
}

/** `file:line` from the project's folder; a flag's text is left as it is. */
export function tidyPlace(place: string, { root, project, library }: Tree): string {
  const isApart = library !== root && !library.startsWith(`${root}/`);
  if (isApart && place.startsWith(`${library}/`)) return `luthier${place.slice(library.length)}`;
  const file = isAbsolute(place) ? relative(project, place) : place;
  return file.replace(/^(?:\.\.\/)*node_modules\/luthier\//, 'luthier/');
}
