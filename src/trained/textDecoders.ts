/** @file Decoders of texts of a run: the queue of completions, with the tokenizer of prompts or the texts of sources. */
import type { CompileOptions } from '../compiler/index.js';
import { Constraints, type Decodable, isDecodable, type TokenBytes, targetPath } from '../decoding/index.js';
import { build, type Config, classOf, iterate } from '../hparams/index.js';
import {
  type BaseInput,
  BaseTokenizer,
  EncoderThread,
  recordedParts,
  withRecorded,
} from '../inputs/index.js';
import { checkRecorded, type FlatParams, recordedData, TRAIN, trainingDataset } from '../programs/index.js';
import type { JobOptions } from '../runs/index.js';
import type { SingleTask } from '../tasks/index.js';
import { ChatRenderer, type ChatTemplateText } from './chat/chatRenderer.js';
import { chatTemplateOf, plainTemplate } from './chat/runTemplate.js';
import { type DecodeQueue, RowQueue, WholeQueue } from './decodeQueue.js';
import type { Specs } from './predictions.js';
import { RequestError } from './requestError.js';
import type { RunDocument } from './runDocument.js';
import { exampleDataset, specsByPath } from './runExamples.js';
import { SourceTexts } from './sourceTexts.js';

/** A decoder of completions, and its tokenizer. */
export interface Continuing {
  readonly tokenizer: BaseTokenizer;
  /** The same tokenizer, in a thread. */
  readonly encoder: EncoderThread;
  readonly queue: DecodeQueue;
  /** Compiler of constraints on the vocabulary. */
  readonly constraints: Constraints;
  readonly seqlen: number;
  readonly chat: ChatRenderer;
}

/** A decoder of completions from sources, and their texts. */
export interface Translating extends Pick<Continuing, 'queue' | 'constraints' | 'seqlen' | 'chat'> {
  readonly texts: SourceTexts;
}

/** A restored run. */
export interface TextParts {
  readonly document: RunDocument;
  readonly options: JobOptions;
  readonly task: SingleTask;
  readonly params: FlatParams;
  /** Completions that are decoded at once. */
  readonly rows: number;
  /** Jinja, in the place of the run's own chat template. */
  readonly chatTemplate?: string | undefined;
  /** Tokens of all rows, at most. */
  readonly cacheTokens?: number | undefined;
  /** Of training's batches. */
  readonly batchSpecs: Specs | undefined;
  readonly compileOptions: (name: string) => CompileOptions;
}

/** The tokenizer of a dataset, with the vocabulary that training recorded, and its config; undefined where it has none. */
function tokenizerOf(
  dataset: Config<BaseInput>,
  directory: string,
): { readonly config: Config<BaseTokenizer>; readonly tokenizer: BaseTokenizer } | undefined {
  const recorded = recordedData(directory, TRAIN) ?? {};
  const fixed = withRecorded(dataset, recorded);
  const parts = iterate(fixed, { defaults: true }).map(({ config }) => config);
  const found = parts.find((part) => classOf(part).prototype instanceof BaseTokenizer);
  if (found === undefined) return undefined;
  const config = found as Config<BaseTokenizer>;
  const tokenizer = build(config);
  checkRecorded(directory, recorded, recordedParts(tokenizer));
  return { config, tokenizer };
}

function newQueue(
  { task, params, rows, cacheTokens, compileOptions }: TextParts,
  texts: {
    readonly model: Decodable;
    readonly seqlen: number;
    readonly hasText: (id: number) => boolean;
    readonly tokenBytes: TokenBytes;
    readonly source?: Specs;
  },
): Pick<Continuing, 'queue' | 'constraints'> {
  const { decoder } = task.hp.decode.hp;
  const { hasText, tokenBytes, ...others } = texts;
  const constraints = new Constraints(texts.model.vocabSize, tokenBytes, decoder.eosIds);
  const mayDraw = (id: number) => decoder.eosIds.has(id) || hasText(id);
  const { seqlen } = others;
  if (cacheTokens !== undefined && !(Number.isInteger(cacheTokens) && cacheTokens >= seqlen))
    throw new RequestError(
      `loadRun: cacheTokens: expected an integer from ${seqlen}, the tokens of one text with its prompt, got ${cacheTokens}.`,
    );
  const options = { ...others, params, rows, cacheTokens, mayDraw, compileOptions };
  const queue = decoder.drawsByRow ? new RowQueue(options) : new WholeQueue(options, decoder, constraints);
  return { queue, constraints };
}

const chatOf = ({ chatTemplate }: TextParts, find: () => ChatTemplateText): ChatRenderer =>
  new ChatRenderer(() => {
    if (chatTemplate === undefined) return find();
    return { ...find(), text: chatTemplate, origin: 'the option chatTemplate' };
  });

/** Of an encoder-decoder whose input makes sources of texts; null for other runs. */
export function translating(parts: TextParts): Translating | null {
  const { document, options, task } = parts;
  const { model } = task;
  if (!isDecodable(model) || model.nested === undefined) return null;
  const dataset = exampleDataset({ document }, recordedData(options.jobLogDir, TRAIN) ?? {});
  const specs = specsByPath(dataset);
  const texts = SourceTexts.of(model, build(dataset), specs);
  if (texts === null) return null;
  const seqlen = task.hp.decode.hp.decoder.hp.seqlen || specs![targetPath(model, 'ids')]!.shape[1]!;
  const hasText = (id: number) => texts.hasText(id);
  const tokenBytes = (id: number) => texts.tokenBytes(id);
  const queue = newQueue(parts, { model, seqlen, hasText, tokenBytes, source: texts.specs });
  return { texts, seqlen, ...queue, chat: chatOf(parts, () => plainTemplate) };
}

/** Of a language model on text. @throws RequestError for a run that continues no text */
export function continuing(parts: TextParts): Continuing {
  const { document, options, task, batchSpecs } = parts;
  const { model } = task;
  const { name } = document;
  if (!isDecodable(model) || model.begin !== undefined) {
    const reason = isDecodable(model)
      ? `begins a decode with ${(model.promptNames ?? []).join(', ')} of a batch`
      : 'continues no text: it lacks initialDecodeState and extendStep';
    throw new RequestError(`${name} has a ${model.constructor.name}, which ${reason}. Use predict.`);
  }
  const dataset = trainingDataset(document);
  const found = tokenizerOf(dataset, options.jobLogDir);
  if (found === undefined)
    throw new RequestError(
      `${name} is trained on ${classOf(dataset).name}, which has no tokenizer: its ids have no text. Use predict.`,
    );
  const seqlen = task.hp.decode.hp.decoder.hp.seqlen || batchSpecs?.ids?.shape[1];
  if (seqlen === undefined)
    throw new RequestError(`${name} doesn't set the length of its texts: set task.decode.decoder.seqlen.`);
  const { config, tokenizer } = found;
  const hasText = (id: number) => tokenizer.hasText(id);
  const tokenBytes = (id: number) => tokenizer.tokenBytes(id);
  const queue = newQueue(parts, { model, seqlen, hasText, tokenBytes });
  const encoder = new EncoderThread(config, options.moduleUrl === '' ? [] : [options.moduleUrl]);
  const chat = chatOf(parts, () => chatTemplateOf(dataset, config, tokenizer));
  return { tokenizer, encoder, seqlen, chat, ...queue };
}
