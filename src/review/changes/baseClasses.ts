/** @file Base classes that added experiments are shown against, as the working tree has them. */

import type { Evaluator } from '../versions/evaluators.js';
import { type Change, type ExperimentDocument, type MadeExperiment, made } from '../versions/protocol.js';
import type { Sources } from '../versions/sources.js';
import { tidyPlace } from '../versions/versionTree.js';
import type { Version } from './compare.js';

/** Baseline of an added experiment. */
export interface Base extends Version {
  /** The base class: as an experiment (`lm.Small`) where it is one; absent where none has configs of its own. */
  readonly name?: string;
}

/** The nearest base class with configs of each experiment; if there is none, an empty experiment. */
export async function baseClasses(
  names: readonly string[],
  documents: ReadonlyMap<string, ExperimentDocument>,
  { evaluator, sources }: { readonly evaluator: Evaluator; readonly sources: Sources },
  changes: readonly Change[],
): Promise<Map<string, Base>> {
  const able = names.filter((name) => made(documents.get(name)) !== undefined);
  const bases = await evaluator.configs({ names: able, changes, ofBase: true, processes: 1 });
  const found = able.filter((name) => made(bases.get(name)) !== undefined);
  const analyses = await evaluator.analyses({ names: found, changes, ofBase: true, processes: 1 });
  return new Map(
    able.map((name): [string, Base] => {
      const base = made(bases.get(name));
      if (base === undefined) return [name, { document: withoutValues(made(documents.get(name))!) }];
      return [name, { name: nameOf(base, sources), document: base, analysis: analyses.get(name) }];
    }),
  );
}

function nameOf({ declared }: MadeExperiment, { experiments, tree }: Sources): string {
  // A Node without an inspector gives no files.
  if (declared === undefined) return 'its base class';
  const { name, file } = declared;
  const found = [...experiments.values()].find(
    ({ exportName, place }) => exportName === name && place.file === file,
  );
  return found?.name ?? `${name} of ${tidyPlace(file, tree)}`;
}

function withoutValues({ name, config }: MadeExperiment): MadeExperiment {
  const root = config.configs[(config.root as { $config: number }).$config]!;
  const nothing = { class: root.class, values: {}, defaults: [], places: {} };
  return {
    name,
    constants: [],
    formerConstants: {},
    config: { root: { $config: 0 }, configs: [nothing], classes: {} },
  };
}
