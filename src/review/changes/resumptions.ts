/** @file Questions on how runs of one version go on in the other. */
import type { ResumedDocument, SavedDocument } from '../versions/protocol.js';

/** A version that describes its checkpoints, or goes on from those of the other one. */
export interface Resumable {
  readonly saved: (names: readonly string[]) => Promise<ReadonlyMap<string, SavedDocument>>;
  /** @param saved JSON of the other version's `Saved`, by experiments. @param ofAny whether another experiment's will do */
  readonly resumed: (
    saved: ReadonlyMap<string, string>,
    ofAny?: true,
  ) => Promise<ReadonlyMap<string, ResumedDocument>>;
}

/** Answers of the old version, and of the new one. */
export interface ResumptionAnswers {
  readonly saved: SavedDocument;
  readonly resumed: ResumedDocument | undefined;
}

/**
 * Asks the old version for its checkpoints, and then the new one whether it goes on from them.
 *
 * @param isAny of the experiments that go on from another name's checkpoints, too
 */
export async function resumptionsOf(
  names: readonly string[],
  old: Resumable,
  now: Resumable,
  isAny: (name: string) => boolean = () => false,
): Promise<Map<string, ResumptionAnswers>> {
  if (names.length === 0) return new Map();
  const saved = await old.saved(names);
  const texts = [...saved].flatMap(([name, document]) =>
    'saved' in document ? [[name, JSON.stringify(document.saved)] as const] : [],
  );
  const [own, any] = [false, true].map((ofAny) => new Map(texts.filter(([name]) => isAny(name) === ofAny)));
  const answers = [await now.resumed(own!), await now.resumed(any!, true)];
  const resumed = new Map(answers.flatMap((each) => [...each]));
  return new Map([...saved].map(([name, each]) => [name, { saved: each, resumed: resumed.get(name) }]));
}
