/** @file Changes of models and programs: code by fingerprints under the same configs, configs by analyses. */
import { fileURLToPath } from 'node:url';
import {
  type AnalysisDocument,
  type ExperimentDocument,
  type FingerprintDocument,
  made,
  type WrittenConfigs,
} from '../versions/protocol.js';
import { isSameConfig } from './compare.js';
import { brokenPart, type Compared, compareFingerprints, failingPart } from './computed.js';
import type { Varying } from './varying.js';
import { withoutVaryingParts } from './varyingParts.js';

/** The experiments of a version, and who looks at them. */
export interface Analysable {
  readonly documents: ReadonlyMap<string, ExperimentDocument>;
  readonly fingerprints: (names: readonly string[]) => Promise<ReadonlyMap<string, FingerprintDocument>>;
  /** Configs that another version can build, by names. */
  readonly written: (names: readonly string[]) => Promise<ReadonlyMap<string, WrittenConfigs>>;
  /** Fingerprints of this version's code by the configs of another one, by names. */
  readonly fingerprintsBy: (
    configs: ReadonlyMap<string, string>,
  ) => Promise<ReadonlyMap<string, FingerprintDocument>>;
  readonly analyses: (names: readonly string[]) => Promise<ReadonlyMap<string, AnalysisDocument>>;
  /** Fingerprints by fresh processes; without it, nothing is looked at twice. */
  readonly again?: Pick<Analysable, 'fingerprints' | 'fingerprintsBy'>;
}

/** Analyses by the experiments' names. */
export interface Models {
  /** Of experiments whose configs are the same, and of the others that code may have changed as well. */
  readonly computed: ReadonlyMap<string, Compared>;
  /** Parts that differ by themselves. */
  readonly varying: ReadonlyMap<string, readonly Varying[]>;
  /** Of experiments, which of their parts fails now, and how. */
  readonly broken: ReadonlyMap<string, string>;
  readonly old: ReadonlyMap<string, AnalysisDocument>;
  readonly now: ReadonlyMap<string, AnalysisDocument>;
}

/**
 * Fingerprints experiments, and analyses those that are not as they were.
 *
 * @param mayDiffer whether code, or data, that an experiment works with may have changed; the old code of those of other
 *   configs that can't is not fingerprinted.
 * @param varying experiments whose configs are other ones each time: both codes get those that the new version writes.
 */
export async function analyseModels(
  names: readonly string[],
  old: Analysable,
  now: Analysable,
  mayDiffer: (name: string) => boolean = () => true,
  varying: ReadonlySet<string> = new Set(),
): Promise<Models> {
  const isMade = ({ documents }: Analysable, name: string): boolean =>
    made(documents.get(name)) !== undefined;
  const able = names.filter((name) => isMade(now, name));
  const both = able.filter((name) => isMade(old, name));
  const same = new Set(
    both.filter((name) => isSameConfig(old.documents.get(name)!, now.documents.get(name)!)),
  );
  const changedConfigs = both.filter((name) => !same.has(name));
  const others = [
    ...changedConfigs.filter(mayDiffer),
    ...both.filter((name) => same.has(name) && varying.has(name)),
  ];
  // One question after the other for each version.
  const written = await now.written(others);
  const documents = documentsIn(written);
  const [before, after] = await Promise.all([
    fingerprintsOfOld(
      [...same].filter((name) => !varying.has(name)),
      others,
      written,
      old,
    ),
    byDocuments(able, new Map([...documents].filter(([name]) => varying.has(name))), now),
  ]);
  const first = new Map(
    [...before].map(([name, { document, because }]) => [
      name,
      {
        ...compareFingerprints(document, after.get(name)!, because),
        ...(same.has(name) ? {} : { isByNew: true as const }),
      },
    ]),
  );
  const { computed, varying: parts } = await varyingParts(
    first,
    { before, after, documents, varying },
    old,
    now,
  );
  const broken = await brokenParts(able, { same, after, before }, old);
  // One whose step can no longer be traced differs and is broken: the analyses show it.
  const changed = able.filter((name) => !same.has(name) || computed.get(name)?.isAlike !== true);
  const gone = names.filter((name) => !now.documents.has(name));
  const [olds, news] = await Promise.all([
    old.analyses([...changed, ...gone].filter((name) => isMade(old, name))),
    now.analyses(changed),
  ]);
  return { computed, varying: parts, broken, old: olds, now: news };
}

const documentsIn = (written: ReadonlyMap<string, WrittenConfigs>): Map<string, string> =>
  new Map(
    [...written].flatMap(([name, found]) => ('document' in found ? [[name, found.document] as const] : [])),
  );

/** Fingerprints of experiments, of those that have a document by its configs. */
async function byDocuments(
  names: readonly string[],
  documents: ReadonlyMap<string, string>,
  version: Pick<Analysable, 'fingerprints' | 'fingerprintsBy'>,
): Promise<ReadonlyMap<string, FingerprintDocument>> {
  const own = await version.fingerprints(names.filter((name) => !documents.has(name)));
  const given = new Map(names.flatMap((name) => (documents.has(name) ? [[name, documents.get(name)!]] : [])));
  if (given.size === 0) return own;
  return new Map([...own, ...(await version.fingerprintsBy(given))]);
}

