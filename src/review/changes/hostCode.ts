/** @file Code that runs on the host: whether that of two versions differs, as far as a part of an experiment can run it. */
import type { FingerprintedPart } from '../fingerprints/fingerprintedParts.js';
import type { ConfigDocument, ConfigEntry, JsonValue, MadeExperiment } from '../versions/protocol.js';
import type { Sources } from '../versions/sources.js';
import { CodeSlices, type Root } from './codeSlices.js';
import type { HostCode } from './computed.js';

/** Where the configs of a part's host code are, and the base class of those that count. */
interface Place {
  readonly values: (config: ConfigDocument) => readonly (JsonValue | undefined)[];
  readonly base?: string;
}

const valuesOf = ({ configs }: ConfigDocument, config: JsonValue | undefined): ConfigEntry['values'] =>
  configs[(config as { $config: number }).$config]!.values;

const taskOf = (config: ConfigDocument): ConfigEntry['values'] =>
  valuesOf(config, valuesOf(config, config.root).task);

const places: Partial<Record<FingerprintedPart, Place>> = {
  input: {
    values: (config) => {
      const { datasets, decodeDatasets } = valuesOf(config, config.root);
      return [datasets, decodeDatasets];
    },
  },
  'optimizer update': { values: ({ root }) => [root], base: 'BaseSchedule' },
  evaluation: { values: (config) => [taskOf(config).evalMetrics] },
  'initial values': { values: ({ root }) => [root], base: 'WeightInit' },
  decoding: { values: (config) => [taskOf(config).decode] },
  programs: {
    values: (config) => {
      const { earlyStoppingFn, infer, inferWriter } = taskOf(config);
      return [earlyStoppingFn, infer, inferWriter];
    },
  },
};

/** The classes among values, each by its lineage, the nearest first; functions as values have no declaration. */
function rootsIn(
  { configs, classes }: ConfigDocument,
  { values, base }: Place,
  all: ConfigDocument,
): Root[][] {
  const found = new Set<number>();
  const roots: Root[][] = [];
  const visit = (value: JsonValue | undefined): void => {
    if (typeof value !== 'object' || value === null) return;
    const record = value as Record<string, JsonValue>;
    const [mark] = Object.keys(record);
    const number = record.$config as number | undefined;
    if (number === undefined) {
      if (base === undefined && ['$constant', '$container', '$class', '$text'].includes(mark ?? ''))
        roots.push([]);
      Object.values(record).forEach(visit);
    } else if (!found.has(number)) {
      found.add(number);
      const { class: name, values: inner } = configs[number]!;
      const lineage = classes[name]?.lineage ?? [];
      if (base === undefined || lineage.some((each) => each.name === base)) roots.push([...lineage]);
      Object.values(inner).forEach(visit);
    }
  };
  for (const value of values(all)) visit(value);
  return roots;
}

/** Host code of two versions. */
export class HostCodes implements HostCode {
  private readonly slices: Readonly<Record<'old' | 'now', CodeSlices>>;

  /** @param changed files, from the root of the repository */
  constructor(old: Sources, now: Sources, changed: ReadonlySet<string>) {
    this.slices = {
      old: new CodeSlices(old, changed, now.tree.root),
      now: new CodeSlices(now, changed, now.tree.root),
    };
  }

  differs(part: FingerprintedPart | 'experiment', old: MadeExperiment, now: MadeExperiment): boolean {
    const place = part === 'experiment' ? undefined : places[part];
    if (place === undefined && part !== 'experiment') return false;
    const of = (side: 'old' | 'now', { config, declared }: MadeExperiment): string => {
      const slices = this.slices[side];
      if (place === undefined) return slices.textOf(declared === undefined ? [] : [declared]);
      // What a function that stands as a value does is told by the files that the experiment loads.
      const roots = rootsIn(config, place, config).map((lineage) =>
        lineage.length > 0 || declared === undefined ? lineage : [declared],
      );
      return slices.textOf(roots.flat());
    };
    return of('old', old) !== of('now', now);
  }
}
