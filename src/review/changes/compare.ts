/** @file Comparison of two versions of an experiment. */
import type {
  Computed,
  ConstantChange,
  DeclarationChange,
  ExperimentReport,
  FieldChange,
  Side,
  Status,
} from '../reports/diffReport.js';
import {
  type AnalysisDocument,
  analysed,
  type ConfigDocument,
  type ConstantEntry,
  type ExperimentDocument,
  type MadeExperiment,
  made,
  type ResumedDocument,
  type SavedDocument,
} from '../versions/protocol.js';
import { resumptionOf } from './checkpointEffect.js';
import { display, showJson } from './display.js';
import { effectsOf, hasEffect } from './effects.js';
import { fieldChanges } from './fieldChanges.js';

/** One version of an experiment, its names as they are now; `undefined` where the version has no such experiment. */
export interface Version {
  readonly document: ExperimentDocument | undefined;
  /** Absent where the model need not be looked at. */
  readonly analysis?: AnalysisDocument | undefined;
}

/** Facts about an experiment beside its two versions. */
export interface Known extends Pick<ExperimentReport, 'former' | 'was'> {
  /** Comparison of its programs and data, for equal configs. */
  readonly computed?: Computed | undefined;
  /** The old version's checkpoints, and how the new one goes on from them. */
  readonly saved?: SavedDocument | undefined;
  readonly resumed?: ResumedDocument | undefined;
  /** Which of its parts fails now and did not before, and how. */
  readonly broken?: string | undefined;
  /** Why what it looked for in each version could not be had. */
  readonly lacks?: Readonly<Record<'old' | 'now', readonly string[]>> | undefined;
  /** Its baseline, if it was added. */
  readonly base?: (Version & { readonly name?: string }) | undefined;
}

/**
 * Changes of the experiment `name`.
 *
 * @param declarations the names that changed in it.
 */
export function compareExperiment(
  name: string,
  old: Version,
  now: Version,
  declarations: readonly DeclarationChange[],
  { base, computed: known, broken, saved, resumed, lacks = { old: [], now: [] }, ...names }: Known = {},
): ExperimentReport {
  const other = base ?? old;
  const [before, after] = [made(other.document), made(now.document)];
  const areBoth = old.document !== undefined && now.document !== undefined;
  const reasons = areBoth ? [...new Set([...lacks.old, ...lacks.now])] : [];
  const computed = withReasons(known, reasons);
  const [constants, changed] =
    before === undefined || after === undefined
      ? [now.document === undefined ? ownConstants(before) : [], []]
      : [constantChanges(before.constants, after.constants), changesOfConfigs(before.config, after.config)];
  const models = [analysed(other.analysis), analysed(now.analysis)] as const;
  const effects = effectsOf(...models);
  const checkpoints = resumptionOf(saved, resumed, changed);
  const isForcing = ({ path }: FieldChange): boolean =>
    checkpoints?.forcedBy.some((each) => each === path || each.startsWith(`${path}: `)) === true;
  const fields = changed.map((each) => (isForcing(each) ? { ...each, forcesNewRun: true as const } : each));
  const [oldError, newError] = [errorOf(old), errorOf(now) ?? (broken && { message: broken })];
  const isChanged =
    constants.length + fields.length > 0 ||
    hasEffect(effects) ||
    checkpoints?.goesOn === 'never' ||
    checkpoints?.goesOn === 'changed' ||
    (computed !== undefined && computed.differs.length + (computed.data?.length ?? 0) > 0);
  const own = declarations.filter(({ experiments }) => experiments.includes(name));
  const settled =
    broken === undefined ? statusOf(old, now, isChanged, own, names.former !== undefined) : 'broken';
  const isOpen =
    (settled === 'unchanged' || settled === 'moved') &&
    computed !== undefined &&
    computed.uncompared.length > 0;
  const tellsOfLack: readonly Status[] =
    reasons.length === 0 ? [] : ['mended', 'failing', ...(lacks.now.length > 0 ? (['broken'] as const) : [])];
  const isUntold = tellsOfLack.includes(settled);
  const status = isOpen || isUntold ? 'uncompared' : settled;
  return {
    name,
    status,
    ...(base?.name === undefined ? {} : { against: base.name }),
    ...names,
    constants,
    fields,
    ...((models[0] || models[1]) && !isUntold ? { effects } : {}),
    ...(checkpoints === undefined ? {} : { checkpoints }),
    ...(base === undefined ? changedRates(before, after) : {}),
    ...(computed === undefined ? {} : { computed }),
    ...(oldError === undefined || isUntold ? {} : { oldError }),
    ...(newError && !isUntold ? { newError } : {}),
  };
}

/** A comparison, with why all of it may be another one. */
function withReasons(computed: Computed | undefined, reasons: readonly string[]): Computed | undefined {
  if (reasons.length === 0) return computed;
  const { uncompared, ...others } = computed ?? { differs: [], uncompared: [], files: [] };
  const added = reasons.map((reason) => ({ part: 'experiment' as const, reason }));
  return { ...others, uncompared: [...added, ...uncompared] };
}

function changedRates(
  before: MadeExperiment | undefined,
  after: MadeExperiment | undefined,
): Pick<ExperimentReport, 'learningRates'> {
  const [old, now] = [before?.learningRates, after?.learningRates];
  if (old === undefined || now === undefined || JSON.stringify(old) === JSON.stringify(now)) return {};
  // A constant rate is as it was, however long it holds.
  if (new Set([...old.rates, ...now.rates]).size === 1) return {};
  return { learningRates: { old, new: now } };
}

/** The constants that the class of a removed experiment set itself. */
function ownConstants(experiment: MadeExperiment | undefined): ConstantChange[] {
  const { constants = [], declared } = experiment ?? {};
  const own = constants.filter(({ setBy, file }) => setBy === declared?.name && file === declared.file);
  return constantChanges(own, []);
}

/** Whether the configs and constants of two documents are the same, so that only code could change their models. */
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
  isMoved: boolean,
): Status {
  const [worked, works] = [made(old.document) !== undefined, made(now.document) !== undefined];
  const isTraced = now.analysis === undefined || analysed(now.analysis) !== undefined;
  if (old.document === undefined) return works && isTraced ? 'added' : 'broken';
  if (now.document === undefined) return 'removed';
  if (!works) return worked ? 'broken' : 'failing';
  if (!worked) return 'mended';
  // A model that could be traced, and cannot be any more, cannot be trained either.
  if (analysed(old.analysis) && !isTraced) return 'broken';
  if (isChanged) return 'changed';
  if (declarations.length === 0) return isMoved ? 'moved' : 'unchanged';
  return declarations.every(isAlias) ? 'renamed' : 'redeclared';
}

function isAlias({ old, new: now, isGuess, isShared }: DeclarationChange): boolean {
  return old !== undefined && now !== undefined && isGuess !== true && isShared !== true;
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
