/** @file Outcomes of the experiments of two evaluated versions. */
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { type Analysable, analyseModels } from './changes/analyseModels.js';
import { baseClasses } from './changes/baseClasses.js';
import { compareExperiment, isSameConfig } from './changes/compare.js';
import { byNewConfigs, varyingNotes, whatWasCompared } from './changes/comparisonNotes.js';
import { computedOf, mayCompute } from './changes/computed.js';
import { changedDeclarations } from './changes/declarations.js';
import { DeclaredPlaces, withDeclaredPlaces } from './changes/declaredPlaces.js';
import { HostCodes } from './changes/hostCode.js';
import { type Resumable, resumptionsOf } from './changes/resumptions.js';
import { withSameClasses } from './changes/sameClasses.js';
import { type Revisions, type Settled, settledExperiment, type Varying } from './changes/varying.js';
import { inOrder } from './reports/changeGroups.js';
import type { DiffReport } from './reports/diffReport.js';
import { fittingRow } from './reports/fittingRow.js';
import { drawDiff } from './reports/pictures.js';
import { counted } from './text/reportFormat.js';
import { applyAliases } from './versions/appliedAliases.js';
import type { Evaluator } from './versions/evaluators.js';
import { formerNames, movedExperiments, withPresentNames } from './versions/formerNames.js';
import type { Base, Repository } from './versions/gitQueries.js';
import { type Lacking, lookedFor } from './versions/heldApart.js';
import {
  type AnalysisDocument,
  type Change,
  type ExperimentDocument,
  made,
  pairsOf,
} from './versions/protocol.js';
import { ChangedFiles } from './versions/reach.js';
import { descriptionOf } from './versions/removedExperiment.js';
import type { Sources } from './versions/sources.js';
import { tidyPlace } from './versions/versionTree.js';

/** Processes of a version that is evaluated alone, and of each where both are. */
const all = availableParallelism();
const half = Math.max(1, Math.floor(all / 2));
/** Of a version's experiments, the part that may still be unknown where the other version gets all processes. */
const LITTLE = 0.1;

/** A version, and its evaluating processes. */
interface Evaluated {
  readonly evaluator: Evaluator;
  readonly sources: Sources;
  /** What the version's folder lacks. */
  readonly lacking: readonly Lacking[];
}

/** Both versions. */
export interface Versions {
  readonly old: Evaluated;
  readonly now: Evaluated;
}

/** Where the old version is from, which experiment is meant (all where that is undefined), and where pictures go. */
interface Origin {
  readonly repository: Repository;
  readonly base: Base;
  readonly asked: string | undefined;
  readonly pictures: string | undefined;
  /** Files that changed since. */
  readonly changed: ReadonlySet<string>;
}

/** Outcomes of the experiments. */
export async function outcomesOf(
  found: readonly string[],
  { old, now }: Versions,
  changes: readonly Change[],
  { repository, base, asked: only, pictures, changed: files }: Origin,
): Promise<Pick<DiffReport, 'experiments' | 'declarations' | 'unchanged' | 'notes'>> {
  const namesIn = ({ sources }: Evaluated) => found.filter((name) => sources.experiments.has(name));
  const open = old.evaluator.unknown({ names: namesIn(old), changes });
  const processes = { old: half, now: open.length <= LITTLE * found.length ? all : half };
  const configs = (version: 'old' | 'now') => {
    const { [version]: evaluated } = { old, now };
    const names = namesIn(evaluated);
    return evaluated.evaluator.configs({ names, changes, processes: processes[version] });
  };
  const [olds, news] = await Promise.all([configs('old'), configs('now')]);
  const formers = formerNames(
    { old: { ...old, documents: olds }, now: { ...now, documents: news } },
    movedExperiments(repository, old.sources.tree, now.sources.tree),
  );
  const oldNameOf = (name: string): string => formers.get(name)?.name ?? name;
  const names = withPresentNames(found, formers, news).filter(
    (name) => only === undefined || name === only || oldNameOf(name) === only,
  );
  for (const name of formers.keys()) olds.set(name, { ...olds.get(oldNameOf(name))!, name });
  const settled = await settledByAgain(names, { olds, news }, { old, now }, changes, {
    nameOf: oldNameOf,
    revisions: { old: base.commit, now: repository.git('rev-parse', 'HEAD').trim() },
  });
  for (const [name, { now: document }] of settled) news.set(name, document);
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
    asked(olds, old, changes, oldNameOf, processes.old),
    asked(news, now, changes, (name) => name, processes.now),
    (name) => mayCompute(news.get(name), files, now.sources),
    new Set([...settled].filter(([, { varying }]) => varying.length > 0).map(([name]) => name)),
  );
  const varyingOf = (name: string): Varying[] => [
    ...(settled.get(name)?.varying ?? []),
    ...(models.varying.get(name) ?? []),
  ];
  const renamed = new Set([...renames, ...same.qualified].flatMap(({ experiments }) => experiments));
  const isSame = (name: string): boolean =>
    isSameConfig(olds.get(name)!, news.get(name)!) &&
    !renamed.has(name) &&
    models.computed.get(name)?.differs.length === 0;
  const resumptions = await resumptionsOf(
    pairs.map(({ now }) => now.name).filter((name) => !isSame(name) && !isUntraced(models.now.get(name))),
    asked(olds, old, changes, oldNameOf, processes.old),
    asked(news, now, changes, (name) => name, processes.now),
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
  const unseen = data[0]!.files.unseenData;
  /** Why data that changed may have been read where no record tells. */
  const unseenOf = (name: string): string | undefined => {
    const { sources, evaluator } = now;
    const [starter] = unseen.length === 0 ? [] : evaluator.startersOf(name, sources.filesOf(name));
    if (starter === undefined) return undefined;
    const [first, ...more] = unseen.map((file) => relative(home.project, join(home.root, file))).sort();
    const which =
      more.length === 0 ? `${first} changed` : `${first} and ${counted(more.length, 'other file')} changed`;
    return `${tidyPlace(starter, home)} starts a process or thread, whose reads are not seen: ${which}`;
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
        { data: dataOf(name), unseen: unseenOf(name) },
        varyingOf(name),
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
      ...varyingNotes(
        new Map(names.map((name) => [name, varyingOf(name)] as const).filter(([, all]) => all.length > 0)),
        new Map(
          [...settled].flatMap(([name, { begun }]) => (begun.length > 0 ? [[name, begun] as const] : [])),
        ),
      ),
    ],
  };
}