/** Comparisons without the parts that differ by themselves, where fresh processes can be asked. */
function varyingParts(
  computed: ReadonlyMap<string, Compared>,
  {
    before,
    after,
    documents,
    varying,
  }: {
    readonly before: ReadonlyMap<string, OldFingerprints>;
    readonly after: ReadonlyMap<string, FingerprintDocument>;
    readonly documents: ReadonlyMap<string, string>;
    readonly varying: ReadonlySet<string>;
  },
  old: Analysable,
  now: Analysable,
) {
  const [oldAgain, nowAgain] = [old.again, now.again];
  if (oldAgain === undefined || nowAgain === undefined)
    return { computed, varying: new Map<string, readonly Varying[]>() };
  const given = (isGiven: (name: string) => boolean) =>
    new Map([...documents].filter(([name]) => isGiven(name)));
  return withoutVaryingParts(
    computed,
    {
      first: new Map([...before].map(([name, { document }]) => [name, document])),
      again: (names) =>
        byDocuments(
          names,
          given((name) => before.get(name)?.because === undefined),
          oldAgain,
        ),
    },
    {
      first: after,
      again: (names) =>
        byDocuments(
          names,
          given((name) => varying.has(name)),
          nowAgain,
        ),
    },
    (name) => ownCodeOf(now.documents.get(name)),
  );
}

/** The library's sources. */
const library = fileURLToPath(new URL('../../', import.meta.url));

/** Functions and classes that stand as values. */
const values = /\{"\$(?:constant|container|class|text)":[^{}]*\}/g;

/** Names of the classes in an experiment's configs that the library does not declare, and of functions that stand as values. */
function ownCodeOf(document: ExperimentDocument | undefined): string {
  const { classes: all = {}, configs = [] } = made(document)?.config ?? {};
  const classes = Object.entries(all);
  const own = classes.filter(
    ([
      ,
      {
        lineage: [first],
      },
    ]) => first?.file.startsWith(library) !== true,
  );
  const named = own.map(([name]) => name);
  return [...named, ...(JSON.stringify(configs).match(values) ?? [])].sort().join();
}

/** The parts that fail now and did not before, by the configs of then; of added experiments, those that fail. */
async function brokenParts(
  names: readonly string[],
  {
    same,
    before,
    after,
  }: {
    readonly same: ReadonlySet<string>;
    readonly before: ReadonlyMap<string, OldFingerprints>;
    readonly after: ReadonlyMap<string, FingerprintDocument>;
  },
  old: Analysable,
): Promise<Map<string, string>> {
  const isFailing = (name: string): boolean => {
    const document = after.get(name)!;
    if (!('fingerprint' in document)) return false;
    return Object.values(document.fingerprint).some(({ failed }) => failed !== undefined);
  };
  const failing = names.filter(isFailing);
  const asked = failing.filter((name) => !same.has(name) && made(old.documents.get(name)) !== undefined);
  const own = await old.fingerprints(asked);
  const found = failing.map((name) => {
    const now = after.get(name);
    if (!old.documents.has(name)) return [name, failingPart(now)] as const;
    return [name, brokenPart(same.has(name) ? before.get(name)?.document : own.get(name), now)] as const;
  });
  return new Map(found.flatMap(([name, reason]) => (reason === undefined ? [] : [[name, reason]])));
}

/** Fingerprints of the old code, and why they are of other configs than those of the new code. */
interface OldFingerprints {
  readonly document: FingerprintDocument;
  readonly because?: string;
}

/**
 * The old code by the configs of the new version: so a changed field hides no changed code. Where it can't build them, by its
 * own.
 *
 * @param others experiments whose configs changed
 */
async function fingerprintsOfOld(
  same: Iterable<string>,
  others: readonly string[],
  written: ReadonlyMap<string, WrittenConfigs>,
  old: Analysable,
): Promise<ReadonlyMap<string, OldFingerprints>> {
  const byNew = await old.fingerprintsBy(documentsIn(written));
  const unbuilt = new Map(
    others.flatMap((name): [string, string][] => {
      const document = byNew.get(name);
      if (document && 'fingerprint' in document) return [];
      if (document !== undefined)
        return [[name, `the code before cannot build the configs of now: ${document.notFingerprinted}`]];
      const found = written.get(name);
      const reason = found && 'notWritten' in found ? `: ${found.notWritten}` : '';
      return [[name, `the configs of now cannot be written for the code before${reason}`]];
    }),
  );
  const byOwn = await old.fingerprints([...same, ...unbuilt.keys()]);
  const found = new Map<string, OldFingerprints>(
    [...byOwn].map(([name, document]) => {
      const because = unbuilt.get(name);
      return [name, because === undefined ? { document } : { document, because }];
    }),
  );
  for (const [name, document] of byNew) if (!unbuilt.has(name)) found.set(name, { document });
  return found;
}
