/** @file Comparison of the working tree with a git revision. */
import { realpathSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Device } from '../analysis/index.js';
import type { Override } from '../cli/index.js';
import { requiredName } from '../registry/names/index.js';
import { notesOf } from './changes/comparisonNotes.js';
import { deviceFor, onDevice } from './changes/deviceEffects.js';
import { givenConstants } from './changes/givenConstants.js';
import { outcomesOf, type Versions } from './outcomesOfVersions.js';
import type { DiffReport } from './reports/diffReport.js';
import { settingsOfBase } from './settings.js';
import { AnswerCache, type KeptAnswers } from './versions/answerCache.js';
import { Evaluator, evaluatorDigest, type Limits } from './versions/evaluators.js';
import { cleanCommit, findBase, repositoryOf } from './versions/gitQueries.js';
import { changedFiles, lackingIn, lookedFor, missingPackages } from './versions/heldApart.js';
import { loadExperiments } from './versions/loadedExperiments.js';
import { packagesOfBase, withOwnPackages } from './versions/ownPackages.js';
import type { Change } from './versions/protocol.js';
import { ChangedFiles, unrecordedContents } from './versions/reach.js';
import { Sources } from './versions/sources.js';
import { type Tree, treeAt } from './versions/versionTree.js';
import { addWorktree } from './versions/worktree.js';

const processors = availableParallelism();

/** Request for a comparison of versions. */
export interface VersionsRequest {
  /** The folder that contains experiments/. */
  readonly project: string;
  /** The revision. */
  readonly base: string;
  /** Whether the revision itself is meant, rather than where the working tree left it. */
  readonly exact: boolean;
  /** One experiment; all that the change can reach where it is absent. */
  readonly name: string | undefined;
  /** Applied to both versions. */
  readonly changes: readonly Override[];
  /** Device for costs of training; by default that of the base's settings. */
  readonly device?: Device | undefined;
  /** The folder of answers of earlier reviews; everything is evaluated where it is absent. */
  readonly answers?: string | undefined;
  /** Limits on the evaluation of one experiment. */
  readonly limits: Limits;
  /** Whether the base gets the packages of its own lockfile, where that differs. */
  readonly installs?: boolean;
  /** Folder for pictures of changed configs; none are drawn by default. */
  readonly pictures?: string | undefined;
}

/**
 * Effects of a change on experiments. Each version is evaluated in a process of its own, the base from a temporary
 * worktree.
 *
 * @throws UsageError outside of a git repository, for an unknown revision or experiment, and for a base that cannot be
 * evaluated.
 */
