/** @file Datasets of a run that is imported, by its model: what is predicted, evaluated and trained on. */
import { join } from 'node:path';
import { type Config, classOf, deepCopy } from '../../hparams/index.js';
import {
  AppendEos,
  type BaseInput,
  ClassFeature,
  CsvSource,
  Feature,
  PretrainedTokenizer,
  SeqioInput,
  SequenceModelFeatures,
  SyntheticLmInput,
  Task,
  TextFeature,
  TextInput,
  Tokenize,
} from '../../inputs/index.js';
import { type ConvolutionalStem, VisionTransformer } from '../../layers/index.js';
import {
  type BaseModel,
  ClassificationModel,
  ClipModel,
  LanguageModel,
  SequenceModel,
  TextEmbeddingModel,
} from '../../models/index.js';
import type { SingleTask } from '../../tasks/index.js';
import { classNamesOf, firstTargetOf, recordDatasets, type Subject, tokenizerOf } from './importedData.js';
import { captionTables, imageDatasets, soundTables } from './importedMedia.js';
import {
  readSettings,
  sentenceSettings,
  tokenizerSettings,
  tokensBeforeText,
  tokenText,
} from './publishedFiles.js';

/** Tokens of a row, at most. */
const ROW_LENGTH = 512;

/** The first kind that a model is of counts. */
const KINDS: readonly [typeof BaseModel, (subject: Subject) => Config<BaseInput>[]][] = [
  [LanguageModel, textDatasets],
  [TextEmbeddingModel, (subject) => textTables(subject, () => ({ positive: textOf(subject, 'positive') }))],
  [SequenceModel, sequenceDatasets],
  [ClipModel, captionTables],
  [
    ClassificationModel,
    (subject) =>
      classOf((subject.model as Config<ClassificationModel>).networkTpl) === VisionTransformer
        ? imageDatasets(subject)
        : textTables(subject, () => ({ labels: classesOf(subject) })),
  ],
];

/** Datasets of an imported model; none for kinds whose data can't be told from the folder. */
export function importedDatasets(
  { model, decode }: Config<SingleTask>,
  folder: string,
  files: readonly string[] | undefined,
): Config<BaseInput>[] {
  const cls = classOf(model);
  const kind = KINDS.find(([each]) => cls === each || cls.prototype instanceof each);
  const length = Math.min(decode.decoder.seqlen, ROW_LENGTH);
  return kind === undefined ? [] : kind[1]({ model, folder, length, files });
}

/** Texts that the model's tokenizer encodes; random tokens where the folder has no tokenizer. */
function textDatasets({ model, folder, length: seqLen, files = ['*.txt'] }: Subject): Config<BaseInput>[] {
  const rows = { seqLen, batchSize: 1 };
  const tokenizer = tokenizerOf(folder);
  if (tokenizer === undefined) {
    const { vocabSize } = (model as Config<LanguageModel>).lmTpl;
    return [SyntheticLmInput.config({ ...rows, name: 'train', isTraining: true, vocabSize })];
  }
  tokenizer.promptTokens = tokensBeforeText(folder);
  const texts = { ...rows, files: [...files], tokenizer };
  return [
    TextInput.config({ ...texts, name: 'train', isTraining: true, split: 'train' }),
    TextInput.config({ ...texts, name: 'validation', split: 'validation' }),
  ];
}

/** Tables with a column of texts, and what belongs to each; none where the model reads no texts. */
function textTables(
  subject: Subject,
  labels: () => Readonly<Record<string, Config<TextFeature> | Config<ClassFeature>>>,
): Config<BaseInput>[] {
  if (tokenizerOf(subject.folder) === undefined) return [];
  return recordDatasets(subject, { text: textOf(subject, 'text'), ...labels() });
}

/** Ids of a column of texts, between the tokens that BERT has at their ends. */
function textOf({ folder, length }: Subject, column: string): Config<TextFeature> {
  const { cls_token, sep_token, pad_token } = readSettings(folder, tokenizerSettings) ?? {};
  const tokenizer = PretrainedTokenizer.config({
    file: join(folder, 'tokenizer.json'),
    bosToken: tokenText(cls_token),
    eosToken: tokenText(sep_token),
    padToken: tokenText(pad_token),
  });
  const most = readSettings(folder, sentenceSettings)?.max_seq_length ?? length;
  const ends = { addBos: cls_token != null, addEos: sep_token != null };
  return TextFeature.config({ column, tokenizer, length: Math.min(most, length), ...ends });
}

const classesOf = (subject: Subject): Config<ClassFeature> =>
  ClassFeature.config({ column: 'label', classes: classNamesOf(subject) });

/** Encoder-decoders, of texts, or of sounds where the network has a stem. */
function sequenceDatasets(subject: Subject): Config<BaseInput>[] {
  const tokenizer = tokenizerOf(subject.folder);
  if (tokenizer === undefined) return [];
  const { modelTpl } = subject.model as Config<SequenceModel>;
  const stem = modelTpl.encoderStemTpl as Config<ConvolutionalStem> | null;
  return stem === null ? pairDatasets(subject, tokenizer) : soundTables(subject, tokenizer, stem.inputDims);
}

/** Tables of inputs and targets, of which the last tenth is for validation. */
function pairDatasets(
  { folder, length, files = ['*.csv'] }: Subject,
  tokenizer: Config<PretrainedTokenizer>,
): Config<BaseInput>[] {
  const feature = () => Feature.config({ tokenizer: deepCopy(tokenizer) });
  const pairs = {
    mixtureOrTask: Task.config({
      source: CsvSource.config({ files: [...files] }),
      preprocessors: [Tokenize.config(), AppendEos.config()],
      features: { inputs: feature(), targets: feature() },
    }),
    taskFeatureLengths: { inputs: length, targets: length },
    featureConverter: SequenceModelFeatures.config({ bosId: firstTargetOf(folder) }),
    batchSize: 8,
  };
  return [
    SeqioInput.config({ ...pairs, name: 'train', isTraining: true, splitName: 'all[:90%]' }),
    SeqioInput.config({ ...pairs, name: 'validation', splitName: 'all[90%:]' }),
  ];
}
