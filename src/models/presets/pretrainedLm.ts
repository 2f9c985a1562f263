/** @file Published models, by the config.json beside their weights. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readRegularFile } from '../../files/index.js';
import { type Config, ConfigError, classOf, didYouMean } from '../../hparams/index.js';
import type { TransformerLm } from '../../layers/index.js';
import type { BaseModel } from '../baseModel.js';
import { LanguageModel } from '../languageModel.js';
import { bertFromSettings, bertNames } from './bert.js';
import { clipFromSettings, clipNames } from './clip.js';
import { deepseekV3FromSettings, deepseekV3Names } from './deepseekV3.js';
import { gemma2FromSettings, gemma3FromSettings, gemmaNames } from './gemma.js';
import { gpt2FromSettings, gpt2Names, gpt2Schema } from './gpt2.js';
import { gptOssFromSettings, gptOssNames } from './gptOss.js';
import { llamaFromSettings, llamaNames, llamaSchema } from './llama.js';
import { mixtralFromSettings, mixtralNames, mixtralSchema } from './mixtral.js';
import type { NameRules } from './nameRules.js';
import { olmo2FromSettings, olmo2Names } from './olmo2.js';
import { qwen2FromSettings, qwen2Schema } from './qwen2.js';
import { qwen3FromSettings, qwen3Names, qwen3Schema } from './qwen3.js';
import { qwen3NextFromSettings, qwen3NextNames } from './qwen3Next.js';
import { t5FromSettings, t5Names } from './t5.js';
import { recordReads } from './unreadSettings.js';
import { vitFromSettings, vitNames } from './vit.js';
import { whisperFromSettings, whisperNames } from './whisper.js';

/** A family of published models. */
interface PublishedFamily {
  /** Its model, by the settings of a config.json and the folder that this stands in. @throws ZodError */
  readonly model: (settings: unknown, folder: string) => Config<BaseModel>;
  readonly names: NameRules;
  /** The settings of a config.json with the family's defaults. @throws ZodError */
  readonly settings?: z.ZodType<Readonly<Record<string, unknown>>>;
}

/** A family of language models, by their network. */
const languageModels = (
  network: (settings: unknown) => Config<TransformerLm>,
  names: NameRules,
  settings?: PublishedFamily['settings'],
): PublishedFamily => ({
  model: (given) => LanguageModel.config({ lmTpl: network(given) }),
  names,
  ...(settings && { settings }),
});

/** By `model_type` of config.json. */
const families = {
  gpt2: languageModels(gpt2FromSettings, gpt2Names, gpt2Schema),
  llama: languageModels(llamaFromSettings, llamaNames, llamaSchema),
  qwen2: languageModels(qwen2FromSettings, llamaNames, qwen2Schema),
  qwen3: languageModels(qwen3FromSettings, qwen3Names, qwen3Schema),
  qwen3_next: languageModels(qwen3NextFromSettings, qwen3NextNames),
  mixtral: languageModels(mixtralFromSettings, mixtralNames, mixtralSchema),
  gemma2: languageModels(gemma2FromSettings, gemmaNames),
  gemma3_text: languageModels(gemma3FromSettings, gemmaNames),
  olmo2: languageModels(olmo2FromSettings, olmo2Names),
  gpt_oss: languageModels(gptOssFromSettings, gptOssNames),
  deepseek_v3: languageModels(deepseekV3FromSettings, deepseekV3Names),
  bert: { model: bertFromSettings, names: bertNames },
  t5: { model: t5FromSettings, names: t5Names },
  vit: { model: vitFromSettings, names: vitNames },
  clip: { model: clipFromSettings, names: clipNames },
  whisper: { model: whisperFromSettings, names: whisperNames },
} as const satisfies Readonly<Record<string, PublishedFamily>>;

export type PublishedFamilyName = keyof typeof families;

/** Families whose networks and weights are known, by `model_type` of config.json. */
export const publishedFamilies = Object.keys(families) as readonly PublishedFamilyName[];

/** Names of a family's weights. */
export const nameRulesOf = (family: PublishedFamilyName): NameRules => families[family].names;

