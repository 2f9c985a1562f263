/**
 * @file Sharded output files of a job that may be killed at any time: one that goes on finds the saved records, and neither
 * loses nor repeats one (the names are those of paxml's ShardedParallelWriter).
 */
import { renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { z } from 'zod';
import type { TensorSpec } from '../../compiler/index.js';
import {
  explain,
  GrowingFile,
  isThere,
  makeDirectory,
  readJsonFile,
  removeTemporaries,
  syncDirectory,
} from '../../files/index.js';
import type { InputState } from '../../inputs/index.js';
import { JobError, writeJobFile } from '../../runs/index.js';
import type { InferPosition } from '../../tasks/index.js';
import { featuresText, type OutputFormat } from './outputRecords.js';

/** Causes of outputs: those of an equal origin go on, or are there. */
const origin = z.strictObject({
  /** Digest of the configs. */
  settings: z.string(),
  /** When the checkpoint was saved: training that went back saves a step anew. */
  savedAt: z.string(),
  /** Digest of the data. */
  data: z.string(),
});

export type Origin = z.output<typeof origin>;

const specs = z.record(
  z.string(),
  z.strictObject({ shape: z.array(z.int().nonnegative()), dtype: z.enum(['float32', 'int32', 'bool']) }),
);

/** Records that are on the disk. */
const progress = z.strictObject({
  origin,
  /** Batches and examples so far, and the position of the data behind them. */
  batches: z.int().nonnegative(),
  examples: z.int().nonnegative(),
  state: z.custom<InputState>((state) => typeof state === 'object' && state !== null),
  /** Bytes of each shard. */
  lengths: z.array(z.int().nonnegative()),
  specs,
});

/** The CRC-32 stands beside, since a position of other data would go unnoticed. */
const progressFile = z.strictObject({ crc32: z.int(), progress });

const checksumOf = (value: object): number => crc32(JSON.stringify(value));

/** The file that says that outputs are complete. */
const metadata = z.looseObject({ origin });

/** Names and numbers that metadata.json has of outputs. */
export type AboutOutputs = Readonly<Record<string, string | number>>;

/** Files that outputs are written to. */
export interface OutputFiles {
  /** The folder, there once all outputs are. */
  readonly directory: string;
  readonly format: OutputFormat;
  readonly numShards: number;
  readonly origin: Origin;
}

/** Path of a shard, `output.tfrecord-00000-of-00032`. */
const shardPath = (folder: string, { format, numShards }: OutputFiles, shard: number): string => {
  const padded = (number: number) => String(number).padStart(5, '0');
  return join(folder, `output.${format}-${padded(shard)}-of-${padded(numShards)}`);
};

/**
 * The outputs of one job for one dataset. They grow in a folder beside their own, `<directory>.partial`, which takes the other
 * one's name as a whole.
 */
export class OutputShards {
  #shards: GrowingFile[] = [];
  #position: InferPosition | null = null;
  #specs: Readonly<Record<string, TensorSpec>> = {};
  /** Whether complete outputs of this origin are there already. */
  readonly isComplete: boolean;

  /** Opens the outputs that an earlier job has left of the same origin, or begins anew. @throws JobError for files that can't be written */
  constructor(private readonly files: OutputFiles) {
    this.isComplete = this.#guarded(() => {
      if (this.#isOf(join(files.directory, 'metadata.json'))) return true;
      if (this.#isOf(join(this.#partial, 'metadata.json'))) {
        this.#publish();
        return true;
      }
      if (!this.#resume()) this.#begin();
      return false;
    });
  }

  /** The position from which to go on; null at the first batch. */
  get position(): InferPosition | null {
    return this.#position;
  }

  /** Examples so far. */
  get numExamples(): number {
    return this.#position?.examples ?? 0;
  }

  /** Adds the records of a batch. @param position behind it @param specs of the outputs, with the rows in front */
  add(records: Uint8Array, position: InferPosition, specs: Readonly<Record<string, TensorSpec>>): void {
    const shard = this.#shards[(position.batches - 1) % this.#shards.length]!;
    this.#guarded(() => shard.append(records));
    this.#position = position;
    this.#specs = specs;
  }

  /** Makes all records so far those from which a later job goes on. */
  save(): void {
    if (this.#position === null) return;
    this.#guarded(() => {
      for (const shard of this.#shards) shard.sync();
    });
    const file: z.input<typeof progress> = {
      ...{ origin: this.files.origin, ...this.#position, lengths: this.#shards.map(({ length }) => length) },
      specs: this.#specs as z.input<typeof specs>,
    };
    writeJobFile(this.#progressPath, `${JSON.stringify({ crc32: checksumOf(file), progress: file })}\n`);
  }

  /** Gives the outputs their folder, with features.json and metadata.json beside them. */
  finish(about: AboutOutputs): void {
    this.save();
    const { origin, format, numShards } = this.files;
    writeJobFile(join(this.#partial, 'features.json'), featuresText(this.#specs));
    const file = {
      ...{ ...about, output_format: format, output_num_shards: numShards, num_examples: this.numExamples },
      origin,
    };
    writeJobFile(join(this.#partial, 'metadata.json'), `${JSON.stringify(file, null, 1)}\n`);
    this.#guarded(() => this.#publish());
  }

  close(): void {
    for (const shard of this.#shards) shard.close();
    this.#shards = [];
  }

  get #partial(): string {
    return `${this.files.directory}.partial`;
  }

  get #progressPath(): string {
    return join(this.#partial, 'progress.json');
  }

  /** Whether a metadata.json is of outputs of this origin. A damaged one is not. */
  #isOf(path: string): boolean {
    try {
      return this.#isSame(readJsonFile(path, metadata).origin);
    } catch {
      return false;
    }
  }

  #isSame(other: Origin): boolean {
    return JSON.stringify(other) === JSON.stringify(this.files.origin);
  }

  /** Opens the shards of a job that was interrupted. A damaged record of its progress, or a shard that is too short, counts as none. */
  #resume(): boolean {
    try {
      removeTemporaries(this.#partial);
      const file = readJsonFile(this.#progressPath, progressFile);
      const { origin, lengths, specs, ...position } = file.progress;
      const isSound = file.crc32 === checksumOf(file.progress) && lengths.length === this.files.numShards;
      if (!isSound || !this.#isSame(origin)) return false;
      for (const [shard, length] of lengths.entries())
        this.#shards.push(new GrowingFile(shardPath(this.#partial, this.files, shard), length));
      this.#position = position;
      this.#specs = specs;
      return true;
    } catch {
      this.close();
      return false;
    }
  }

  #begin(): void {
    rmSync(this.#partial, { recursive: true, force: true });
    makeDirectory(this.#partial);
    for (let shard = 0; shard < this.files.numShards; shard++)
      this.#shards.push(new GrowingFile(shardPath(this.#partial, this.files, shard)));
  }

  /** Renames the folder. Between its removals there is no other one: a job that goes on finds the complete `.partial`. */
  #publish(): void {
    const { directory } = this.files;
    rmSync(this.#progressPath, { force: true });
    if (isThere(directory)) rmSync(directory, { recursive: true, force: true });
    renameSync(this.#partial, directory);
    syncDirectory(dirname(directory));
  }

  #guarded<T>(act: () => T): T {
    try {
      return act();
    } catch (cause) {
      throw new JobError(`${this.files.directory} cannot be written: ${explain(cause)}.`, { cause });
    }
  }
}
