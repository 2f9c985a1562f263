/** @file A run as the folder of a published model, which transformers loads, or as an adapter of PEFT. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { holdsWeights, WeightFiles, type WrittenTensor, writeTensors } from '../../checkpoints/index.js';
import { loadBackend, type NarrowArray, sizeOf, type Tensor, tf, widen } from '../../compiler/index.js';
import { makeDirectory, readRegularFile, writeWhole } from '../../files/index.js';
import { build, type Config, ConfigError, classOf } from '../../hparams/index.js';
import {
  LORA_VARIABLES,
  type LoraLayer,
  listVariables,
  loraLayers,
  type TransformerLm,
} from '../../layers/index.js';
import { wholePath } from '../../learners/index.js';
import {
  type BaseModel,
  LanguageModel,
  type NameRules,
  nameRulesOf,
  networkDifferences,
  pretrainedModel,
  publishedSettings,
  unknownFamily,
} from '../../models/index.js';
import {
  adapterNames,
  asStored,
  type KnownShapes,
  keptTensors,
  type PublishedTensor,
  type PublishedTensors,
  publishedTensors,
  tensorValues,
} from '../../programs/index.js';
import type { TrainedRun } from '../trainedRun.js';
import { ADAPTER_CONFIG, ADAPTER_WEIGHTS, adapterText } from './adapterSettings.js';
import { copyPublished, KEPT, PUBLISHED, readShapes } from './publishedFiles.js';

/** Options of an export. */
export interface PublishOptions {
  /** The run's directory. */
  readonly directory: string;
  /** The folder to write. */
  readonly out: string;
  /** Folder with the config.json of the run's network; default: that which the run was imported or started from. */
  readonly config?: string | undefined;
  /** Type of the tensors; default: as checkpoints hold them. */
  readonly dtype?: WrittenTensor['dtype'] | undefined;
}

/** An export that is done. */
export interface Published {
  readonly tensors: number;
  /** Elements of all tensors. */
  readonly count: number;
  /** Names of the files. */
  readonly files: readonly string[];
}

/**
 * Writes config.json, model.safetensors and the files that lay beside them. Changes of LoRA are added to the weights.
 *
 * @throws ConfigError where no config.json is known, or that of another network, with all that differs; CheckpointError where
 *   files can't be written
 */
export async function exportHuggingFace(run: TrainedRun, options: PublishOptions): Promise<Published> {
  const { out, dtype } = options;
  const folder = settingsFolder(run, options);
  const names = familyNames(folder);
  const written = checkNetwork(run, folder);
  // Changes of LoRA are products.
  if (loraLayers(run.task.model).size > 0) await loadBackend('cpu');
  const own = written.tensors.map((tensor) => writtenTensor(run, tensor, dtype));
  makeDirectory(out);
  const copied = copyPublished(folder, out);
  const source = openKept(folder, names);
  const others = keptTensors(source?.names ?? [], names, new Set(own.map(({ name }) => name)));
  const tensors = [...own, ...others.map((name) => asStored(source!, name, own[0]!.dtype))];
  try {
    writeTensors(join(out, 'model.safetensors'), tensors, { format: 'pt' });
  } finally {
    source?.close();
  }
  writeWhole(join(out, 'config.json'), settingsText(folder, tensors[0]!.dtype));
  return summary(tensors, [...copied, 'model.safetensors']);
}

/** The tensors of a run as Hugging Face has them. @throws ConfigError where its network is not that of the folder's config.json */
export function checkNetwork(run: TrainedRun, folder: string): PublishedTensors {
  const names = familyNames(folder);
  const entries = run.params.layout.entries.filter(({ name }) => !isFactor(name));
  const known = readShapes(folder);
  const written = publishedTensors(entries, names, known);
  const problems = [...written.problems, ...differences(run, folder, names, known, written.tensors)];
  if (problems.length > 0) throw unfit(`The network is not that of ${join(folder, 'config.json')}`, problems);
  return written;
}