export async function compareVersions(request: VersionsRequest): Promise<DiffReport> {
  const project = realpathSync(request.project);
  const repository = repositoryOf(project);
  const base = findBase(repository, request.base, request.exact);
  const commit = cleanCommit(repository);
  const user = { root: repository.root, project };
  const newTree = treeAt(repository.root, user);
  const cache = new AnswerCache(request.answers, [evaluatorDigest(), project, newTree.library]);
  const answersFor = (tree: Tree): KeptAnswers =>
    cache.forTree(tree, unrecordedContents(tree, repository.git), tree !== newTree);
  const changed = changedFiles(repository, base.commit);
  const newSources = new Sources(newTree, changed);
  const evaluatorOf = (sources: Sources, label: string): Evaluator => {
    const { tree, stateOf } = sources;
    return new Evaluator(tree, label, newTree, request.limits, answersFor(tree), stateOf);
  };
  const now = evaluatorOf(newSources, 'the working tree');
  const mayChange = [...newSources.experiments.keys()].some((name) => newSources.isTouched(name));
  // With kept answers, the process may not be needed.
  if (mayChange && cache.isEmpty) void now.start();
  const ownPackages =
    request.installs === true ? packagesOfBase(repository, base.commit, project) : undefined;
  const worktree = addWorktree(
    repository,
    base.commit,
    project,
    ownPackages?.folder === undefined ? 'linked' : 'none',
  );
  try {
    const begin = () => {
      const sources = new Sources(treeAt(worktree.root, user), changed);
      return { sources, evaluator: evaluatorOf(sources, base.label) };
    };
    const begun = await withOwnPackages(ownPackages ?? {}, worktree, base.label, begin);
    const { sources: oldSources, evaluator: old, packages } = begun;
    const oldTree = oldSources.tree;
    try {
      const { settings, own, notes } = settingsOfBase(oldTree.project, project);
      const costs = deviceFor(request.device, settings.device, oldTree.project);
      if (changed.size > 0 && cache.isEmpty) void old.start();
      const versions = {
        old: {
          evaluator: old,
          sources: oldSources,
          lacking: [...worktree.lacking, ...missingPackages(oldTree.project)],
        },
        now: { evaluator: now, sources: newSources, lacking: lackingIn(repository) },
      };
      const loaded = await loadExperiments(versions.old, versions.now);
      const asked =
        request.name === undefined
          ? undefined
          : requiredName(request.name, allNames(versions), 'in either version');
      const given = givenConstants(
        { base: settings.constants, workingTree: own.constants },
        { old: new Set(oldSources.experiments.keys()), all: allNames(versions) },
      );
      const changes = [given, ...request.changes];
      const files = new ChangedFiles(changed, oldTree, newTree);
      const names = await namesFor(asked, versions, files, changes, packages.folder !== undefined);
      const { pictures } = request;
      const found = await outcomesOf(names, versions, changes, {
        repository,
        base,
        asked,
        pictures,
        changed,
      });
      const report: DiffReport = {
        format: 'luthier-config-diff',
        version: 1,
        old: { label: base.label, commit: base.commit },
        new: { label: 'working tree', ...(commit === undefined ? {} : { commit }) },
        ...found,
        ...(loaded.old.length + loaded.new.length > 0 && { loaded }),
        thresholds: settings.thresholds,
        untouched:
          request.name === undefined
            ? newSources.experiments.size - names.filter((name) => newSources.experiments.has(name)).length
            : 0,
        notes: [...notes, ...costs.notes, ...notesOf(changed, oldTree, newTree, packages), ...found.notes],
      };
      cache.save();
      return onDevice(report, costs.device);
    } finally {
      await Promise.all([old.end(), now.end()]);
    }
  } finally {
    await now.end();
    worktree.remove();
  }
}

function allNames({ old, now }: Versions): string[] {
  return [...new Set([...now.sources.experiments.keys(), ...old.sources.experiments.keys()])].sort();
}

/**
 * The experiments to evaluate: all that the change reaches, or one; if only one version has it, it may have moved. Other
 * packages reach all.
 */
async function namesFor(
  asked: string | undefined,
  versions: Versions,
  files: ChangedFiles,
  changes: readonly Change[],
  hasOtherPackages: boolean,
): Promise<string[]> {
  const [old, now] = [versions.old.sources, versions.now.sources];
  if (asked !== undefined && old.experiments.has(asked) && now.experiments.has(asked)) return [asked];
  if (hasOtherPackages) return allNames(versions);
  return reached(versions, files, changes);
}

/**
 * The experiments that read a changed file. The others are evaluated at the base alone: as long as no file that a
 * process has read differs in the working tree, their results are the same there. Processes keep loaded modules, so
 * experiments that import a changed file come later.
 */
async function reached(
  versions: Versions,
  files: ChangedFiles,
  changes: readonly Change[],
): Promise<string[]> {
  if (files.size === 0) return [];
  const { old, now } = versions;
  const names = allNames(versions);
  const isExpected = (name: string): boolean =>
    [old, now].some(({ sources }) => !sources.experiments.has(name) || sources.isTouched(name));
  const others = names.filter((name) => !isExpected(name));
  await old.evaluator.look({ names: others, changes, processes: processors });
  const isReached = (name: string): boolean => {
    const reads = old.evaluator.readsOf(name);
    return files.readBy(reads).size > 0 || lookedFor(old.lacking, old.sources.tree.root, reads).length > 0;
  };
  return names.filter((name) => isExpected(name) || isReached(name));
}
