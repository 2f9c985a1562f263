/** @file Comparison of two versions of an experiment. */
import type { Analysis } from '../analysis/analyze.js';
import type { ConstantChange, DeclarationChange, ExperimentReport, Side, Status } from './diffReport.js';
import { decode, display, ShownValue, showParts } from './display.js';
import { effectsOf, hasEffect } from './effects.js';
import { fieldChanges } from './fieldChanges.js';
import type { AnalysisDocument, ConstantEntry, ExperimentDocument } from './protocol.js';

/** One version of an experiment, its names as they are now; `undefined` where the version has no such experiment. */
export interface Version {
  readonly document: ExperimentDocument | undefined;
  /** Absent where the model need not be looked at. */
  readonly analysis?: AnalysisDocument | undefined;
}

/** What changed of the experiment `name`; `declarations` are the names that changed in it. */
export function compareExperiment(
  name: string,
  old: Version,
  now: Version,
  declarations: readonly DeclarationChange[],
): ExperimentReport {
  const before = good(old.document);
  const after = good(now.document);
  const constants = constantChanges(before?.constants ?? [], after?.constants ?? []);
  const fields =
    before === undefined || after === undefined ? [] : changesOfConfigs(before.config, after.config);
  const models = [analysisIn(old.analysis), analysisIn(now.analysis)] as const;
  const effects = models[0] || models[1] ? effectsOf(...models) : undefined;
  const [oldError, newError] = [errorOf(old), errorOf(now)];
  const isChanged = constants.length + fields.length > 0 || (effects !== undefined && hasEffect(effects));
  const isRenamed = declarations.some(({ experiments }) => experiments.includes(name));
  const status = statusOf(old, now, isChanged, isRenamed);
  return {
    name,
    status,
    constants: constantsToTell(name, status, constants),
    fields,
    ...(effects === undefined ? {} : { effects }),
    ...(oldError === undefined ? {} : { oldError }),
    ...(newError === undefined ? {} : { newError }),
  };
}

/** Of a new experiment, the constants that it sets itself; of one that only one version can make, none. */
function constantsToTell(name: string, status: Status, constants: ConstantChange[]): ConstantChange[] {
  if (status === 'removed' || status === 'broken' || status === 'mended') return [];
  if (status !== 'added') return constants;
  return constants.filter(({ new: now }) => now?.setBy === name.slice(name.lastIndexOf('.') + 1));
}

/** Whether the configs and constants of two documents are the same, so that only code could tell their models apart. */
export function isSameConfig(old: ExperimentDocument, now: ExperimentDocument): boolean {
  const [before, after] = [good(old), good(now)];
  if (before === undefined || after === undefined) return false;
  return (
    constantChanges(before.constants, after.constants).length === 0 &&
    changesOfConfigs(before.config, after.config).length === 0
  );
}

type GoodDocument = Extract<ExperimentDocument, { config: unknown }>;

function good(document: ExperimentDocument | undefined): GoodDocument | undefined {
  return document !== undefined && 'config' in document ? document : undefined;
}

function changesOfConfigs(old: GoodDocument['config'], now: GoodDocument['config']) {
  const displayed = display(old, now);
  return fieldChanges(displayed.old, displayed.now);
}

function analysisIn(document: AnalysisDocument | undefined): Analysis | undefined {
  return document !== undefined && 'analysis' in document ? document.analysis : undefined;
}

function errorOf({ document, analysis }: Version): ExperimentReport['newError'] {
  if (document !== undefined && 'error' in document) return document.error;
  return analysis !== undefined && 'notAnalysed' in analysis ? analysis.notAnalysed : undefined;
}

function statusOf(old: Version, now: Version, isChanged: boolean, isRenamed: boolean): Status {
  if (old.document === undefined) return good(now.document) === undefined ? 'broken' : 'added';
  if (now.document === undefined) return 'removed';
  const works = (version: Version): boolean => good(version.document) !== undefined;
  if (!works(now)) return works(old) ? 'broken' : 'failing';
  if (!works(old)) return 'mended';
  // A model that could be traced, and cannot be any more, cannot be trained either.
  if (
    analysisIn(old.analysis) !== undefined &&
    now.analysis !== undefined &&
    analysisIn(now.analysis) === undefined
  )
    return 'broken';
  if (isChanged) return 'changed';
  return isRenamed ? 'renamed' : 'unchanged';
}

function constantChanges(old: readonly ConstantEntry[], now: readonly ConstantEntry[]): ConstantChange[] {
  const before = new Map(old.map((constant) => [constant.name, constant]));
  const names = new Set([...now, ...old].map(({ name }) => name));
  const after = new Map(now.map((constant) => [constant.name, constant]));
  return [...names].flatMap((name): ConstantChange[] => {
    const [a, b] = [before.get(name), after.get(name)];
    if (JSON.stringify(a?.value) === JSON.stringify(b?.value) && (a === undefined) === (b === undefined))
      return [];
    return [
      {
        name,
        ...(a === undefined ? {} : { old: sideOf(a) }),
        ...(b === undefined ? {} : { new: sideOf(b) }),
      },
    ];
  });
}

function sideOf({ value, setBy }: ConstantEntry): Side & { setBy: string } {
  const text =
    value === undefined
      ? '(not set)'
      : showParts(
          decode(value, () => ShownValue.of('…')),
          () => '…',
        );
  return { text, setBy };
}
