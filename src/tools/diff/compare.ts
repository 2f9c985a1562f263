/** @file Comparison of two versions of an experiment. */
import type {
  Computed,
  ConstantChange,
  DeclarationChange,
  ExperimentReport,
  Side,
  Status,
} from './diffReport.js';
import { display, showJson } from './display.js';
import { effectsOf, hasEffect } from './effects.js';
import { fieldChanges } from './fieldChanges.js';
import {
  type AnalysisDocument,
  analysed,
  type ConfigDocument,
  type ConstantEntry,
  type ExperimentDocument,
  made,
} from './protocol.js';

/** One version of an experiment, its names as they are now; `undefined` where the version has no such experiment. */
export interface Version {
  readonly document: ExperimentDocument | undefined;
  /** Absent where the model need not be looked at. */
  readonly analysis?: AnalysisDocument | undefined;
}

/**
 * What changed of the experiment `name`.
 *
 * @param declarations the names that changed in it.
 * @param computed what became of its programs and data, where its config is the same.
 */
export function compareExperiment(
  name: string,
  old: Version,
  now: Version,
  declarations: readonly DeclarationChange[],
  computed?: Computed,
): ExperimentReport {
  const [before, after] = [made(old.document), made(now.document)];
  const constants = constantChanges(before?.constants ?? [], after?.constants ?? []);
  const fields =
    before === undefined || after === undefined ? [] : changesOfConfigs(before.config, after.config);
  const models = [analysed(old.analysis), analysed(now.analysis)] as const;
  const effects = models[0] || models[1] ? effectsOf(...models) : undefined;
  const [oldError, newError] = [errorOf(old), errorOf(now)];
  const isChanged =
    constants.length + fields.length > 0 ||
    (effects !== undefined && hasEffect(effects)) ||
    (computed !== undefined && computed.differs.length > 0);
  const own = declarations.filter(({ experiments }) => experiments.includes(name));
  const settled = statusOf(old, now, isChanged, own);
  const isOpen = settled === 'unchanged' && computed !== undefined && computed.uncompared.length > 0;
  const status = isOpen ? 'uncompared' : settled;
  return {
    name,
    status,
    constants: constantsToTell(name, status, constants),
    fields,
    ...(effects === undefined ? {} : { effects }),
    ...(computed === undefined ? {} : { computed }),
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
  const [before, after] = [made(old), made(now)];
  if (before === undefined || after === undefined) return false;
  return (
    constantChanges(before.constants, after.constants).length === 0 &&
    changesOfConfigs(before.config, after.config).length === 0
  );
}

function changesOfConfigs(old: ConfigDocument, now: ConfigDocument) {
  const displayed = display(old, now);
  return fieldChanges(displayed.old, displayed.now);
}

function errorOf({ document, analysis }: Version): ExperimentReport['newError'] {
  if (document !== undefined && 'error' in document) return document.error;
  return analysis !== undefined && 'notAnalysed' in analysis ? analysis.notAnalysed : undefined;
}

function statusOf(
  old: Version,
  now: Version,
  isChanged: boolean,
  declarations: readonly DeclarationChange[],
): Status {
  const [worked, works] = [made(old.document) !== undefined, made(now.document) !== undefined];
  if (old.document === undefined) return works ? 'added' : 'broken';
  if (now.document === undefined) return 'removed';
  if (!works) return worked ? 'broken' : 'failing';
  if (!worked) return 'mended';
  // A model that could be traced, and cannot be any more, cannot be trained either.
  if (analysed(old.analysis) && now.analysis && !analysed(now.analysis)) return 'broken';
  if (isChanged) return 'changed';
  if (declarations.length === 0) return 'unchanged';
  return declarations.every(isAlias) ? 'renamed' : 'redeclared';
}

function isAlias({ old, new: now, isGuess }: DeclarationChange): boolean {
  return old !== undefined && now !== undefined && isGuess !== true;
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
  return { text: value === undefined ? '(not set)' : showJson(value), setBy };
}
