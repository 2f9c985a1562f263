/** @file AudioInput: batches of log-mel features of labelled sounds. */
import type { HostTensor } from '../../compiler/program/index.js';
import { foldIn } from '../../compiler/random/index.js';
import type { Batch, BatchSpecs, BatchUnit } from '../batch.js';
import { paddingOf, specsWithRows } from '../batchRows.js';
import type { DataFolder, DataIdentity } from '../dataIdentity.js';
import { ExampleInput } from '../exampleInput.js';
import { classFolderFields, filesByClass, recordedClasses } from '../images/classFolders.js';
import { digestOf, fileOf } from '../images/imageSources.js';
import { placed } from '../inputErrors.js';
import type { ExampleOptions } from '../inputSource.js';
import type { JsonValue } from '../jsonValue.js';
import { KeptItems } from '../keptItems.js';
import { drawBelow, streamKey } from '../random.js';
import type { RecordedState } from '../recordedParts.js';
import { writeRow } from '../records/recordBatches.js';
import { splitFields, splitOf } from '../splits.js';
import { type CorpusFile, readFiles, type SourceFile } from '../text/corpusFiles.js';
import { framesOf, samplesOf, soundFields } from './sounds.js';

/** The sounds of the split, found on first use. */
interface Found {
  readonly sounds: readonly { readonly file: CorpusFile; readonly label: number }[];
  readonly classes: readonly string[];
  readonly folder: DataFolder;
  /** Number of sounds and digest of their names. */
  readonly contents: string;
}

const kind = { pattern: /\.wav$/i, title: 'WAV files', example: '1.wav' };

/**
 * WAV files in a folder for each class: `words/yes/1.wav`. A batch has `inputs`, float32 [batchSize, frames, numMels],
 * `paddings`, [batchSize, frames], which is 1 behind the end of a sound, `labels`, int32 [batchSize], and `weights`,
 * [batchSize], which is 0 for padding. Training takes a random part of a longer sound, which follows from
 * (inputRandomSeed, epoch, record) alone; evaluations take its middle.
 */
export class AudioInput extends ExampleInput.with({
  ...classFolderFields,
  ...soundFields,
  ...splitFields,
}) {
  #found: Found | undefined;
  readonly #kept = new KeptItems<Float32Array>((samples) => samples.byteLength);

  override get batchUnit(): BatchUnit {
    return { unit: 'frames', dims: 2 };
  }

  protected override get numRows(): number {
    return this.#find().sounds.length;
  }

  override batchSpecs(): BatchSpecs {
    const { batchSize, numSamples, features } = this.hp;
    const frames = features.numFrames(numSamples);
    return {
      inputs: { shape: [batchSize, frames, features.hp.numMels], dtype: 'float32' },
      paddings: { shape: [batchSize, frames], dtype: 'float32' },
      labels: { shape: [batchSize], dtype: 'int32' },
      weights: { shape: [batchSize], dtype: 'float32' },
    };
  }

  protected override emptyBatch(): Batch {
    return paddingOf(this.batchSpecs());
  }

  protected override fillRow(row: number, batch: Batch, b: number, epoch: number): void {
    const { numSamples, inputRandomSeed, isTraining } = this.hp;
    const samples = this.#kept.get(row, () => this.#samplesOf(row));
    const spare = Math.max(0, samples.length - numSamples);
    const key = foldIn(streamKey(inputRandomSeed ?? 0, 'soundCrop', epoch), row);
    const start = isTraining ? drawBelow(key, 0, spare + 1) : spare >> 1;
    const { features: inputs, paddings } = framesOf(samples, start, this.hp);
    writeRow(batch, b, { inputs, paddings, labels: [this.#find().sounds[row]!.label] });
  }

  protected override rowName(row: number): string {
    return this.#find().sounds[row]!.file.path;
  }

  /** Of sounds as their files have them: paths, or their bytes. */
  override async exampleBatch(
    examples: readonly unknown[],
    _paths: readonly string[],
    { first, readsFiles }: ExampleOptions,
  ): Promise<Batch> {
    const specs = specsWithRows(this.batchSpecs(), () => examples.length);
    const { inputs, paddings } = paddingOf(specs) as Record<string, HostTensor>;
    for (const [i, example] of examples.entries()) {
      const samples = placed(
        () => `sound ${first + i}`,
        () => samplesOf(...fileOf(example, readsFiles), this.hp),
      );
      const start = Math.max(0, samples.length - this.hp.numSamples) >> 1;
      const made = framesOf(samples, start, this.hp);
      (inputs!.data as Float32Array).set(made.features, i * made.features.length);
      (paddings!.data as Float32Array).set(made.paddings, i * made.paddings.length);
    }
    return { inputs: inputs!, paddings: paddings! };
  }

  override classNamesFor(path: string): readonly string[] | null {
    return path === 'labels' ? (this.hp.classes ?? this.#find().classes) : null;
  }

  /** The classes, which a run saves. */
  recorded(): RecordedState | null {
    return recordedClasses(this.hp.classes ?? this.#found?.classes);
  }

  override dataIdentity(): DataIdentity {
    const { folder, contents } = this.#find();
    return { files: [], folders: [folder], contents };
  }

  override knownIdentity(): DataIdentity | null {
    return null;
  }

  protected override identity(): { readonly [name: string]: JsonValue } {
    return { data: this.#find().contents };
  }

  /** The samples of a sound at the sample rate of the features. */
  #samplesOf(row: number): Float32Array {
    const [{ path, bytes }] = readFiles([this.#find().sounds[row]!.file]) as [SourceFile];
    return samplesOf(path, bytes, this.hp);
  }

  #find(): Found {
    this.#found ??= this.named(() => {
      const { classes, files, folder } = filesByClass(this.hp, kind);
      const names = files.map(({ file, label }) => `${label} ${file.name}\n`);
      const { numItems, item } = splitOf(files.length, this.hp, 'sounds');
      const sounds = Array.from({ length: numItems }, (_, row) => files[item(row)]!);
      const digest = digestOf([classes.join('\n'), ...names]);
      return { sounds, classes, folder, contents: `${numItems} sounds (sha256 ${digest})` };
    });
    return this.#found;
  }
}
