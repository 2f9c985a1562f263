/** @file Comparison of the computations and data of two versions of an experiment, by their fingerprints. */
import {
  type FingerprintedPart,
  fingerprinted,
  type PartDigest,
} from '../fingerprints/fingerprintedParts.js';
import type { Computed, Uncompared } from '../reports/diffReport.js';
import { type ExperimentDocument, type FingerprintDocument, made } from '../versions/protocol.js';
import type { Sources } from '../versions/sources.js';
import { classFiles } from './classFiles.js';

/** Result of comparing fingerprints. */
export interface Compared extends Pick<Computed, 'differs' | 'uncompared' | 'isByNew'> {
  /** Whether a training step does the same operations on the same variables and shapes, so that it costs the same. */
  readonly isAlike: boolean;
}

/**
 * Which parts are not as they were. A part that only one version has a fingerprint of is not compared.
 *
 * @param because why the two are by other configs, whose differences can't be told from those of the code.
 */
export function compareFingerprints(
  old: FingerprintDocument,
  now: FingerprintDocument,
  because?: string,
): Compared {
  if (!('fingerprint' in old && 'fingerprint' in now)) {
    const { notFingerprinted: reason } = ('fingerprint' in now ? old : now) as { notFingerprinted: string };
    return { differs: [], uncompared: fingerprinted.map((part) => ({ part, reason })), isAlike: false };
  }
  const differs: FingerprintedPart[] = [];
  const uncompared: Uncompared[] = [];
  for (const part of fingerprinted) {
    const [before, after] = [old.fingerprint[part], now.fingerprint[part]];
    const reason = after.notCompared ?? before.notCompared ?? changedSource(before, after);
    const areBoth = before.hash !== undefined && after.hash !== undefined;
    if (areBoth && before.hash !== after.hash && because !== undefined)
      uncompared.push({ part, reason: because });
    else if (areBoth && before.hash !== after.hash) differs.push(part);
    else if (reason !== undefined) uncompared.push({ part, reason });
  }
  const isAlike = (['training step', 'optimizer update'] as const).every((part) => {
    const [before, after] = [old.fingerprint[part].operations, now.fingerprint[part].operations];
    return before !== undefined && before === after;
  });
  return { differs, uncompared, isAlike };
}

/** Files that no computation reads but by loading them, and those that none reads. */
const LOADED = /\.([cm]?[jt]sx?|md)$/;

/**
 * Whether code or data that an experiment computes with can have changed, beside its configs.
 *
 * @param changed files, from the repository's root
 */
export function mayCompute(
  document: ExperimentDocument | undefined,
  changed: ReadonlySet<string>,
  sources: Sources,
): boolean {
  const experiment = made(document);
  if (experiment === undefined || [...changed].some((file) => !LOADED.test(file))) return true;
  const { config } = experiment;
  // Functions and classes as values, and values that have no form: which files they are from is not told.
  if (/"\$(constant|container|class|text)"/.test(JSON.stringify(config.configs))) return true;
  return classFiles('all', config)?.some((file) => sources.reaches(file)) ?? true;
}

/** A source that is not as it was, of those that no fingerprint runs. */
function changedSource(
  { notRun: old = {} }: PartDigest,
  { notRun: now = {} }: PartDigest,
): string | undefined {
  const other = Object.keys({ ...old, ...now }).find((name) => old[name] !== now[name]);
  return other && `${other} changed, which only jobs run`;
}

/** Why a part that cannot be compared may be another one than it was. */
const codeChanged = {
  input: 'the code that reads it changed, and there is no data to compare',
  programs: 'their code changed',
} as const;

/**
 * Computed differences, with the files that may cause them. Parts that cannot be compared count only if code changed.
 */
export function computedOf(
  [oldName, name]: readonly [oldName: string, name: string],
  computed: Compared | undefined,
  document: ExperimentDocument | undefined,
  { old, now }: { readonly old: { readonly sources: Sources }; readonly now: { readonly sources: Sources } },
): Computed | undefined {
  const experiment = made(document);
  if (computed === undefined || experiment === undefined) return undefined;
  const isTouched = (part: 'input' | 'programs'): boolean =>
    classFiles(part, experiment.config)?.some((file) => now.sources.reaches(file)) ?? true;
  return {
    ...(computed.isByNew && { isByNew: true }),
    differs: computed.differs,
    uncompared: computed.uncompared.flatMap((each) => {
      const { part, reason } = each;
      if (part !== 'input' && part !== 'programs') return [each];
      return isTouched(part) ? [{ part, reason: `${codeChanged[part]}: ${reason}` }] : [];
    }),
    files: [...new Set([...old.sources.changedFilesOf(oldName), ...now.sources.changedFilesOf(name)])].sort(),
  };
}
