/** @file Configs as another version's code can build them: explicit values, and the defaults of every class among them. */
import type { ConfiguredExperiment } from '../../cli/index.js';
import {
  type AnyConfig,
  classOf,
  copyWith,
  fromJSON,
  isSet,
  iterate,
  type JsonDocument,
  toJSON,
} from '../../hparams/index.js';

/** The configs of an experiment. */
export type Configs = Pick<ConfiguredExperiment, 'task' | 'datasets' | 'decodeDatasets'>;

/** A class's name in documents, and its defaults by field, each a document as text; those without a form are absent. */
interface Defaults {
  readonly name: string;
  readonly values: Readonly<Record<string, string>>;
}

interface Written {
  readonly configs: JsonDocument;
  /** By classes' names. */
  readonly defaults: Readonly<Record<string, Defaults['values']>>;
}

const known = new Map<unknown, Defaults>();

function textOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(toJSON(value, { modules: false }));
  } catch {
    // A function, say: the code that is compared has it.
    return undefined;
  }
}

/** The defaults of a config's class. */
function defaultsOf(config: AnyConfig): Defaults {
  const cls = classOf(config);
  let found = known.get(cls);
  if (found === undefined) {
    const shell = copyWith(config, {}) as Record<string, unknown>;
    for (const name of Object.keys(shell)) if (isSet(shell as AnyConfig, name as never)) delete shell[name];
    const name = toJSON(shell, { modules: false }).configs.at(-1)!.class;
    const values = Object.keys(shell).flatMap((field) => {
      const text = textOf(shell[field]);
      return text === undefined ? [] : [[field, text] as const];
    });
    known.set(cls, (found = { name, values: Object.fromEntries(values) }));
  }
  return found;
}

const everyConfig = (root: unknown): AnyConfig[] =>
  [...iterate(root, { defaults: true })].map(({ config }) => config as AnyConfig);

/** The configs as values that documents hold. */
const rootsOf = ({ task, datasets, decodeDatasets }: Configs) => ({
  task,
  datasets: [...datasets],
  decodeDatasets: [...decodeDatasets],
});

/** @throws ConfigError for values without a form */
export function writeConfigs(configs: Configs): string {
  const root = rootsOf(configs);
  const defaults = everyConfig(root).map((config) => {
    const { name, values } = defaultsOf(config);
    return [name, values] as const;
  });
  const written: Written = {
    configs: toJSON(root, { modules: false }),
    defaults: Object.fromEntries(defaults),
  };
  return JSON.stringify(written);
}

/** Sets the fields whose default was another one where the configs were written. */
function adopt(config: AnyConfig, defaults: Written['defaults']): boolean {
  const own = defaultsOf(config);
  const fields = config as Record<string, unknown>;
  const others = Object.entries(defaults[own.name] ?? {}).filter(
    ([field, text]) => field in config && !isSet(config, field as never) && own.values[field] !== text,
  );
  for (const [field, text] of others) fields[field] = fromJSON(JSON.parse(text) as JsonDocument);
  return others.length > 0;
}

/**
 * The configs, by this version's classes. Nobody set a field that is missing here, so it stays away; a default that differs
 * is set, as code is compared and not what it does with other numbers.
 *
 * @throws ConfigError for classes or set fields that this version lacks, and values that it refuses
 */
export function readConfigs(text: string): Configs {
  const { configs, defaults } = JSON.parse(text) as Written;
  const root = fromJSON(configs);
  // A default that is set may have configs with defaults of their own.
  for (let isOpen = true; isOpen; ) {
    const adopted = everyConfig(root).map((config) => adopt(config, defaults));
    isOpen = adopted.includes(true);
  }
  return root as Configs;
}
