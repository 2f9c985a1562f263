/** @file Datasets of imported models of images and sounds. */
import { build, type Config, ConfigError } from '../../hparams/index.js';
import {
  type BaseInput,
  ImageFeature,
  ImageFolder,
  ImageInput,
  type PretrainedTokenizer,
  SoundFeature,
  TargetFeature,
  TextFeature,
  WhisperLogMel,
} from '../../inputs/index.js';
import type { TrainablePositionalEmbedding, VisionTransformer, VitEntryLayers } from '../../layers/index.js';
import type { ClassificationModel, ClipModel } from '../../models/index.js';
import { classNamesOf, firstTargetOf, recordDatasets, type Subject, tokenizerOf } from './importedData.js';
import { generationSettings, modelSettings, preprocessorSettings, readSettings } from './publishedFiles.js';

/** Frames between two of the encoder's positions. */
const FRAMES = 2;

/** Tables of WAV files and their texts. */
export function soundTables(
  subject: Subject,
  tokenizer: Config<PretrainedTokenizer>,
  numMels: number,
): Config<BaseInput>[] {
  const { folder, length } = subject;
  const settings = readSettings(folder, preprocessorSettings);
  const {
    sampling_rate: sampleRate = 16_000,
    hop_length: hopSize = 160,
    n_fft: fftSize = 400,
  } = settings ?? {};
  const { max_source_positions } = readSettings(folder, modelSettings) ?? {};
  return recordDatasets(subject, {
    src: SoundFeature.config({
      column: 'sound',
      numSamples: FRAMES * (max_source_positions ?? 1500) * hopSize!,
      features: WhisperLogMel.config({
        sampleRate: sampleRate!,
        hopSize: hopSize!,
        fftSize: fftSize!,
        numMels,
      }),
      ...{ resample: true, padsWithSilence: true },
    }),
    tgt: TargetFeature.config({
      ...{ column: 'text', tokenizer, length },
      start: [firstTargetOf(folder), ...taskIds(folder, tokenizer)],
    }),
  });
}

/** Tokens with which Whisper is told to write English without times down. */
const TASK = ['<|en|>', '<|transcribe|>', '<|notimestamps|>'];

/** Their ids; models of English alone have no choice of language and task. */
function taskIds(folder: string, tokenizer: Config<PretrainedTokenizer>): number[] {
  const isMultilingual = readSettings(folder, generationSettings)?.is_multilingual ?? true;
  const ids = new Map(Array.from(build(tokenizer).specialTokens, ([id, text]) => [text, id]));
  return (isMultilingual ? TASK : TASK.slice(-1)).flatMap((token) => ids.get(token) ?? []);
}

/** Settings where no preprocessor_config.json has them: those of the processors of transformers. */
const PIXELS = {
  vit: { mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5], filter: 'bilinear' },
  clip: {
    mean: [0.48145466, 0.4578275, 0.40821073],
    std: [0.26862954, 0.26130258, 0.27577711],
    filter: 'bicubic',
  },
} as const;

/** Filters by Pillow's numbers. */
const FILTERS = { 2: 'bilinear', 3: 'bicubic' } as const;

/** How a vision transformer has its images. */
function pixelsOf(
  folder: string,
  { entryLayersTpl }: Config<VisionTransformer>,
  family: keyof typeof PIXELS,
) {
  const { posEmbShapes, patchSize, inputDims } = entryLayersTpl as Config<VitEntryLayers>;
  const given = readSettings(folder, preprocessorSettings) ?? {};
  const [rows, columns] = posEmbShapes.map((patches) => patches * patchSize);
  const isNormalized = given.do_normalize ?? true;
  const channels = inputDims / patchSize ** 2 === 1 ? (1 as const) : (3 as const);
  const { mean, std, filter } = PIXELS[family];
  const isCropped = given.do_center_crop ?? family === 'clip';
  return {
    ...{ height: rows!, width: columns!, channels },
    fit: isCropped ? ('resizeAndCrop' as const) : ('stretch' as const),
    filter: given.resample == null ? filter : FILTERS[given.resample],
    mean: isNormalized ? (given.image_mean ?? mean).slice(0, channels) : null,
    std: isNormalized ? (given.image_std ?? std).slice(0, channels) : null,
  };
}

/** A folder with a folder of images for each class. */
export function imageDatasets(subject: Subject): Config<BaseInput>[] {
  const { model, folder, files = ['images'] } = subject;
  const [directory, ...others] = files;
  if (others.length > 0)
    throw new ConfigError(
      `--files=${files.join(',')}: expected one folder, with a folder of images for each class.`,
    );
  const { networkTpl } = model as Config<ClassificationModel>;
  const images = {
    source: ImageFolder.config({ directory: directory!, classes: classNamesOf(subject) }),
    ...pixelsOf(folder, networkTpl as Config<VisionTransformer>, 'vit'),
    batchSize: 8,
  };
  return [
    ImageInput.config({ ...images, name: 'train', isTraining: true, split: 'train' }),
    ImageInput.config({ ...images, name: 'validation', split: 'validation' }),
  ];
}

/** Tables of images and their captions. */
export function captionTables(subject: Subject): Config<BaseInput>[] {
  const { model, folder } = subject;
  const tokenizer = tokenizerOf(folder);
  if (tokenizer === undefined) return [];
  const { imageTpl, textTpl } = model as Config<ClipModel>;
  const { maxSeqLength } = textTpl.positionEmbTpl as Config<TrainablePositionalEmbedding>;
  const ends = { addBos: tokenizer.bosToken !== null, addEos: tokenizer.eosToken !== null };
  return recordDatasets(subject, {
    image: ImageFeature.config({
      column: 'image',
      ...pixelsOf(folder, imageTpl as Config<VisionTransformer>, 'clip'),
    }),
    text: TextFeature.config({ column: 'text', tokenizer, length: maxSeqLength, ...ends }),
  });
}
