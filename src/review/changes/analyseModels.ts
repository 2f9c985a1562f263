/** @file Changes of models and programs: by fingerprints where configs are the same, by analyses elsewhere. */

import {
  type AnalysisDocument,
  type ExperimentDocument,
  type FingerprintDocument,
  made,
} from '../versions/protocol.js';
import { isSameConfig } from './compare.js';
import { type Compared, compareFingerprints } from './computed.js';

/** The experiments of a version, and who looks at them. */
export interface Analysable {
  readonly documents: ReadonlyMap<string, ExperimentDocument>;
  readonly fingerprints: (names: readonly string[]) => Promise<ReadonlyMap<string, FingerprintDocument>>;
  readonly analyses: (names: readonly string[]) => Promise<ReadonlyMap<string, AnalysisDocument>>;
}

/** Analyses by the experiments' names. */
export interface Models {
  /** Of experiments whose configs are the same. */
  readonly computed: ReadonlyMap<string, Compared>;
  readonly old: ReadonlyMap<string, AnalysisDocument>;
  readonly now: ReadonlyMap<string, AnalysisDocument>;
}

/** Fingerprints the experiments whose configs are the same, and analyses those that are not as they were. */
export async function analyseModels(
  names: readonly string[],
  old: Analysable,
  now: Analysable,
): Promise<Models> {
  const isMade = ({ documents }: Analysable, name: string): boolean =>
    made(documents.get(name)) !== undefined;
  const able = names.filter((name) => isMade(now, name));
  const same = able.filter(
    (name) => isMade(old, name) && isSameConfig(old.documents.get(name)!, now.documents.get(name)!),
  );
  const [before, after] = await Promise.all([old.fingerprints(same), now.fingerprints(same)]);
  const computed = new Map(
    same.map((name) => [name, compareFingerprints(before.get(name)!, after.get(name)!)]),
  );
  // One whose step can no longer be traced differs and is broken: the analyses show it.
  const changed = able.filter((name) => computed.get(name)?.isAlike !== true);
  const gone = names.filter((name) => !now.documents.has(name));
  const [olds, news] = await Promise.all([
    old.analyses([...changed, ...gone].filter((name) => isMade(old, name))),
    now.analyses(changed),
  ]);
  return { computed, old: olds, now: news };
}
