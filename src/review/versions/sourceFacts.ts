/** @file Facts about a change by git and source text: the experiments of both commits, and the changed files they load. */
import { readFileSync, realpathSync } from 'node:fs';
import { basename, extname, join, relative } from 'node:path';
import type { FoundExperiment } from '../../registry/names/index.js';
import { shortened, visible } from '../../system/text/index.js';
import type { ConstantChange, Description, DiffReport, Former } from '../reports/diffReport.js';
import { ReportError } from '../reports/parseReport.js';
import { codeSpan, counted } from '../text/reportFormat.js';
import { extendsOnly, movedExperiments, renameOf } from './formerNames.js';
import { gitEntries } from './gitEntries.js';
import { filesBetween, repositoryOf } from './gitQueries.js';
import { addTold } from './loadedExperiments.js';
import { descriptionOf } from './removedExperiment.js';
import { Sources } from './sources.js';
import { isCode } from './treeFiles.js';
import { treeAt } from './versionTree.js';
import { addForeignWorktree, type Worktree } from './worktree.js';

/** The whole hashes of the commits that are compared. */
export interface Commits {
  readonly base: string;
  readonly head: string;
}

/** An experiment that the head lacks. */
interface RemovedExperiment {
  readonly was: Description;
  /** Those that its class set. */
  readonly constants: readonly ConstantChange[];
}

/** Facts about a change from git and source text. */
export interface SourceFacts {
  /** The experiments of each commit. */
  readonly base: ReadonlySet<string>;
  readonly head: ReadonlySet<string>;
  /** Exports of either that text cannot classify: it is the report that says which of them are experiments. */
  readonly unclassified: readonly string[];
  /** Those of the base alone. */
  readonly removed: ReadonlyMap<string, RemovedExperiment>;
  /** Experiments that load a changed file, in either version. */
  readonly reached: ReadonlySet<string>;
  /** The changed files that they load, from the project's folder. */
  readonly files: readonly string[];
  /** Other changed files that the texts of experiments name in quotes. */
  readonly named: readonly string[];
  /** Changed files by which packages are installed, modules found and TypeScript translated. */
  readonly settings: readonly string[];
  /** How many other files changed. */
  readonly others: number;
  /** What lies among experiments and cannot be read, and why: `experiments/nested.ts: It is nested too deeply.` */
  readonly problems: readonly string[];
  /** The problems, and places that load what text does not name: `experiments/lm.ts:7 imports a computed path`. */
  readonly unfollowed: readonly string[];
  /** Whether an experiment of the head may be one of the base, by git and text, and the rename. */
  renameOf(
    name: string,
    former: string,
  ): { readonly rename: Omit<Former, 'evidence'>; readonly evidence: Evidence };
}

/** `text`: the classes have the same text but for the name. */
type Evidence = ReadonlySet<Former['evidence'][number] | 'text'>;

/** Files that all code of a project is installed, found and translated by. */
const settingsFile =
  /^(?:package(?:-lock)?\.json|npm-shrinkwrap\.json|(?:yarn|pnpm-lock|bun)\.(?:lock|lockb|yaml)|pnpm-workspace\.yaml|\.(?:npm|yarn|pnpm)[\w.-]*|[jt]sconfig[\w.-]*\.json|\.env[\w.-]*|\.gitattributes|\.gitmodules|\.node-version|\.nvmrc)$/;

/**
 * Reads the sources of two commits of the repository around `project`. Nothing of them is run.
 *
 * @param loaded experiments that a report found by loading, which is believed of exports alone that text cannot classify.
 * @throws ReportError where it names others
 */
