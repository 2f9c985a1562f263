/** @file Comparison of the working tree with a git revision. */
import { realpathSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import type { Device } from '../analysis/index.js';
import type { Override } from '../cli/index.js';
import { requiredName } from '../registry/names/index.js';
import { type Analysable, analyseModels } from './changes/analyseModels.js';
import { baseClasses } from './changes/baseClasses.js';
import { compareExperiment, isSameConfig } from './changes/compare.js';
import { byNewConfigs, notesOf, whatWasCompared } from './changes/comparisonNotes.js';
import { computedOf, mayCompute } from './changes/computed.js';
import { changedDeclarations } from './changes/declarations.js';
import { DeclaredPlaces, withDeclaredPlaces } from './changes/declaredPlaces.js';
import { deviceFor, onDevice } from './changes/deviceEffects.js';
import { givenConstants } from './changes/givenConstants.js';
import { HostCodes } from './changes/hostCode.js';
import { type Resumable, resumptionsOf } from './changes/resumptions.js';
import { withSameClasses } from './changes/sameClasses.js';
import { inOrder } from './reports/changeGroups.js';
import type { DiffReport } from './reports/diffReport.js';
import { fittingRow } from './reports/fittingRow.js';
import { drawDiff } from './reports/pictures.js';
import { settingsOfBase } from './settings.js';
import { AnswerCache, type KeptAnswers } from './versions/answerCache.js';
import { applyAliases } from './versions/appliedAliases.js';
import { Evaluator, evaluatorDigest, type Limits } from './versions/evaluators.js';
import { formerNames, movedExperiments, withPresentNames } from './versions/formerNames.js';
import {
  type Base as BaseCommit,
  cleanCommit,
  findBase,
  type Repository,
  repositoryOf,
} from './versions/gitQueries.js';
import { changedFiles, type Lacking, lackingIn, lookedFor, missingPackages } from './versions/heldApart.js';
import { loadExperiments } from './versions/loadedExperiments.js';
import {
  type AnalysisDocument,
  type Change,
  type ExperimentDocument,
  made,
  pairsOf,
} from './versions/protocol.js';
import { ChangedFiles, unrecordedContents } from './versions/reach.js';
import { descriptionOf } from './versions/removedExperiment.js';
import { Sources } from './versions/sources.js';
import { type Tree, tidyPlace, treeAt } from './versions/versionTree.js';
import { addWorktree } from './versions/worktree.js';

const processors = availableParallelism();
/** Of which each version has as many where both are evaluated. */
const half = Math.max(1, Math.floor(processors / 2));

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
  const now = new Evaluator(newTree, 'the working tree', newTree, request.limits, answersFor(newTree));
  const changed = changedFiles(repository, base.commit);
  const newSources = new Sources(newTree, changed);
  const mayChange = [...newSources.experiments.keys()].some((name) => newSources.isTouched(name));
  // With kept answers, the process may not be needed.
  if (mayChange && cache.isEmpty) void now.start();
  const worktree = addWorktree(repository, base.commit, project);
  try {
    const oldTree = treeAt(worktree.root, user);
    const { settings, own, notes } = settingsOfBase(oldTree.project, project);
    const costs = deviceFor(request.device, settings.device, oldTree.project);
    const old = new Evaluator(oldTree, base.label, newTree, request.limits, answersFor(oldTree));
    try {
      if (changed.size > 0 && cache.isEmpty) void old.start();
      const oldSources = new Sources(oldTree, changed);
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
      const names = await namesFor(asked, versions, files, changes);
      const { pictures } = request;
      const found = await evaluateAll(names, versions, changes, {
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
        notes: [...notes, ...costs.notes, ...notesOf(changed, oldTree, newTree), ...found.notes],
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

interface Evaluated {
  readonly evaluator: Evaluator;
  readonly sources: Sources;
  /** What the version's folder lacks. */
  readonly lacking: readonly Lacking[];
}

interface Versions {
  readonly old: Evaluated;
  readonly now: Evaluated;
}

function allNames({ old, now }: Versions): string[] {
  return [...new Set([...now.sources.experiments.keys(), ...old.sources.experiments.keys()])].sort();
}

/** The experiments to evaluate: all that the change reaches, or one; if only one version has it, it may have moved. */
async function namesFor(
  asked: string | undefined,
  versions: Versions,
  files: ChangedFiles,
  changes: readonly Change[],
): Promise<string[]> {
  const [old, now] = [versions.old.sources, versions.now.sources];
  if (asked !== undefined && old.experiments.has(asked) && now.experiments.has(asked)) return [asked];
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

/** Where the old version is from, which experiment is meant (all where that is undefined), and where pictures go. */
interface Origin {
  readonly repository: Repository;
  readonly base: BaseCommit;
  readonly asked: string | undefined;
  readonly pictures: string | undefined;
  /** Files that changed since. */
  readonly changed: ReadonlySet<string>;
}

/** Outcomes of the experiments. */
async function evaluateAll(
  found: readonly string[],
  { old, now }: Versions,
  changes: readonly Change[],
  { repository, base, asked: only, pictures, changed: files }: Origin,
): Promise<Pick<DiffReport, 'experiments' | 'declarations' | 'unchanged' | 'notes'>> {
  const configs = ({ sources, evaluator }: Evaluated) =>
    evaluator.configs({
      names: found.filter((name) => sources.experiments.has(name)),
      changes,
      processes: half,
    });
  const [olds, news] = await Promise.all([configs(old), configs(now)]);
  const formers = formerNames(
    { old: { ...old, documents: olds }, now: { ...now, documents: news } },
    movedExperiments(repository, old.sources.tree, now.sources.tree),
  );
  const oldNameOf = (name: string): string => formers.get(name)?.name ?? name;
  const names = withPresentNames(found, formers, news).filter(
    (name) => only === undefined || name === only || oldNameOf(name) === only,
  );
  for (const name of formers.keys()) olds.set(name, { ...olds.get(oldNameOf(name))!, name });
  const same = withSameClasses(pairsOf(names, olds, news));
  const { pairs, renames } = applyAliases(same.pairs);
  for (const pair of pairs) {
    olds.set(pair.old.name, pair.old);
    news.set(pair.now.name, pair.now);
  }
  const declarations = [
    ...renames,
    ...same.qualified,
    ...changedDeclarations(pairs, (file) => tidyPlace(file, now.sources.tree)),
  ];
  const models = await analyseModels(
    names,
    asked(olds, old, changes, oldNameOf),
    asked(news, now, changes, (name) => name),
    (name) => mayCompute(news.get(name), files, now.sources),
  );
  const renamed = new Set([...renames, ...same.qualified].flatMap(({ experiments }) => experiments));
  const isSame = (name: string): boolean =>
    isSameConfig(olds.get(name)!, news.get(name)!) &&
    !renamed.has(name) &&
    models.computed.get(name)?.differs.length === 0;
  const resumptions = await resumptionsOf(
    pairs.map(({ now }) => now.name).filter((name) => !isSame(name) && !isUntraced(models.now.get(name))),
    asked(olds, old, changes, oldNameOf),
    asked(news, now, changes, (name) => name),
    (name) => formers.get(name)?.leadsTo === oldNameOf(name),
  );
  const added = names.filter((name) => !olds.has(name));
  const bases = await baseClasses(added, news, now, changes);
  const home = now.sources.tree;
  const data = [
    { evaluator: old.evaluator, files: new ChangedFiles(files, old.sources.tree, home), nameOf: oldNameOf },
    {
      evaluator: now.evaluator,
      files: new ChangedFiles(files, home, old.sources.tree),
      nameOf: (name: string) => name,
    },
  ];
  const dataOf = (name: string): string[] => {
    const read = data.flatMap(({ evaluator, files: changed, nameOf }) => [
      ...changed.dataReadBy(evaluator.ownReadsOf(nameOf(name))),
    ]);
    return [...new Set(read.map((file) => relative(home.project, join(home.root, file))))].sort();
  };
  const lackOf = ({ lacking, evaluator, sources }: Evaluated, name: string, error: string): string[] =>
    lookedFor(lacking, sources.tree.root, evaluator.ownReadsOf(name), error).map(({ why }) => why);
  const [oldPlaces, newPlaces] = [new DeclaredPlaces(old.sources.tree, home), new DeclaredPlaces(home, home)];
  const hostCode = new HostCodes(old.sources, now.sources, files);
  const reports = names.map((name) => {
    const before = { document: olds.get(name), analysis: models.old.get(name), places: oldPlaces };
    const after = { document: news.get(name), analysis: models.now.get(name), places: newPlaces };
    const found = bases.get(name);
    const former = formers.get(name);
    const report = compareExperiment(name, before, after, declarations, {
      base: found,
      ...resumptions.get(name),
      broken: models.broken.get(name),
      lacks: {
        old: lackOf(old, oldNameOf(name), failureText(olds.get(name))),
        now: lackOf(now, name, failureText(news.get(name))),
      },
      computed: computedOf(
        [oldNameOf(name), name],
        models.computed.get(name),
        { old: olds.get(name), now: news.get(name) },
        { old, now },
        hostCode,
        dataOf(name),
      ),
      ...(former === undefined ? {} : { former }),
      ...(now.sources.experiments.has(name)
        ? {}
        : { was: descriptionOf(name, { old: old.sources, now: now.sources }, repository, base) }),
    });
    const other = found === undefined ? before : { ...found, places: newPlaces };
    return withDeclaredPlaces(report, other, after);
  });
  const changed = reports.filter(({ status }) => status !== 'unchanged').map(fittingRow);
  for (const { name, fields } of changed) {
    const [before, after] = [bases.get(name)?.document ?? olds.get(name), news.get(name)].map(made);
    if (pictures && before && after && fields.length > 0) await drawDiff(pictures, before, after);
  }
  return {
    experiments: inOrder(changed),
    declarations,
    unchanged: reports.length - changed.length,
    notes: [
      ...(models.computed.size > 0 ? [whatWasCompared] : []),
      ...([...models.computed.values()].some(({ isByNew }) => isByNew) ? [byNewConfigs] : []),
    ],
  };
}

const failureText = (document: ExperimentDocument | undefined): string =>
  document !== undefined && 'error' in document ? document.error.message : '';

/** Whether a model's step can't be traced, so that no run goes on with it. */
const isUntraced = (document: AnalysisDocument | undefined): boolean =>
  document !== undefined && 'notAnalysed' in document;

/** A version's experiments, and who looks at them; there they are called by `nameOf`. */
function asked(
  documents: ReadonlyMap<string, ExperimentDocument>,
  { evaluator }: Evaluated,
  changes: readonly Change[],
  nameOf: (name: string) => string,
): Analysable & Resumable {
  const called = async <D>(
    names: readonly string[],
    ask: (names: readonly string[]) => Promise<ReadonlyMap<string, D>>,
  ): Promise<Map<string, D>> => {
    const answers = await ask([...new Set(names.map(nameOf))]);
    return new Map(names.map((name) => [name, answers.get(nameOf(name))!]));
  };
  const request = (names: readonly string[]) => ({ names, changes, processes: half });
  return {
    documents,
    fingerprints: (all) => called(all, (names) => evaluator.fingerprints(request(names))),
    written: (all) => evaluator.documents(request(all)),
    fingerprintsBy: (configs) => {
      const documents = new Map([...configs].map(([name, document]) => [nameOf(name), document]));
      return called([...configs.keys()], (names) => evaluator.fingerprints({ ...request(names), documents }));
    },
    saved: (all) => called(all, (names) => evaluator.saved(request(names))),
    resumed: (saved, ofAny) => {
      const given = new Map([...saved].map(([name, text]) => [nameOf(name), text]));
      return called([...saved.keys()], (names) =>
        evaluator.resumed({ ...request(names), saved: given, ...(ofAny && { ofAny }) }),
      );
    },
    analyses: (all) => called(all, (names) => evaluator.analyses(request(names))),
  };
}
