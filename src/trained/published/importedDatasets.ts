/** @file Datasets of a run that is imported, by its model: what is predicted, evaluated and trained on. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, classOf } from '../../hparams/index.js';
import {
  type BaseInput,
  ClassFeature,
  CsvSource,
  PretrainedTokenizer,
  RecordInput,
  SyntheticLmInput,
  TextFeature,
  TextInput,
} from '../../inputs/index.js';
import {
  type BaseModel,
  ClassificationModel,
  LanguageModel,
  TextEmbeddingModel,
} from '../../models/index.js';
import type { SingleTask } from '../../tasks/index.js';
import {
  modelSettings,
  readSettings,
  sentenceSettings,
  tokenizerSettings,
  tokensBeforeText,
  tokenText,
} from './publishedFiles.js';

/** Tokens of a row, at most. */
const ROW_LENGTH = 512;

/** An imported model, and the settings of its data. */
interface Subject {
  readonly model: Config<BaseModel>;
  /** The copies of the files that lay beside the weights. */
  readonly folder: string;
  /** Tokens of a row. */
  readonly length: number;
  readonly files: readonly string[] | undefined;
}

/** The first kind that a model is of counts. */
const KINDS: readonly [typeof BaseModel, (subject: Subject) => Config<BaseInput>[]][] = [
  [LanguageModel, textDatasets],
  [
    TextEmbeddingModel,
    (subject) => recordDatasets(subject, () => ({ positive: textOf(subject, 'positive') })),
  ],
  [ClassificationModel, (subject) => recordDatasets(subject, () => ({ labels: classesOf(subject) }))],
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
  const file = join(folder, 'tokenizer.json');
  if (!existsSync(file)) {
    const { vocabSize } = (model as Config<LanguageModel>).lmTpl;
    return [SyntheticLmInput.config({ ...rows, name: 'train', isTraining: true, vocabSize })];
  }
  const { eos_token, bos_token, pad_token } = readSettings(folder, tokenizerSettings) ?? {};
  const tokenizer = PretrainedTokenizer.config({
    file,
    eosToken: tokenText(eos_token),
    bosToken: tokenText(bos_token),
    padToken: tokenText(pad_token),
    promptTokens: tokensBeforeText(folder),
  });
  const texts = { ...rows, files: [...files], tokenizer };
  return [
    TextInput.config({ ...texts, name: 'train', isTraining: true, split: 'train' }),
    TextInput.config({ ...texts, name: 'validation', split: 'validation' }),
  ];
}

/** Tables with a column of texts, and what belongs to each; none where the model reads no texts. */
function recordDatasets(
  subject: Subject,
  labels: () => Readonly<Record<string, Config<TextFeature> | Config<ClassFeature>>>,
): Config<BaseInput>[] {
  const { folder, files = ['*.csv'] } = subject;
  if (!existsSync(join(folder, 'tokenizer.json'))) return [];
  const source = CsvSource.config({ files: [...files] });
  const features = { text: textOf(subject, 'text'), ...labels() };
  const tables = { source, features, batchSize: 8 };
  return [
    RecordInput.config({ ...tables, name: 'train', isTraining: true, split: 'train' }),
    RecordInput.config({ ...tables, name: 'validation', split: 'validation' }),
  ];
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

/** Classes by their names in config.json. */
function classesOf({ model, folder }: Subject): Config<ClassFeature> {
  const names = readSettings(folder, modelSettings)?.id2label ?? {};
  const { numClasses } = (model as Config<ClassificationModel>).softmaxTpl;
  const classes = Array.from({ length: numClasses }, (_, id) => names[id] ?? `LABEL_${id}`);
  return ClassFeature.config({ column: 'label', classes });
}
