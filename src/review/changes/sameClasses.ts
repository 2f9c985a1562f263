/**
 * @file Names of classes by which both versions of an experiment mean the same. An evaluator qualifies the name of a class
 * once it has loaded another one of that name: for the sake of another experiment, or in one version only.
 */

import type { DeclarationChange } from '../reports/diffReport.js';
import type { ConfigDocument, ExperimentPair, MadeExperiment } from '../versions/protocol.js';
import { DeclarationChanges } from './declarations.js';

/** The pairs with short names of classes where each version has one class of the name, and one qualified name elsewhere. */
export function withSameClasses(pairs: readonly ExperimentPair[]): {
  readonly pairs: readonly ExperimentPair[];
  /** Classes that have a namesake in their experiment now, and had none. */
  readonly qualified: readonly DeclarationChange[];
} {
  const qualified = new DeclarationChanges();
  const same = pairs.map(({ old, now }) => {
    const [before, after] = [namesakes(old.config), namesakes(now.config)];
    const oldNames = new Map<string, string>();
    const newNames = new Map<string, string>();
    for (const short of new Set([...before.keys(), ...after.keys()])) {
      const [olds, news] = [before.get(short) ?? [], after.get(short) ?? []];
      if (olds.length <= 1 && news.length <= 1) {
        for (const name of olds) oldNames.set(name, short);
        for (const name of news) newNames.set(name, short);
        continue;
      }
      // If one version has several, their names identify them.
      for (const name of olds) {
        const file = fileOf(old.config, name);
        const present = news.find((each) => file !== undefined && fileOf(now.config, each) === file);
        if (present === undefined) continue;
        if (olds.length > 1) newNames.set(present, name);
        else oldNames.set(name, present);
        if (olds.length === 1 && present !== short)
          qualified.note({ what: 'class', old: short, new: present, isShared: true }, undefined, now.name);
      }
    }
    return { old: renamed(old, oldNames), now: renamed(now, newNames) };
  });
  return { pairs: same, qualified: qualified.all };
}

/** The names of a document's classes by their short forms. */
function namesakes({ classes, configs }: ConfigDocument): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const name of new Set([...Object.keys(classes), ...configs.map((entry) => entry.class)])) {
    const short = name.slice(name.lastIndexOf('.') + 1);
    found.set(short, [...(found.get(short) ?? []), name]);
  }
  return found;
}

function fileOf({ classes }: ConfigDocument, name: string): string | undefined {
  return Object.hasOwn(classes, name) ? classes[name]!.lineage[0]?.file : undefined;
}

function renamed(experiment: MadeExperiment, names: ReadonlyMap<string, string>): MadeExperiment {
  const nameOf = (name: string): string => names.get(name) ?? name;
  const { config } = experiment;
  return {
    ...experiment,
    config: {
      ...config,
      configs: config.configs.map((entry) => ({ ...entry, class: nameOf(entry.class) })),
      classes: Object.fromEntries(Object.entries(config.classes).map(([name, cls]) => [nameOf(name), cls])),
    },
  };
}
