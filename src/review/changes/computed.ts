/** @file Comparison of the computations and data of two versions of an experiment, by their fingerprints. */
import {
  type FingerprintedPart,
  fingerprinted,
  type PartDigest,
} from '../fingerprints/fingerprintedParts.js';
import type { Computed, Uncompared } from '../reports/diffReport.js';
import {
  type ExperimentDocument,
  type FingerprintDocument,
  type MadeExperiment,
  made,
} from '../versions/protocol.js';
import type { Sources } from '../versions/sources.js';
import { classFiles } from './classFiles.js';
import { type Varying, varyingText } from './varying.js';

/** Result of comparing fingerprints. */
export interface Compared extends Pick<Computed, 'differs' | 'places' | 'uncompared' | 'isByNew'> {
  /** Whether a training step does the same operations on the same variables and shapes, so that it costs the same. */
  readonly isAlike: boolean;
  /** Parts that are equal as far as they were drawn or read. */
  readonly sampled: readonly FingerprintedPart[];
}

/** Parts whose values tell little where other code may fail: the first that fails now and did not before, and how. */
export function brokenPart(
  old: FingerprintDocument | undefined,
  now: FingerprintDocument | undefined,
): string | undefined {
  if (old === undefined || now === undefined || !('fingerprint' in now)) return undefined;
  if (!('fingerprint' in old)) return undefined;
  for (const part of fingerprinted) {
    const [before, after] = [old.fingerprint[part].failed ?? [], now.fingerprint[part].failed ?? []];
    const isNew = after.some((name) => !before.includes(name));
    if (isNew && after.length > before.length) return `${part}: ${now.fingerprint[part].notCompared}`;
  }
  return undefined;
}

/** Why the present version of an experiment without a former one would fail, but for data that may not be here. */
export function failingPart(now: FingerprintDocument | undefined): string | undefined {
  if (now === undefined || !('fingerprint' in now)) return undefined;
  const part = fingerprinted.find((each) => each !== 'input' && now.fingerprint[each].failed !== undefined);
  return part && `${part}: ${now.fingerprint[part].notCompared}`;
}

/** Where a part differs: the first operation or row that is another one. */
function placeOf(before: PartDigest, after: PartDigest): string | undefined {
  const [rows, newRows] = [before.rows ?? {}, after.rows ?? {}];
  const differing = Object.keys({ ...newRows, ...rows }).filter(
    (name) => rows[name]?.[0] !== newRows[name]?.[0],
  );
  // Of data of another length, other rows far from the beginning are read.
  const row = differing.find((name) => name in rows && name in newRows) ?? differing[0];
  if (row !== undefined) {
    const [old, now] = [rows[row]?.[1] ?? 'none', newRows[row]?.[1] ?? 'none'];
    return old === now ? `${row}, behind what is shown: ${now}` : `${row}: ${old} → ${now}`;
  }
  const [places, newPlaces] = [before.places ?? {}, after.places ?? {}];
  const place = Object.keys({ ...newPlaces, ...places }).find((name) => places[name] !== newPlaces[name]);
  if (place === undefined) return undefined;
  const [layer, operation] = [
    place.slice(0, place.lastIndexOf(' ')),
    place.slice(place.lastIndexOf(' ') + 1),
  ];
  return `${operation} of ${layer === '' ? 'the model or the loss' : layer}`;
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
    return {
      differs: [],
      uncompared: fingerprinted.map((part) => ({ part, reason })),
      isAlike: false,
      sampled: [],
    };
  }
  const differs: FingerprintedPart[] = [];
  const places: NonNullable<Computed['places']>[number][] = [];
  const uncompared: Uncompared[] = [];
  const sampled: FingerprintedPart[] = [];
  for (const part of fingerprinted) {
    const [before, after] = [old.fingerprint[part], now.fingerprint[part]];
    const reason = after.notCompared ?? before.notCompared ?? changedSource(before, after);
    const areBoth = before.hash !== undefined && after.hash !== undefined;
    if (areBoth && before.hash !== after.hash && because !== undefined)
      uncompared.push({ part, reason: because });
    else if (areBoth && before.hash !== after.hash) {
      differs.push(part);
      const text = placeOf(before, after);
      if (text !== undefined) places.push({ part, text });
    } else if (reason !== undefined) uncompared.push({ part, reason });
    else if (after.isSampled) sampled.push(part);
  }
  const isAlike = (['training step', 'optimizer update'] as const).every((part) => {
    const [before, after] = [old.fingerprint[part].operations, now.fingerprint[part].operations];
    return before !== undefined && before === after;
  });
  return { differs, ...(places.length > 0 && { places }), uncompared, isAlike, sampled };
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

