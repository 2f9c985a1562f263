/** @file Experiments among the exports that source text cannot classify: evaluating processes load the modules. */
import { relative } from 'node:path';
import type { FoundExperiment, UnclassifiedExport } from '../../registry/names/index.js';
import type { DiffReport } from '../reports/diffReport.js';
import type { Evaluator } from './evaluators.js';
import type { ExportsDocument, Failure } from './protocol.js';
import type { Sources } from './sources.js';

/** Exports of a version, and its evaluating processes. */
interface Opened {
  readonly unclassified: readonly UnclassifiedExport[];
  /** The folder that contains experiments/. */
  readonly project: string;
  readonly evaluator: Evaluator;
}

/** A version, and its evaluating processes. */
interface Version {
  readonly sources: Sources;
  readonly evaluator: Evaluator;
}

/** A module that fails to load. */
interface FailedModule {
  readonly file: string;
  readonly failure: Failure;
}

/** The answers about a version's modules with unclassified exports, by file. */
class Modules {
  private constructor(
    private readonly unclassified: readonly UnclassifiedExport[],
    private readonly documents: ReadonlyMap<string, ExportsDocument>,
  ) {}

  static async of({ unclassified, project, evaluator }: Opened): Promise<Modules> {
    const files = [...new Set(unclassified.map(({ file }) => file))];
    const named = new Map(files.map((file) => [relative(project, file), file]));
    const documents = await evaluator.exports([...named.keys()]);
    return new Modules(unclassified, new Map([...documents].map(([name, each]) => [named.get(name)!, each])));
  }

  /** The experiments among the exports of modules that could be loaded. @param known names that text tells */
  found(known: Iterable<string> = []): FoundExperiment[] {
    const named = new Set([...known, ...this.unclassified.map(({ name }) => name)]);
    return this.unclassified.flatMap((open) => {
      const document = this.documents.get(open.file);
      if (document === undefined || 'error' in document) return [];
      return document.exported.flatMap(({ exportName, base }): FoundExperiment[] => {
        if (open.exportName !== '*') return exportName === open.exportName ? [experimentOf(open, base)] : [];
        const name = open.name.slice(0, -1) + exportName;
        return named.has(name)
          ? []
          : [experimentOf({ ...open, name, exportName, declared: exportName }, base)];
      });
    });
  }

  /** The exports of modules that failed to load. */
  lost(): UnclassifiedExport[] {
    return this.unclassified.filter(({ file }) => this.failureOf(file) !== undefined);
  }

  /** The modules that failed to load. */
  failures(): FailedModule[] {
    const files = new Set(this.lost().map(({ file }) => file));
    return [...files].map((file) => ({ file, failure: this.failureOf(file)! }));
  }

  /** Whether a loaded module shows that an export is no experiment: it is not among `experiments`. */
  refutes(name: string, experiments: ReadonlyMap<string, FoundExperiment>): boolean {
    const open = this.unclassified.find((each) => each.name === name);
    return open !== undefined && this.failureOf(open.file) === undefined && !experiments.has(name);
  }

  private failureOf(file: string): Failure | undefined {
    const document = this.documents.get(file);
    return document !== undefined && 'error' in document ? document.error : undefined;
  }
}

function experimentOf({ text, ...open }: UnclassifiedExport, base: string): FoundExperiment {
  return { ...open, base: text === '' ? base : text, abstract: false, constants: [] };
}

/**
 * Adds to the sources of both versions the experiments that loading finds, and returns their names. Of a module that fails
 * to load, exports count as experiments, which are broken, unless the other version's module shows that they are none.
 */
export async function loadExperiments(
  old: Version,
  now: Version,
): Promise<Exclude<DiffReport['loaded'], undefined>> {
  const versions = [old, now];
  const modules = await Promise.all(
    versions.map(({ sources, evaluator }) => {
      const { unclassified, tree } = sources;
      return Modules.of({ unclassified, project: tree.project, evaluator });
    }),
  );
  const found = versions.map(({ sources }, i) => modules[i]!.found(sources.experiments.keys()));
  for (const [i, { sources }] of versions.entries()) sources.add(found[i]!);
  const lost = versions.map((_, i) => {
    const { experiments } = versions[1 - i]!.sources;
    return modules[i]!.lost()
      .filter(({ name, exportName }) => exportName !== '*' && !modules[1 - i]!.refutes(name, experiments))
      .map((open) => experimentOf(open, ''));
  });
  for (const [i, { sources }] of versions.entries()) sources.add(lost[i]!);
  const names = (i: number) => [...found[i]!, ...lost[i]!].map(({ name }) => name).sort();
  return { old: names(0), new: names(1) };
}

/**
 * Adds experiments to sources of which nothing is run, by names that somebody says were found by loading. Returns the names
 * that source text does not leave open.
 */
export function addTold(sources: Sources, names: readonly string[]): string[] {
  const open = new Map(sources.unclassified.map((each) => [each.name, each]));
  return names.filter((name) => {
    const dot = name.lastIndexOf('.');
    const exportName = name.slice(dot + 1);
    const star = /^[\w$]+$/.test(exportName) ? open.get(`${name.slice(0, dot)}.*`) : undefined;
    const found = open.get(name) ?? (star && { ...star, name, exportName, declared: exportName });
    if (found === undefined || sources.experiments.has(name) || exportName === '*') return true;
    sources.add([experimentOf(found, '')]);
    return false;
  });
}

/** The experiments of one version that loading finds, and the modules that fail to load. */
export async function experimentsByLoading(opened: Opened): Promise<{
  readonly experiments: readonly FoundExperiment[];
  readonly failures: readonly FailedModule[];
}> {
  const modules = await Modules.of(opened);
  return { experiments: modules.found(), failures: modules.failures() };
}