/** Experiments with other configs than before, those values aside that a second evaluation of both versions shows to vary. */
async function settledByAgain(
  names: readonly string[],
  { olds, news }: Readonly<Record<'olds' | 'news', ReadonlyMap<string, ExperimentDocument>>>,
  { old, now }: Versions,
  changes: readonly Change[],
  { nameOf, revisions }: { readonly nameOf: (name: string) => string; readonly revisions: Revisions },
): Promise<Map<string, Settled>> {
  const pairs = pairsOf(names, olds, news).filter((pair) => !isSameConfig(pair.old, pair.now));
  if (pairs.length === 0) return new Map();
  // In another order, as experiments may find state of those before them.
  const own = pairs.map((pair) => pair.now.name).reverse();
  const ask = ({ evaluator }: Evaluated, asked: readonly string[]) =>
    evaluator.again.configs({ names: [...new Set(asked)], changes, processes: 1 });
  const [oldAgain, nowAgain] = await Promise.all([ask(old, own.map(nameOf)), ask(now, own)]);
  return new Map(
    pairs.flatMap((pair) => {
      const { name } = pair.now;
      const again = { oldAgain: made(oldAgain.get(nameOf(name))), nowAgain: made(nowAgain.get(name)) };
      if (again.oldAgain === undefined || again.nowAgain === undefined) return [];
      const documents = { ...pair, oldAgain: again.oldAgain, nowAgain: again.nowAgain };
      return [[name, settledExperiment(documents, revisions)] as const];
    }),
  );
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
  processes: number,
): Analysable & Resumable {
  const called = async <D>(
    names: readonly string[],
    ask: (names: readonly string[]) => Promise<ReadonlyMap<string, D>>,
  ): Promise<Map<string, D>> => {
    const answers = await ask([...new Set(names.map(nameOf))]);
    return new Map(names.map((name) => [name, answers.get(nameOf(name))!]));
  };
  const request = (names: readonly string[]) => ({ names, changes, processes });
  const fingerprints = (
    of: (names: readonly string[]) => Parameters<Evaluator['fingerprints']>[0],
    by: () => Evaluator,
  ) => ({
    fingerprints: (all: readonly string[]) => called(all, (names) => by().fingerprints(of(names))),
    fingerprintsBy: (configs: ReadonlyMap<string, string>) => {
      const documents = new Map([...configs].map(([name, document]) => [nameOf(name), document]));
      return called([...configs.keys()], (names) => by().fingerprints({ ...of(names), documents }));
    },
  });
  return {
    documents,
    ...fingerprints(request, () => evaluator),
    again: fingerprints(
      (names) => ({ ...request(names.toReversed()), processes: 1 }),
      () => evaluator.again,
    ),
    written: (all) => evaluator.documents(request(all)),
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
