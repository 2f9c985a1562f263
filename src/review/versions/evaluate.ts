/** @file Evaluation of experiments by the version of the library in this process. */

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Analysis, analyze, failureOf, learningRatesOf, Shared } from '../../analysis/index.js';
import { type ConfiguredExperiment, configure, type Override } from '../../cli/index.js';
import * as experiments from '../../experiment/index.js';
import {
  Experiment,
  effectiveConstants,
  isExperimentClass,
  type MissingConstantError,
} from '../../experiment/index.js';
import { classOf, withOrigin } from '../../hparams/index.js';
import { type ResolvedExperiment, registerExports, resolveExperiment } from '../../registry/index.js';
import { configDocument, declaringFile, encodeLeaf } from '../changes/configDocument.js';
import type { Fingerprints } from '../fingerprints/experimentFingerprints.js';
import type {
  AnalysisDocument,
  Change,
  ConstantEntry,
  ExperimentDocument,
  ExportsDocument,
  Failure,
  FingerprintDocument,
  GivenConstant,
  Question,
  ResumedDocument,
  Saved,
  SavedDocument,
  WrittenConfigs,
} from './protocol.js';
import { readConfigs, writeConfigs } from './writtenConfigs.js';

// Named imports are limited to exports of every version of the library: this file may run with an earlier one.
const { baseClassesOf, constantProblems, constantsOf, oldConstantsOf }: Partial<typeof experiments> =
  experiments;

/**
 * Subject of a question: an experiment with the changes of flags, or its nearest base class that has configs, or as a run
 * has recorded it.
 */
type Subject = Pick<Question, 'name' | 'changes' | 'ofBase' | 'run'>;

/** Experiments, each with its configs once they are needed. */
export class Evaluation {
  private readonly configured = new Map<string, ConfiguredExperiment>();
  private readonly analyses = new Shared<Analysis | Promise<Analysis>>();
  private fingerprints: Fingerprints | undefined;

  /** The constants and configs of the experiment `name`, or the error that prevents them. */
  async configs(subject: Subject): Promise<ExperimentDocument> {
    const { name } = subject;
    try {
      const { experiment, configs } = await this.configure(subject);
      const constants = effectiveConstants(experiment).map((constant): ConstantEntry => {
        const { name: key, value, setBy, setIn } = constant;
        const file = setIn && declaringFile(setIn);
        return {
          name: key,
          setBy,
          ...(value !== undefined && { value: encodeLeaf(value) }),
          ...(file !== undefined && { file }),
        };
      });
      const formerConstants = { ...oldConstantsOf?.(experiment.constructor) };
      const config = withOrigin('luthier diff', () => configDocument(configs));
      const file = declaringFile(experiment.constructor);
      const declared = file === undefined ? {} : { declared: { name: experiment.constructor.name, file } };
      const learningRates = learningRatesOf(configs.task);
      const rates = learningRates === undefined ? {} : { learningRates };
      return { name, ...declared, constants, formerConstants, config, ...rates };
    } catch (error) {
      return { name, error: failureWithoutPath(error) };
    }
  }

  private async configure(subject: Subject): Promise<ConfiguredExperiment> {
    const { name, changes, ofBase, run } = subject;
    const resolved = run === undefined ? await resolveExperiment(name) : await recorded(run);
    await registerLibrary();
    const configured = ofBase
      ? configureBase(resolved, changes)
      : configure(resolved, withGiven(resolved, changes));
    this.configured.set(keyOf(subject), configured);
    return configured;
  }

  /** The experiments that the module of this path exports, but families that do not say what to train. */
  async exports({ name }: Subject): Promise<ExportsDocument> {
    try {
      const module: object = await import(pathToFileURL(resolve(name)).href);
      const exported = Object.entries(module).flatMap(([exportName, value]: [string, unknown]) => {
        if (!isExperimentClass(value) || value.prototype.task === Experiment.prototype.task) return [];
        const base = Object.getPrototypeOf(value) as Function;
        return [{ exportName, base: base.name }];
      });
      return { name, exported };
    } catch (error) {
      return { name, error: failureWithoutPath(error) };
    }
  }

  /** Analysis of the experiment's model, or the reason for its absence. */
  async analysis(subject: Subject): Promise<AnalysisDocument> {
    const { name } = subject;
    try {
      const configured = await this.configuredOnce(subject);
      const analysis = await this.analyses.of(analysisParts(configured), () => analyze(configured));
      return { name, analysis: { ...analysis, numTrainSteps: configured.task.train.numTrainSteps } };
    } catch (error) {
      return { name, notAnalysed: failureWithoutPath(error) };
    }
  }

  /** The experiment's configs as another version can build them. */
  async document(subject: Subject): Promise<WrittenConfigs> {
    const { name } = subject;
    try {
      return { name, document: writeConfigs(await this.configuredOnce(subject)) };
    } catch (error) {
      return { name, notWritten: failureWithoutPath(error).message };
    }
  }

  /** Fingerprints of the experiment's computations and data, or of this version's by the configs in `document`. */
  async fingerprint({
    document,
    ...subject
  }: Subject & Pick<Question, 'document'>): Promise<FingerprintDocument> {
    const { name } = subject;
    try {
      const configured = await this.configuredOnce(subject);
      this.fingerprints ??= await fingerprinter();
      if (this.fingerprints === undefined) {
        return { name, notFingerprinted: 'Its version of Luthier is too old to compute fingerprints.' };
      }
      const given = document === undefined ? {} : readConfigs(document);
      return { name, fingerprint: await this.fingerprints.of({ ...configured, ...given }) };
    } catch (error) {
      return { name, notFingerprinted: failureWithoutPath(error).message };
    }
  }