/**
 * Writes the factors of a run's LoRA as an adapter; modules whose factors are all 0 are left out.
 *
 * @throws ConfigError for a run without LoRA, or whose layers have several ranks; else as `exportHuggingFace`
 */
export function exportAdapter(run: TrainedRun, options: PublishOptions): Published {
  const { out, dtype } = options;
  const folder = settingsFolder(run, options);
  const { model } = run.task;
  const settings = [...loraLayers(model).values()].map(loraSettings);
  const [first, ...others] = new Map(settings.map((each) => [JSON.stringify(each), each])).values();
  if (first === undefined)
    throw new ConfigError(`${run.name} has no LoRA: --format=huggingface writes its weights.`);
  if (others.length > 0)
    throw new ConfigError(
      `${run.name}: an adapter has one rank and one alpha, and the run has ${others.length + 1}.`,
    );
  const factors = adapterNames(model, familyNames(folder));
  const floats = floatsIn(run);
  const isUsed = ({ name }: { readonly name: string }): boolean => {
    const stem = name.slice(0, -1);
    return ['a', 'b'].some((factor) => floats(stem + factor).some((value) => value !== 0));
  };
  const entries = run.params.layout.entries.filter((entry) => isFactor(entry.name) && isUsed(entry));
  const written = publishedTensors(entries, factors.names);
  const problems = [...factors.problems, ...written.problems];
  if (problems.length > 0) throw unfit('An adapter has no place for all factors', problems);
  const tensors = written.tensors.map((tensor) => writtenTensor(run, tensor, dtype));
  makeDirectory(out);
  writeTensors(join(out, ADAPTER_WEIGHTS), tensors, { format: 'pt' });
  const modules = new Set(tensors.map(({ name }) => name.split('.').at(-3)!));
  writeWhole(join(out, ADAPTER_CONFIG), adapterText(first, [...modules], folder));
  return summary(tensors, [ADAPTER_CONFIG, ADAPTER_WEIGHTS]);
}

/** The file of an import with the tensors that it keeps, or the weights of a published model; undefined without either, or a need of one. */
function openKept(folder: string, { kept }: NameRules): WeightFiles | undefined {
  const found = kept && [join(folder, KEPT), folder].find(holdsWeights);
  return found === undefined ? undefined : WeightFiles.open(found);
}

export const isFactor = (path: string): boolean => wholePath(LORA_VARIABLES).test(path);

function loraSettings(layer: LoraLayer) {
  const { rank, alpha } = layer.hp as unknown as { readonly rank: number; readonly alpha: number | null };
  return { rank, alpha: alpha ?? rank };
}

/** The folder with the config.json of the run's network. */
export function settingsFolder(
  { name, document }: TrainedRun,
  { directory, config }: Pick<PublishOptions, 'directory' | 'config'>,
): string {
  const starts = document.task.train.initFromCheckpoint.map(({ checkpoint }) => checkpoint);
  const candidates =
    config === undefined ? [directory, ...starts].flatMap((path) => [join(path, PUBLISHED), path]) : [config];
  const found = candidates.find((path) => existsSync(join(path, 'config.json')));
  if (found !== undefined) return found;
  throw new ConfigError(
    `${name}: no config.json of its network in ${candidates.join(', ')}. Give the folder of one by --config=DIR.`,
  );
}

const familyNames = (folder: string): NameRules => {
  const settings = publishedSettings(folder)!;
  if (settings.family === undefined) throw new ConfigError(unknownFamily(settings));
  return nameRulesOf(settings.family);
};

/** What a number stands between while it is text. */
const MARK = '\uE000';