export function sourceFacts(
  project: string,
  { base, head }: Commits,
  loaded?: DiffReport['loaded'],
): SourceFacts {
  const folder = realpathSync(project);
  const repository = repositoryOf(folder);
  const changed = new Set(filesBetween(repository, base, head));
  const worktrees: Worktree[] = [];
  try {
    const user = { root: repository.root, project: folder };
    const [old, now] = [base, head].map((commit) => {
      const worktree = addForeignWorktree(repository, commit);
      worktrees.push(worktree);
      const { root } = worktree;
      return new Sources(treeAt(root, user), changed, gitEntries(repository, commit, root, changed));
    }) as [Sources, Sources];
    for (const [sources, side] of [
      [old, 'old'],
      [now, 'new'],
    ] as const) {
      const invented = addTold(sources, loaded?.[side] ?? []);
      if (invented.length === 0) continue;
      const what = 'source text tells that these are no experiments, or which ones they are';
      throw new ReportError(`report.loaded.${side}: ${what}: ${invented.join(', ')}.`);
    }
    const moved = movedExperiments(repository, old.tree, now.tree);
    const gone = [...old.experiments.keys()].filter((name) => !now.experiments.has(name));
    const removed = gone.map((name): [string, RemovedExperiment] => [
      name,
      {
        was: descriptionOf(name, { old, now }, repository, { commit: base, label: base }),
        constants: ownConstants(old.experiments.get(name)!),
      },
    ]);
    const texts = classTexts([...old.experiments.values(), ...now.experiments.values()]);
    return {
      base: new Set(old.experiments.keys()),
      head: new Set(now.experiments.keys()),
      unclassified: [
        ...new Set([old, now].flatMap((each) => each.unclassified.map(({ name }) => name))),
      ].sort(),
      removed: new Map(removed),
      ...filesOf(changed, old, now),
      renameOf: (name, former) => {
        const [was, is] = [old.experiments.get(former)!, now.experiments.get(name)!];
        const kept = now.experiments.get(former);
        const isOneClass =
          kept !== undefined &&
          kept.place.file === is.place.file &&
          kept.place.line === is.place.line &&
          kept.declared === is.declared;
        const isAlias = kept !== undefined && (extendsOnly(is, kept) || extendsOnly(kept, is));
        const isFile = moved.get(was.file) === is.file && was.exportName === is.exportName;
        const evidence: Evidence = new Set([
          ...(isOneClass ? (['class'] as const) : []),
          ...(isFile ? (['file'] as const) : []),
          ...(isAlias || texts.get(was) === texts.get(is) ? (['text'] as const) : []),
        ]);
        return { rename: renameOf(was, is, old, now), evidence };
      },
    };
  } finally {
    for (const worktree of worktrees) worktree.remove();
  }
}

/** What the text of a class sets. */
function ownConstants({ constants, exportName }: FoundExperiment): ConstantChange[] {
  return constants
    .filter(({ kind }) => kind === 'set')
    .map(({ name, text }) => ({ name, old: { text, setBy: exportName } }));
}

/** The texts of classes, without their names and indentation. */
function classTexts(experiments: readonly FoundExperiment[]): Map<FoundExperiment, string> {
  const files = new Map<string, string[]>();
  return new Map(
    experiments.map((found) => {
      const { file, line, lastLine } = found.place;
      let lines = files.get(file);
      if (lines === undefined) files.set(file, (lines = readFileSync(file, 'utf8').split('\n')));
      const text = lines.slice(line - 1, lastLine).map((each) => each.trim());
      return [found, text.join('\n').replace(/\bclass [\w$]+/, 'class')];
    }),
  );
}