/**
 * A published model, such as `save_pretrained` of transformers or the Hugging Face hub has it: a folder with config.json. Its
 * weights come by `CheckpointLoadingRules`, and its tokens by `PretrainedTokenizer`.
 *
 * @param folder relative to the process's own, or absolute.
 * @param ignoredFields paths of fields of config.json that may be passed over, though no preset reads them; or all.
 * @throws ConfigError where there is no config.json, for a model_type that has no counterpart here, and for settings that change
 *   the network, or may, in ways that ours has not.
 */
export function pretrainedModel(
  folder: string,
  ignoredFields: readonly string[] | 'all' = [],
): Config<BaseModel> {
  const settings = publishedSettings(folder);
  if (settings === undefined)
    throw new ConfigError(
      `${join(folder, 'config.json')} is missing: expected the folder of a published model.`,
    );
  return modelOfSettings(settings, folder, ignoredFields);
}

/** The model of settings, wherever they stand. @param folder with the other files of the model @throws as `pretrainedModel` */
export function modelOfSettings(
  settings: PublishedSettings,
  folder: string,
  ignoredFields: readonly string[] | 'all' = [],
): Config<BaseModel> {
  const { family, file } = settings;
  if (family === undefined) throw new ConfigError(unknownFamily(settings));
  const shown = (path: readonly PropertyKey[]): string => {
    const found = path.reduce<unknown>(
      (value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key],
      settings.json,
    );
    return `  ${path.join('.')} is ${JSON.stringify(found)}`;
  };
  const reads = recordReads(settings.json);
  const lines: string[] = [];
  try {
    const { model }: PublishedFamily = families[family];
    const made = model(reads.settings, folder);
    lines.push(...unreadLines());
    if (lines.length === 0) return made;
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error;
    lines.push(...error.issues.map(({ path, message }) => `${shown(path)}: ${message}`), ...unreadLines());
  }
  throw new ConfigError(
    `${file}: the network has no counterpart here, or the file is damaged:\n${lines.join('\n')}`,
  );

  function unreadLines(): string[] {
    const unread =
      ignoredFields === 'all' ? [] : reads.unread().filter((path) => !ignoredFields.includes(path));
    return unread.map(
      (path) => `${shown(path.split('.'))}: the field is not read, and may change the network's numbers`,
    );
  }
}

/** The settings of a config.json with its family's defaults; undefined where those are not told. @throws ZodError */
export function settingsWithDefaults({
  family,
  json,
}: PublishedSettings): Readonly<Record<string, unknown>> | undefined {
  const known: PublishedFamily | undefined = family && families[family];
  return known?.settings?.parse(json);
}

/** The network of a published language model. @throws ConfigError as `pretrainedModel`, and for a model of another kind */
export function pretrainedLm(folder: string): Config<TransformerLm> {
  const model = pretrainedModel(folder);
  if (classOf(model) === LanguageModel) return (model as Config<LanguageModel>).lmTpl;
  throw new ConfigError(
    `${join(folder, 'config.json')} is that of a ${classOf(model).name}: expected a language model; pretrainedModel takes any.`,
  );
}

/** A config.json. */
export interface PublishedSettings {
  readonly file: string;
  readonly modelType: string;
  /** The family of `modelType`; undefined for one that has no rules. */
  readonly family: PublishedFamilyName | undefined;
  readonly json: unknown;
}

/** The config.json of a folder, if there is one. @throws ConfigError for one that can't be read or has no model_type */
export function publishedSettings(folder: string): PublishedSettings | undefined {
  const file = join(folder, 'config.json');
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return undefined;
  let json: unknown;
  try {
    json = JSON.parse(readRegularFile(file).toString());
  } catch (error) {
    throw new ConfigError(`${file}: ${(error as Error).message}`);
  }
  const modelType = z.object({ model_type: z.string() }).safeParse(json).data?.model_type;
  if (modelType === undefined)
    throw new ConfigError(`${file} has no model_type: expected the config.json of a published model.`);
  return { file, modelType, family: publishedFamilies.find((name) => name === modelType), json };
}

/** The message for a family without rules. */
export const unknownFamily = ({ file, modelType }: PublishedSettings): string =>
  `${file}: models of model_type '${modelType}' are not known.${didYouMean(modelType, publishedFamilies)} ` +
  `Known are ${publishedFamilies.join(', ')}.`;