/** Code of an experiment that no trace covers. */
export interface HostCode {
  /** Whether code that a part's classes may run differs, comments and types aside. */
  readonly differs: (
    part: FingerprintedPart | 'experiment',
    old: MadeExperiment,
    now: MadeExperiment,
  ) => boolean;
}

/**
 * Computed differences, with the files that may cause them. Parts that cannot be compared count only if code changed, and
 * parts of which a sample was, if other code may show elsewhere.
 *
 * @param read the changed files of data that the experiment read, and why it may have read others
 * @param varying parts and values that differ by themselves: under other code, whether they do as before is not known
 */
export function computedOf(
  [oldName, name]: readonly [oldName: string, name: string],
  computed: Compared | undefined,
  documents: { readonly old: ExperimentDocument | undefined; readonly now: ExperimentDocument | undefined },
  { old, now }: { readonly old: { readonly sources: Sources }; readonly now: { readonly sources: Sources } },
  hostCode: HostCode,
  { data, unseen }: { readonly data: readonly string[]; readonly unseen?: string | undefined } = { data: [] },
  varying: readonly Varying[] = [],
): Computed | undefined {
  const [former, experiment] = [made(documents.old), made(documents.now)];
  if (computed === undefined || former === undefined || experiment === undefined) return undefined;
  const isTouched = (part: 'input' | 'programs'): boolean =>
    classFiles(part, experiment.config)?.some((file) => now.sources.reaches(file)) ?? true;
  const files = [...new Set([...old.sources.changedFilesOf(oldName), ...now.sources.changedFilesOf(name)])];
  const beyond = computed.sampled.filter(
    (part) => files.length > 0 && hostCode.differs(part, former, experiment),
  );
  const byChance = varying.filter(({ cause }) => cause === 'chance');
  const isOpen = byChance.length > 0 && hostCode.differs('experiment', former, experiment);
  return {
    ...(computed.isByNew && { isByNew: true }),
    differs: computed.differs,
    ...(computed.places && { places: computed.places }),
    uncompared: [
      ...computed.uncompared.flatMap((each) => {
        const { part, reason } = each;
        if (part !== 'input' && part !== 'programs') return [each];
        return isTouched(part) ? [{ part, reason: `${codeChanged[part]}: ${reason}` }] : [];
      }),
      ...(unseen === undefined || computed.differs.includes('input')
        ? []
        : [{ part: 'input' as const, reason: unseen }]),
      ...beyond.map((part) => ({ part, reason: samples[part] ?? 'its code changed' })),
      ...(isOpen
        ? [
            {
              part: 'experiment' as const,
              reason: `its code changed, and ${varyingText(byChance)} differs by itself`,
            },
          ]
        : []),
    ],
    files: files.sort(),
    ...(data.length > 0 && { data }),
  };
}

/** What was the same of a part whose code is not. */
const samples: Partial<Record<FingerprintedPart, string>> = {
  input: 'the code that reads it changed: the rows that were read are the same, and others may not be',
  'optimizer update':
    'the code of its schedules changed: the steps that were looked at are the same, and others may not be',
  evaluation: 'the code of its metrics changed: of made-up outputs they are the same',
  'initial values': 'the code that draws them changed: the draws that were made are the same',
  decoding: 'the code of the decoder changed: of made-up logits its draws are the same',
  programs: 'code that only jobs run changed',
};