/** How experiments come upon changed files. */
function filesOf(
  changed: ReadonlySet<string>,
  old: Sources,
  now: Sources,
): Pick<SourceFacts, 'reached' | 'files' | 'named' | 'settings' | 'others' | 'problems' | 'unfollowed'> {
  const names = new Set([...old.experiments.keys(), ...now.experiments.keys()]);
  const loaded = [...names].map((name) => [...old.changedFilesOf(name), ...now.changedFilesOf(name)]);
  const reached = new Set([...names].filter((_, i) => loaded[i]!.length > 0));
  const files = new Set(loaded.flat());
  const fromProject = (file: string): string => relative(now.tree.project, join(now.tree.root, file));
  const others = [...changed].map(fromProject).filter((file) => !files.has(file));
  const settings = others.filter((file) => settingsFile.test(basename(file)));
  const rest = others.filter((file) => !settings.includes(file));
  const named = namedFiles(
    rest,
    [old, now].flatMap((sources) => [...names].flatMap((name) => [...sources.filesOf(name)])),
  );
  const problems = [old, now].flatMap((sources) =>
    sources.problems.map(({ file, message }) => `${relative(sources.tree.project, file)}: ${message}`),
  );
  const unfollowed = [old, now].flatMap((sources) =>
    [...names].flatMap((name) => sources.unfollowedOf(name)),
  );
  return {
    reached,
    files: [...files].sort(),
    named,
    settings: settings.sort(),
    others: rest.length - named.length,
    problems: [...new Set(problems)],
    unfollowed: [...new Set([...problems, ...unfollowed])],
  };
}

/** Those of `changed` that sources name: a file by its name, data also by its folder. */
function namedFiles(changed: readonly string[], sources: readonly string[]): string[] {
  if (changed.length === 0) return [];
  const quoted = new Set<string>();
  for (const file of new Set(sources)) {
    if (!isCode(file)) continue;
    // Parts of what stands in quotes: 'data/points.json' names points.json, and the folder data.
    for (const [, text] of readFileSync(file, 'utf8').matchAll(/["'`]([^"'`\n]{1,300})["'`]/g)) {
      const parts = text!.split('/').filter((part) => part !== '' && !/^\.{1,2}$/.test(part));
      for (let i = 0; i < parts.length; i += 1) quoted.add(parts.slice(i).join('/'));
      quoted.add(parts.join('/'));
    }
  }
  return changed
    .filter((file) => {
      if (quoted.has(basename(file))) return true;
      if (isCode(file) || extname(file) === '.md') return false;
      const folders = file.split('/').slice(0, -1);
      return folders.some((_, i) => quoted.has(folders.slice(0, i + 1).join('/')));
    })
    .sort();
}

const mostShown = 8;

function listed(texts: readonly string[], most = mostShown): string {
  const shown = texts.slice(0, most).map((text) => codeSpan(shortened(visible(shortened(text)))));
  const more = texts.length > most ? [`${texts.length - most} more`] : [];
  return [...shown, ...more].join(', ');
}

/** Facts to check a report against, in Markdown. */
export function factsMarkdown(facts: SourceFacts): string {
  const { base, head, unclassified, reached, files, named, settings, others, unfollowed } = facts;
  const isOpen = unfollowed.length > 0 && others > 0;
  const count = counted(new Set([...base, ...head]).size, 'experiment');
  const unknown = (which: string) =>
    `whether experiments load ${which} cannot be told: ${listed(unfollowed, 3)}`;
  const sentences = [
    ...(files.length > 0
      ? [`${reached.size} of ${count} load ${counted(files.length, 'changed file')}: ${listed(files)}`]
      : isOpen || named.length + settings.length > 0
        ? []
        : ['no experiment loads a changed file']),
    ...(named.length > 0 ? [`text that they load names ${listed(named)}, which changed`] : []),
    ...(settings.length > 0 ? [`all depend on ${listed(settings)}, which changed`] : []),
    ...(unclassified.length > 0
      ? [`which of ${listed(unclassified)} are experiments, only the pull request's own code says`]
      : []),
    ...(isOpen ? [unknown(`one of ${counted(others, 'other changed file')}`)] : []),
  ];
  const [first, ...rest] = sentences.map((text) => `${text}.`);
  const more = rest.map((text) => ` ${text[0]!.toUpperCase()}${text.slice(1)}`);
  return `The pull request's own code evaluated its experiments. By git and source text alone, ${first}${more.join('')}`;
}
