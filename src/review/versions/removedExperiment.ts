/** @file Description of an experiment that the working tree has no more: its source text, and the last commit that changed it. */
import { relative } from 'node:path';
import type { Description } from '../reports/diffReport.js';
import { leadingTo } from './formerNames.js';
import { type Base, lastCommitOf, type Repository } from './gitQueries.js';
import type { Sources } from './sources.js';
import { tidyPlace } from './versionTree.js';

/** Description of an experiment from the sources of the old version, and the present meaning of its name. */
export function descriptionOf(
  name: string,
  { old, now }: { readonly old: Sources; readonly now: Sources },
  repository: Repository,
  { commit }: Base,
): Description {
  const { tree } = old;
  const { base, description, file, place } = old.experiments.get(name)!;
  const lastCommit = lastCommitOf(repository, commit, { ...place, file: relative(tree.root, place.file) });
  const leadsTo = leadingTo(name, relative(tree.project, file), now);
  return {
    base,
    place: tidyPlace(`${place.file}:${place.line}`, tree),
    description,
    ...(lastCommit === undefined ? {} : { lastCommit }),
    ...(leadsTo === undefined ? {} : { leadsTo }),
  };
}
