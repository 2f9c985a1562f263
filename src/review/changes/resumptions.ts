/** @file Questions on how runs of one version go on in the other. */
import type { ResumedDocument, SavedDocument } from '../versions/protocol.js';

/** A version that says what its runs save, or goes on from what those of the other one do. */
export interface Resumable {
  readonly saved: (names: readonly string[]) => Promise<ReadonlyMap<string, SavedDocument>>;
  /** @param saved JSON of what the other version saves, by experiments. @param ofAny whether another experiment's will do */
  readonly resumed: (
    saved: ReadonlyMap<string, string>,
    ofAny?: true,
  ) => Promise<ReadonlyMap<string, ResumedDocument>>;
}

/** What the old version saves, and what the new one makes of it. */
export interface ResumptionAnswers {
  readonly saved: SavedDocument;
  readonly resumed: ResumedDocument | undefined;
}

/**
 * Asks the old version what it saves, and then the new one whether it goes on from that.
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
