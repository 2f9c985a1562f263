/** @file Agreement of an input's settings with the model's and with those of other inputs, compared before the first step. */
import type { Executable } from '../compiler/index.js';
import { isDecodable, targetPath } from '../decoding/index.js';
import { ConfigError } from '../hparams/index.js';
import type { BaseInput, DataIdentity, InputSource } from '../inputs/index.js';
import type { SingleTask } from '../tasks/index.js';

/**
 * Compares what an input says of its rows with the settings of a model over tokens. Other models say nothing of the rows that
 * they read.
 *
 * @throws ConfigError that names both settings
 */
export function checkAgreement({ model }: SingleTask, input: BaseInput): void {
  const settings = model.rowSettings;
  if (settings === null) return;
  const { packedInput, modelType, usePaddings } = settings;
  const at = `task.model.${settings.field}`;
  const disagreement = (field: string, problem: string): ConfigError =>
    new ConfigError(problem, { path: `${at}.${field}` });
  const { packedBy, labels, isPadded } = input.rowTraits();
  const whose = `Input '${input.name}'`;
  if (packedBy !== undefined && !packedInput)
    throw disagreement(
      'packedInput',
      `${whose} packs several documents into a row (${packedBy} is true), and ${at}.packedInput is false: documents ` +
        `would attend to one another. Set ${at}.packedInput to true, or the input's ${packedBy} to false.`,
    );
  if (modelType !== 'bidirectional') return;
  if (labels === 'next tokens')
    throw disagreement(
      'modelType',
      `${whose} has labels that are the next tokens, and ${at}.modelType is 'bidirectional': every position would see ` +
        `its label. Set ${at}.modelType to 'causal', or give the input masked tokens (MaskedLanguageModelFeatures).`,
    );
  if (isPadded === true && !packedInput && !usePaddings)
    throw disagreement(
      'usePaddings',
      `${whose} fills rows up with padding, and ${at}.modelType is 'bidirectional' with usePaddings false: tokens would ` +
        `attend to padding. Set ${at}.usePaddings to true.`,
    );
}

/**
 * Checks that a model knows every id of an input; otherwise some later step would fail.
 *
 * @throws ConfigError
 */
export function checkVocabulary(
  { model }: SingleTask,
  input: Pick<InputSource, 'name' | 'vocabularyFor'>,
  { vocabSize, tokenizer }: DataIdentity,
): void {
  const { readIds } = model;
  for (const { path: array, count, field } of readIds) {
    // Of several arrays each has a vocabulary of its own.
    const ids = readIds.length === 1 ? vocabSize : input.vocabularyFor(array)?.vocabSize;
    if (ids === undefined || ids <= count) continue;
    const path = `task.model.${field}`;
    const ofInput = tokenizer === undefined ? 'the input' : `its tokenizer, ${tokenizer.class},`;
    throw new ConfigError(
      `Input '${input.name}': ${readIds.length === 1 ? ofInput : `'${array}'`} has ${ids} ids, and ${path} is ${count}: the model ` +
        `knows ids 0 to ${count - 1}. Set ${path} to ${ids} or more, or give the input a tokenizer with fewer ids.`,
      { path },
    );
  }
}

/** Says that a model that is decoded has ids without text, as padded vocabularies do; undefined where it has none. */
export function undrawnIds(
  { model, hp }: SingleTask,
  input: Pick<InputSource, 'vocabularyFor'>,
): string | undefined {
  if (!isDecodable(model)) return undefined;
  const { vocabSize } = model;
  const vocabulary = input.vocabularyFor(targetPath(model, 'ids'));
  if (vocabulary === null) return undefined;
  const { eosIds } = hp.decode.hp.decoder;
  const ids = Array.from({ length: vocabSize }, (_, id) => id);
  const without = ids.filter((id) => !vocabulary.hasText(id) && !eosIds.has(id));
  if (without.length === 0) return undefined;
  const count = without.length === 1 ? '1 has' : `${without.length} have`;
  return `Of the model's ${vocabSize} ids, ${count} no text in the vocabulary of the input (${without[0]}${without.length > 1 ? ' …' : ''}): decoders never draw such ids.`;
}

/**
 * Compares the classes of training's labels with those that the compiled step knows, and with those of other datasets:
 * ids of folders and of values follow from the data.
 *
 * @throws ConfigError for more classes than the model has, and for ids that mean other classes
 */
export function checkClasses(
  { indexLimits }: { readonly indexLimits: ReturnType<Executable['indexLimits']> },
  training: BaseInput,
  others: readonly BaseInput[],
): void {
  for (const [input, { limit, what, where }] of indexLimits) {
    const path = input.replace(/^(\d+\.)?batch\./, '');
    const classes = training.classNamesFor(path);
    if (classes === null) continue;
    if (classes.length > limit)
      throw new ConfigError(
        `Input '${training.name}': '${path}' has ${classes.length} classes, and the model's are ${what}${where}. ` +
          'Give the model as many classes as the input has.',
      );
    for (const other of others) checkNames(path, training, classes, other);
  }
}

function checkNames(path: string, training: BaseInput, classes: readonly string[], other: BaseInput): void {
  const names = other.classNamesFor(path);
  const id = names?.findIndex((name, i) => name !== classes[i]) ?? -1;
  if (id < 0) return;
  const known = classes[id] === undefined ? 'no class' : `'${classes[id]}'`;
  throw new ConfigError(
    `Input '${other.name}': id ${id} of '${path}' is class '${names![id]}', and in training, input '${training.name}', it is ` +
      `${known}: ids would mean other classes. Give both the same classes, in the same order.`,
  );
}
