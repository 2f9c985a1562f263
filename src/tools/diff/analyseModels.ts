/** @file The models of two versions, as many as must be looked at. */
import { ModelKeys, roughSize } from './analysisPlan.js';
import { isSameConfig } from './compare.js';
import { effectsOf, hasEffect } from './effects.js';
import type { AnalysisDocument, ExperimentDocument } from './protocol.js';

/** The experiments of a version, and who analyses them. */
export interface Analysable {
  readonly documents: ReadonlyMap<string, ExperimentDocument>;
  readonly analyses: (names: readonly string[]) => Promise<ReadonlyMap<string, AnalysisDocument>>;
}

interface Analyses {
  readonly old: ReadonlyMap<string, AnalysisDocument>;
  readonly now: ReadonlyMap<string, AnalysisDocument>;
}

type Good = Extract<ExperimentDocument, { config: unknown }>;

/**
 * Analyses the experiments whose configs changed, and new ones. Where the configs are the same but code changed that
 * `isTouched` says models may be made of, it looks at one of all that differ in sizes alone, the smallest; if that is not
 * as it was, at all of them.
 */
export async function analyseModels(
  names: readonly string[],
  old: Analysable,
  now: Analysable,
  isTouched: (name: string) => boolean,
): Promise<Analyses> {
  const [oldSide, newSide] = [new Side(old), new Side(now)];
  const look = (asked: readonly string[]) => Promise.all([oldSide.look(asked), newSide.look(asked)]);
  const changed: string[] = [];
  const touched: string[] = [];
  for (const name of names) {
    const [before, after] = [old.documents.get(name), now.documents.get(name)];
    if (after === undefined || 'error' in after) continue;
    if (before === undefined || !isSameConfig(before, after)) changed.push(name);
    else if (isTouched(name)) touched.push(name);
  }
  const groups = newSide.alike(touched);
  await look([...changed, ...groups.map(([smallest]) => smallest!)]);
  const differing = groups.filter(([smallest]) =>
    isDifferent(oldSide.found.get(smallest!), newSide.found.get(smallest!)),
  );
  await look(differing.flat());
  return { old: oldSide.found, now: newSide.found };
}

function isDifferent(old: AnalysisDocument | undefined, now: AnalysisDocument | undefined): boolean {
  if (old === undefined || now === undefined) return old !== now;
  if ('analysis' in old && 'analysis' in now) return hasEffect(effectsOf(old.analysis, now.analysis));
  return 'analysis' in old || 'analysis' in now;
}

/** One version. Experiments with the same model are looked at once. */
class Side {
  readonly found = new Map<string, AnalysisDocument>();
  private readonly keys = new ModelKeys();
  private readonly byKey = new Map<string, AnalysisDocument>();

  constructor(private readonly version: Analysable) {}

  async look(names: readonly string[]): Promise<void> {
    const wanted = new Map<string, string>();
    const good = names.filter((name) => this.good(name) !== undefined);
    for (const name of good) {
      const key = this.keys.keyOf(this.good(name)!, true);
      if (!this.byKey.has(key) && !wanted.has(key)) wanted.set(key, name);
    }
    const answers = await this.version.analyses([...wanted.values()]);
    for (const [key, name] of wanted) this.byKey.set(key, answers.get(name)!);
    for (const name of good) this.found.set(name, this.byKey.get(this.keys.keyOf(this.good(name)!, true))!);
  }

  /** Groups of experiments whose models differ in sizes alone, the smallest first. */
  alike(names: readonly string[]): string[][] {
    const groups = new Map<string, [size: number, name: string][]>();
    for (const name of names) {
      const document = this.good(name)!;
      const key = this.keys.keyOf(document, false);
      const known = groups.get(key) ?? [];
      groups.set(key, known);
      known.push([roughSize(document), name]);
    }
    return [...groups.values()].map((group) => group.sort(([a], [b]) => a - b).map(([, name]) => name));
  }

  private good(name: string): Good | undefined {
    const document = this.version.documents.get(name);
    return document !== undefined && 'config' in document ? document : undefined;
  }
}