  /** The description of the experiment's checkpoints. */
  async saved(subject: Subject): Promise<SavedDocument> {
    const { name } = subject;
    try {
      const { resumptions, fingerprints } = await this.resumer();
      const configured = () => this.configuredOnce(subject);
      const { run } = subject;
      const saved =
        run === undefined
          ? resumptions.savedOf(await configured(), fingerprints)
          : resumptions.savedInRun(run, configured, fingerprints);
      return { name, saved: await saved };
    } catch (error) {
      return { name, notSaved: failureWithoutPath(error).message };
    }
  }

  /** How the experiment goes on from another version's checkpoints. */
  async resumed({
    saved,
    ofAny,
    ...subject
  }: Subject & Pick<Question, 'saved' | 'ofAny'>): Promise<ResumedDocument> {
    const { name } = subject;
    try {
      const configured = await this.configuredOnce(subject);
      const { resumptions, fingerprints } = await this.resumer();
      const given = JSON.parse(saved!) as Saved;
      return { name, resumed: await resumptions.resumedFrom(configured, given, fingerprints, ofAny) };
    } catch (error) {
      return { name, notResumed: failureWithoutPath(error).message };
    }
  }

  /** The functions that compare checkpoints. @throws Error where this version has too little for it. */
  private async resumer() {
    this.fingerprints ??= await fingerprinter();
    const resumptions = await import('./resumedRuns.js').catch(() => undefined);
    const { fingerprints } = this;
    if (fingerprints?.training === undefined || resumptions === undefined)
      throw new Error('Its version of Luthier is too old to tell what checkpoints hold.');
    return { resumptions, fingerprints };
  }

  private async configuredOnce(subject: Subject): Promise<ConfiguredExperiment> {
    return this.configured.get(keyOf(subject)) ?? (await this.configure(subject));
  }
}

/** All that an analysis follows from but the number of steps; a subclass's own fields may change a step. */
export function analysisParts({
  task,
  datasets,
}: Pick<ConfiguredExperiment, 'task' | 'datasets'>): readonly unknown[] {
  const { name: _, train, decode: __, ...own } = task;
  return [classOf(task), own, train.learner, datasets.filter(({ isTraining }) => isTraining)];
}

function keyOf({ name, ofBase, run }: Subject): string {
  if (run !== undefined) return `run ${run}`;
  return ofBase ? `base class of ${name}` : name;
}

/** The experiment as a run has recorded it. Early versions, which are not asked, lack the function. */
async function recorded(run: string): Promise<ResolvedExperiment> {
  const { namedExperiment } = await import('../../cli/index.js');
  return namedExperiment(run, run);
}

/** The flags, behind the given constants that have no value yet. */
function withGiven({ name, cls }: ResolvedExperiment, changes: readonly Change[]): Override[] {
  const given = changes.flatMap((change) => (change.kind === 'given' ? (change.of[name] ?? []) : []));
  const flags = changes.filter((change) => change.kind !== 'given');
  if (given.length === 0) return flags;
  const missing = new Set(
    constantProblems!(cls).map((problem) => (problem as Partial<MissingConstantError>).constant),
  );
  const known = constantsOf!(cls);
  const isNeeded = ({ path, isForOne }: GivenConstant): boolean =>
    missing.has(path) || (isForOne && !Object.hasOwn(known, path));
  return [...given.filter(isNeeded), ...flags];
}

/** The nearest base class that has configs. Flags for constants that only the experiment has are ignored. */
function configureBase(resolved: ResolvedExperiment, changes: readonly Change[]): ConfiguredExperiment {
  const own = constantsOf!(resolved.cls);
  for (const cls of baseClassesOf?.(resolved.cls) ?? []) {
    const constants = constantsOf!(cls);
    const isAbout = (change: Override): boolean =>
      !('path' in change) || !Object.hasOwn(own, change.path) || Object.hasOwn(constants, change.path);
    const base = { ...resolved, cls: cls as ResolvedExperiment['cls'] };
    try {
      return configure(base, withGiven(base, changes).filter(isAbout));
    } catch {
      // A family may leave something to its subclasses that the next one does not need.
    }
  }
  throw new Error('None of its base classes makes configs.');
}

/** Makes the classes of this version's library known. An early one exports all of them from its index. */
async function registerLibrary(): Promise<void> {
  const rooms = await moduleAt('../../rooms.js');
  if (rooms === undefined) registerExports(await import('../../index.js'));
  else (rooms as { registerLibrary(): void }).registerLibrary();
}

/** A module of this version's sources; undefined where an early version lacks it. */
async function moduleAt(path: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  const file = new URL(path, import.meta.url);
  try {
    return await import(file.href);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** Fingerprints by this version, which an early one has too little for. */
async function fingerprinter(): Promise<Fingerprints | undefined> {
  try {
    const module = await import('../fingerprints/experimentFingerprints.js');
    return new module.Fingerprints();
  } catch {
    return undefined;
  }
}

/** The failure to report for an error, without the path that its message names. */
function failureWithoutPath(error: unknown): Failure {
  const { path, ...told } = failureOf(error);
  return told;
}
