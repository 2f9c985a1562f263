/** @file The chat template of a run: that of its training, or of the model that it was imported from. */
import { dirname } from 'node:path';
import { type Config, classOf, iterate } from '../../hparams/index.js';
import {
  type BaseInput,
  type BaseTokenizer,
  findChatTemplate,
  PretrainedTokenizer,
  RenderChat,
} from '../../inputs/index.js';
import type { ChatTemplateText } from './chatRenderer.js';

/** For models that were trained on texts alone: they continue the messages, of which each begins a line. */
const PLAIN = `{{ messages | map(attribute='content') | join('\\n') }}`;

/** The chat template of a run that has none. */
export const plainTemplate: ChatTemplateText = { text: PLAIN, origin: 'runs that have none', variables: {} };

/**
 * The template by which training rendered chats; or the one beside the tokenizer's file, as published models have it; or
 * `plainTemplate`.
 *
 * @throws ConfigError for a file that can't be read
 */
export function chatTemplateOf(
  dataset: Config<BaseInput>,
  config: Config<BaseTokenizer>,
  tokenizer: BaseTokenizer,
): ChatTemplateText {
  const textOf = (id: number | null): string => (id === null ? '' : tokenizer.decode([id]));
  const special = { bos_token: textOf(tokenizer.bosId), eos_token: textOf(tokenizer.eosId) };
  const parts = iterate(dataset, { defaults: true }).map((each) => each.config);
  const trained = parts.find((part) => classOf(part) === RenderChat) as Config<RenderChat> | undefined;
  if (trained) {
    const { template: text, variables } = trained;
    return { text, origin: "the run's RenderChat", variables: { ...special, ...variables } };
  }
  const folder =
    classOf(config) === PretrainedTokenizer ? dirname((config as Config<PretrainedTokenizer>).file) : null;
  const found = folder === null ? undefined : findChatTemplate(folder);
  return found ? { text: found, origin: folder!, variables: special } : plainTemplate;
}
