/** @file Parts that are computed or read differently each time: fingerprints that a second look at both versions shows to vary. */
import type { FingerprintedPart } from '../fingerprints/fingerprintedParts.js';
import type { FingerprintDocument } from '../versions/protocol.js';
import type { Compared } from './computed.js';
import { causeOf, type Varying } from './varying.js';

/** Fingerprints of one version, and how to have them made once more, in fresh processes. */
interface Looked {
  readonly first: ReadonlyMap<string, FingerprintDocument>;
  readonly again: (names: readonly string[]) => Promise<ReadonlyMap<string, FingerprintDocument>>;
}

const hashOf = (document: FingerprintDocument | undefined, part: FingerprintedPart): string | undefined =>
  document !== undefined && 'fingerprint' in document ? document.fingerprint[part].hash : undefined;

/** The first and the last of the experiments of a kind that differ in the same parts: others of theirs differ as they do. */
function examplesOf(computed: ReadonlyMap<string, Compared>, kindOf: (name: string) => string): string[] {
  const groups = new Map<string, string[]>();
  for (const [name, { differs }] of computed) {
    if (differs.length === 0) continue;
    const key = JSON.stringify([...differs, kindOf(name)]);
    groups.set(key, [...(groups.get(key) ?? []), name]);
  }
  return [...new Set([...groups.values()].flatMap((names) => [names[0]!, names.at(-1)!]))];
}

/**
 * Comparisons without the parts that differ by themselves, and these by experiments.
 *
 * @param kindOf the code of the project's own that an experiment runs: one of other code may vary where its neighbors change.
 */
export async function withoutVaryingParts(
  computed: ReadonlyMap<string, Compared>,
  old: Looked,
  now: Looked,
  kindOf: (name: string) => string = () => '',
): Promise<{ readonly computed: Map<string, Compared>; readonly varying: Map<string, readonly Varying[]> }> {
  const settled = new Map(computed);
  const varying = new Map<string, readonly Varying[]>();
  const examples = examplesOf(computed, kindOf);
  if (examples.length === 0) return { computed: settled, varying };
  const nowAgain = new Map(await now.again(examples));
  const varied = new Set(
    examples.flatMap((name) =>
      computed.get(name)!.differs.filter((part) => {
        const [first, again] = [hashOf(now.first.get(name), part), hashOf(nowAgain.get(name), part)];
        return again !== undefined && first !== again;
      }),
    ),
  );
  const suspects = [...computed].filter(([, { differs }]) => differs.some((part) => varied.has(part)));
  if (suspects.length === 0) return { computed: settled, varying };
  const names = suspects.map(([name]) => name);
  const [oldAgain, rest] = await Promise.all([
    old.again(names),
    now.again(names.filter((name) => !nowAgain.has(name))),
  ]);
  for (const [name, document] of rest) nowAgain.set(name, document);
  for (const [name, compared] of suspects) {
    const found = compared.differs.flatMap((part) => {
      const [before, beforeAgain] = [old.first, oldAgain].map((all) => hashOf(all.get(name), part));
      const [after, afterAgain] = [now.first, nowAgain].map((all) => hashOf(all.get(name), part));
      const texts = [before, beforeAgain, after, afterAgain];
      if (texts.includes(undefined)) return [];
      const cause = causeOf({ old: before!, oldAgain: beforeAgain!, now: after!, nowAgain: afterAgain! });
      return cause === 'change' ? [] : [{ what: part, cause }];
    });
    if (found.length === 0) continue;
    varying.set(name, found);
    const isLeft = (part: string): boolean => !found.some(({ what }) => what === part);
    settled.set(name, {
      ...compared,
      differs: compared.differs.filter(isLeft),
      ...(compared.places && { places: compared.places.filter(({ part }) => isLeft(part)) }),
    });
  }
  return { computed: settled, varying };
}
