/** @file Names that experiments had in the old version: of classes that were renamed, and of files that were moved. */
import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { extensions, type FoundExperiment } from '../../registry/names/index.js';
import type { Former } from '../reports/diffReport.js';
import { movedFiles, type Repository } from './gitQueries.js';
import { type ExperimentDocument, made } from './protocol.js';
import type { Sources } from './sources.js';
import type { Tree } from './versionTree.js';

type Documents = ReadonlyMap<string, ExperimentDocument>;

/** Declarations of two versions, and the evaluated experiments. */
export interface NamedVersions {
  readonly old: { readonly sources: Sources; readonly documents: Documents };
  readonly now: { readonly sources: Sources; readonly documents: Documents };
}

/** An experiment that came, and one that went and may be the same. */
interface Match {
  readonly was: FoundExperiment;
  readonly is: FoundExperiment;
  readonly evidence: Former['evidence'];
  /** Strength of the evidence. */
  readonly weight: number;
}

/**
 * Former names of experiments by their present ones. A class with two names is one experiment, and so are a class and one
 * that extends it and adds nothing. A name that went and one that came are one experiment's where the configs are equal, or
 * where git takes their files for one and the classes have one name. Of several that are as likely as each other, none is
 * told.
 *
 * @param moved files that git takes for moved, and where each is now.
 */
export function formerNames(
  versions: NamedVersions,
  moved: ReadonlyMap<string, string>,
): Map<string, Former> {
  const { old, now } = versions;
  const [before, after] = [old.sources.experiments, now.sources.experiments];
  const come = [...now.documents.keys()].filter((name) => !before.has(name)).map((name) => after.get(name)!);
  const gone = [...old.documents.keys()].filter((name) => !after.has(name)).map((name) => before.get(name)!);
  const kept = [...after.values()].filter(({ name }) => old.documents.has(name));
  const [oldContents, newContents] = [
    contentsOf(gone, old.documents),
    contentsOf([...come, ...kept], now.documents),
  ];
  const isAlias = (one: FoundExperiment, other: FoundExperiment): boolean =>
    extendsOnly(one, other) && newContents.has(one) && newContents.get(one) === newContents.get(other);
  const shared = come.flatMap((is): Match[] => {
    const same = kept.find(
      ({ place, declared }) =>
        place.file === is.place.file && place.line === is.place.line && declared === is.declared,
    );
    const other = same ?? kept.find((each) => isAlias(is, each) || isAlias(each, is));
    if (other === undefined) return [];
    return [{ was: before.get(other.name)!, is, evidence: [same ? 'class' : 'configs'], weight: 0 }];
  });
  const matches = come
    .filter((is) => !shared.some((match) => match.is === is))
    .flatMap((is) =>
      gone.flatMap((was): Match[] => {
        const isFile = moved.get(was.file) === is.file;
        const isNamesake = was.exportName === is.exportName;
        const content = newContents.get(is);
        const evidence = [
          ...(isFile && isNamesake ? (['file'] as const) : []),
          ...(content !== undefined && content === oldContents.get(was) ? (['configs'] as const) : []),
        ];
        const weight = 4 * evidence.length + 2 * Number(isNamesake) + Number(isFile);
        return evidence.length === 0 ? [] : [{ was, is, evidence, weight }];
      }),
    );
  const found = [...shared, ...matches.filter((match) => isBest(match, matches))];
  return new Map(found.map((match) => [match.is.name, formerOf(match, versions)]));
}

/** Whether a class extends another experiment and adds nothing: `class Small extends Tiny {}`. */
export function extendsOnly({ base, constants, abstract }: FoundExperiment, other: FoundExperiment): boolean {
  return base === other.exportName && constants.length === 0 && !abstract;
}

/** Files of experiments that git takes for moved: where each is now. */
export function movedExperiments(repository: Repository, old: Tree, now: Tree): Map<string, string> {
  const foldersOf = ({ project, library }: Tree) =>
    [project, library].map((each) => join(each, 'experiments'));
  const to = foldersOf(now);
  return new Map(foldersOf(old).flatMap((from, i) => [...movedFiles(repository, from, to[i]!)]));
}

/** Whether no other match of either experiment has as strong evidence. */
function isBest(match: Match, matches: readonly Match[]): boolean {
  const rivals = matches.filter((each) => each !== match && (each.was === match.was || each.is === match.is));
  return rivals.every(({ weight }) => weight < match.weight);
}

/** The contents of configs and constants, without places; for experiments that have some. */
function contentsOf(
  experiments: readonly FoundExperiment[],
  documents: Documents,
): Map<FoundExperiment, string> {
  return new Map(
    experiments.flatMap((found): [FoundExperiment, string][] => {
      const experiment = made(documents.get(found.name));
      if (experiment === undefined) return [];
      const configs = experiment.config.configs.map(({ class: cls, kind, values }) => [cls, kind, values]);
      const constants = experiment.constants.map(({ name, value }) => [name, value]);
      return [[found, JSON.stringify([experiment.config.root, configs, constants])]];
    }),
  );
}

function formerOf({ was, is, evidence }: Match, { old, now }: NamedVersions): Former {
  return { evidence, ...renameOf(was, is, old.sources, now.sources) };
}

/** A rename of an experiment, by source text. */
export function renameOf(
  was: FoundExperiment,
  is: FoundExperiment,
  old: Sources,
  now: Sources,
): Omit<Former, 'evidence'> {
  const oldFile = relative(old.tree.project, was.file);
  const newFile = relative(now.tree.project, is.file);
  const leadsTo = leadingTo(was.name, oldFile, now);
  return {
    name: was.name,
    oldFile,
    newFile,
    ...(leadsTo === undefined ? {} : { leadsTo }),
    alias: aliasOf([was.exportName, oldFile], [is.exportName, newFile]),
  };
}

/** The experiment that `--exp` takes the name of one in `file` for. */
export function leadingTo(name: string, file: string, { experiments, tree }: Sources): string | undefined {
  if (experiments.has(name)) return name;
  // Where there is a file of that name, it is the one that is meant.
  const stem = join(tree.project, file).replace(/\.[cm]?[jt]s$/, '');
  if (extensions.some((extension) => existsSync(stem + extension))) return undefined;
  const longer = [...experiments.keys()].filter((each) => each.endsWith(`.${name}`));
  return longer.length === 1 ? longer[0] : undefined;
}

type Export = readonly [name: string, file: string];

/** The statement that keeps an old name, in its file. */
function aliasOf([oldName, oldFile]: Export, [newName, newFile]: Export): string {
  const name = oldName === newName ? newName : `${newName} as ${oldName}`;
  if (oldFile === newFile) return `export { ${name} };`;
  const path = relative(dirname(oldFile), newFile).replace(/\.([cm]?)[jt]s$/, '.$1js');
  return `export { ${name} } from '${path.startsWith('.') ? path : `./${path}`}';`;
}

/** Without names that went, where the experiment has another one now. */
export function withPresentNames(
  names: readonly string[],
  formers: ReadonlyMap<string, Former>,
  news: ReadonlyMap<string, ExperimentDocument>,
): string[] {
  const gone = new Set([...formers.values()].map(({ name }) => name).filter((name) => !news.has(name)));
  return names.filter((name) => !gone.has(name));
}