/** A config.json for tensors of a type. Numbers are written as they were: transformers refuses 4 where it expects 4.0. */
function settingsText(folder: string, dtype: WrittenTensor['dtype']): string {
  const text = readRegularFile(join(folder, 'config.json')).toString();
  const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) =>
    token.startsWith('"') ? token : `"${MARK}${token}${MARK}"`,
  );
  const { quantization_config: _, ...settings } = JSON.parse(marked);
  const held = { [Object.hasOwn(settings, 'torch_dtype') ? 'torch_dtype' : 'dtype']: dtype };
  const written = JSON.stringify({ ...settings, ...held }, null, 2);
  return `${written.replaceAll(new RegExp(`"${MARK}([^"]*)${MARK}"`, 'g'), '$1')}\n`;
}

/** Differences between a run's network and that of a config.json, a line each. */
function differences(
  run: TrainedRun,
  folder: string,
  names: NameRules,
  known: KnownShapes | undefined,
  ours: readonly PublishedTensor[],
): string[] {
  const published = pretrainedModel(folder, 'all');
  const variables = listVariables(build(published)).map(({ path, shape }) => ({ name: path, shape }));
  const theirs = publishedTensors(variables, names, known).tensors;
  const [here, there] = [ours, theirs].map(
    (tensors) => new Map(tensors.map(({ name, shape }) => [name, `[${shape.join(', ')}]`])),
  ) as [Map<string, string>, Map<string, string>];
  const shapes = [...new Set([...here.keys(), ...there.keys()])]
    .filter((name) => here.get(name) !== there.get(name))
    .map((name) => `'${name}' is ${here.get(name) ?? 'absent'}, there ${there.get(name) ?? 'absent'}.`);
  const [lm, lmThere] = [networkOf(run.document.task.model), networkOf(published)];
  return lm && lmThere ? [...shapes, ...networkDifferences(lm, lmThere)] : shapes;
}

const networkOf = (model: Config<BaseModel>): Config<TransformerLm> | undefined =>
  classOf(model) === LanguageModel ? (model as Config<LanguageModel>).lmTpl : undefined;

export const unfit = (what: string, problems: readonly string[]): ConfigError =>
  new ConfigError(`${what}:\n${problems.map((line) => `  ${line}`).join('\n')}`);

/** Values of a run's variables by path, as float32; those that LoRA changes with the change. */
export function floatsIn({ params, task }: TrainedRun): (variable: string) => Float32Array {
  const entries = new Map(params.layout.entries.map((entry) => [entry.name, entry]));
  const loras = loraLayers(task.model);
  const own = (name: string): Float32Array => {
    const [view, { storage }] = [params.views[name]!, entries.get(name)!];
    return storage === undefined
      ? (view as Float32Array)
      : (widen(view as NarrowArray, storage) as Float32Array);
  };
  return (name) => {
    const layer = loras.get(name);
    if (layer === undefined) return own(name);
    return tf.tidy(() => {
      const values = [...layer.variables].map(([part, { path, shape }]) => [
        part,
        tf.tensor(own(path), [...shape], 'float32') as Tensor,
      ]);
      return layer.merged(Object.fromEntries(values)).dataSync() as Float32Array;
    });
  };
}

function writtenTensor(
  run: TrainedRun,
  tensor: PublishedTensor,
  dtype: PublishOptions['dtype'],
): WrittenTensor {
  const storages = new Map(run.params.layout.entries.map(({ name, storage }) => [name, storage]));
  const isNarrow = tensor.sources.every(({ variable }) => storages.get(variable) === 'bfloat16');
  return {
    ...{ name: tensor.name, shape: tensor.shape, dtype: dtype ?? (isNarrow ? 'bfloat16' : 'float32') },
    values: () => tensorValues(tensor, floatsIn(run)),
  };
}

export const summary = (
  tensors: readonly { readonly shape: readonly number[] }[],
  files: readonly string[],
): Published => ({
  ...{ tensors: tensors.length, files: [...new Set(files)] },
  count: tensors.reduce((sum, { shape }) => sum + sizeOf(shape), 0),
});
