/** @file Weights in files that any program wrote: one file of safetensors or GGUF, or a folder with shards, as Hugging Face publishes models. */
import { readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { type MapFile, readRegularFile } from '../files/index.js';
import type { AxisOrder } from './axes.js';
import { CheckpointError, ioError } from './checkpointErrors.js';
import { listCheckpoints } from './directory.js';
import { GgufFile } from './gguf/index.js';
import { METADATA_FILE } from './metadata.js';
import { PackedTensor } from './packedTensors.js';
import { SafetensorsFile } from './safetensorsFile.js';
import type { Elements } from './storedElements.js';
import type { TensorFile } from './tensorFile.js';
import type { VariableSource } from './variableSource.js';

const INDEX = '.safetensors.index.json';
/** Most bytes of an index: those of a model with a million tensors. */
const LONGEST_INDEX = 1 << 28;
/** Weights in forms that run code when they are read, or that other programs alone read. */
const FOREIGN = /\.(bin|pt|pth|ckpt|h5|msgpack|gguf|ot|onnx|npz)$/;

const GGUF = /\.gguf$/;

const indexSchema = z.object({ weight_map: z.record(z.string(), z.string()) });

/** Whether a path is a file, or a folder that holds weights and no checkpoints of a run. */
export function holdsWeights(path: string): boolean {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) return false;
  if (!status.isDirectory()) return true;
  const names = readdirSync(path);
  if (names.includes(METADATA_FILE) || names.includes('checkpoints') || listCheckpoints(path).size > 0)
    return false;
  return names.some((name) => name.endsWith('.safetensors') || name.endsWith(INDEX) || FOREIGN.test(name));
}

/** Open files of weights; each tensor is in one of them, or packed, and its scales in another. */
export class WeightFiles implements VariableSource {
  readonly origin = {};
  /** The folder that the files are in, where a config.json may lie beside them. */
  readonly folder: string;
  /** Names of the tensors, without those of scales. */
  readonly names: readonly string[];
  readonly #packed = new Map<string, PackedTensor>();

  private constructor(
    readonly path: string,
    private readonly files: readonly TensorFile[],
    private readonly tensors: ReadonlyMap<string, TensorFile>,
  ) {
    this.folder = dirname(files[0]!.path);
    for (const [name, file] of tensors) {
      const packed = PackedTensor.of(name, file, (scales) => tensors.get(scales));
      if (packed !== undefined) this.#packed.set(name, packed);
    }
    const scales = new Set(Array.from(this.#packed.values(), (packed) => packed.scales.name));
    this.names = [...tensors.keys()].filter((name) => !scales.has(name));
  }

  /**
   * @param path a file of safetensors or GGUF, an index of shards, or a folder with safetensors or an index.
   * @throws CheckpointError where a file is missing, damaged or another's, or lacks a tensor that the index places in it, and
   *   for scales that are not those of a packed tensor's blocks
   */
  static open(path: string): WeightFiles {
    const chosen = reading(path, () => (statSync(path).isDirectory() ? choose(path) : path));
    if (chosen.endsWith(INDEX)) return WeightFiles.#openShards(path, chosen);
    if (FOREIGN.test(chosen) && !GGUF.test(chosen)) throw notSafetensors(chosen);
    const file = GGUF.test(chosen) ? new GgufFile(chosen) : new SafetensorsFile(chosen);
    try {
      return new WeightFiles(path, [file], new Map(file.names.map((name) => [name, file])));
    } catch (error) {
      file.close();
      throw error;
    }
  }

  static #openShards(path: string, indexPath: string): WeightFiles {
    const places = Object.entries(readIndex(indexPath));
    const files = new Map<string, SafetensorsFile>();
    const problems: string[] = [];
    try {
      for (const shard of [...new Set(places.map(([, name]) => name))].sort()) {
        try {
          files.set(shard, new SafetensorsFile(join(dirname(indexPath), shard)));
        } catch (error) {
          problems.push((error as Error).message);
        }
      }
      for (const [tensor, shard] of places) {
        const file = files.get(shard);
        if (file !== undefined && file.place(tensor) === undefined)
          problems.push(`${file.path}: it has no tensor '${tensor}', which the index places there`);
      }
      if (problems.length > 0)
        throw new CheckpointError(
          'broken',
          indexPath,
          `its shards are not whole:${problems.map((line) => `\n  ${line}`).join('')}`,
        );
      return new WeightFiles(
        path,
        [...files.values()],
        new Map(places.map(([tensor, shard]) => [tensor, files.get(shard)!])),
      );
    } catch (error) {
      for (const file of files.values()) file.close();
      throw error;
    }
  }

  shapeOf(name: string): readonly number[] | undefined {
    return this.#packed.get(name)?.shape ?? this.tensors.get(name)?.shapeOf(name);
  }

  dtypeProblem(name: string): string | undefined {
    return this.#packed.has(name) ? undefined : this.#fileOf(name).dtypeProblem(name);
  }

  readInto(name: string, target: Float32Array, order?: AxisOrder): void {
    reading(this.#fileOf(name).path, () => this.elements(name, order).fill(target, 0));
  }

  /** A tensor's elements in an order of its axes; as SafetensorsFile's. */
  elements(name: string, order?: AxisOrder, map?: MapFile): Elements {
    return this.#packed.get(name)?.elements(order) ?? this.#fileOf(name).elements(name, order, map);
  }

  areEqual(a: string, b: string): boolean {
    const [packed, other] = [this.#packed.get(a), this.#packed.get(b)];
    if (packed || other) return packed !== undefined && other !== undefined && packed.isEqual(other);
    return this.#fileOf(a).isEqual(a, this.#fileOf(b), b);
  }

  close(): void {
    for (const file of this.files) file.close();
  }

  #fileOf(name: string): TensorFile {
    const file = this.tensors.get(name);
    if (file !== undefined) return file;
    throw new CheckpointError('mismatch', this.path, `it has no tensor '${name}'`);
  }
}

/** The index or the only file of a folder; as transformers does, an index is preferred, and a file named model. */
function choose(folder: string): string {
  const names = readdirSync(folder).sort();
  const found = ['model.safetensors.index.json', 'model.safetensors'].find((name) => names.includes(name));
  if (found !== undefined) return join(folder, found);
  const [indexes, files, ggufs] = [INDEX, '.safetensors', '.gguf'].map((end) =>
    names.filter((name) => name.endsWith(end)),
  );
  const candidates = [indexes!, files!, ggufs!].find((each) => each.length > 0) ?? [];
  if (candidates.length === 1) return join(folder, candidates[0]!);
  if (candidates.length > 1) {
    const problem = `it has ${candidates.join(', ')} and no index that joins them; give the path of one`;
    throw new CheckpointError('mismatch', folder, problem);
  }
  throw notSafetensors(join(folder, names.find((name) => FOREIGN.test(name))!));
}

function notSafetensors(path: string): CheckpointError {
  const problem =
    'it is not in safetensors format; convert it, as by save_pretrained(folder, safe_serialization=True) of transformers';
  return new CheckpointError('mismatch', path, problem);
}

/** File of each tensor. Files are beside the index: a name that leads elsewhere is refused. */
function readIndex(path: string): Record<string, string> {
  const text = reading(path, () => readRegularFile(path, LONGEST_INDEX).toString());
  let weightMap: Record<string, string>;
  try {
    weightMap = indexSchema.parse(JSON.parse(text)).weight_map;
  } catch (cause) {
    const problem = 'it is not an index of shards: expected {"weight_map": {TENSOR: FILE, …}}';
    throw new CheckpointError('broken', path, problem, { cause });
  }
  if (Object.keys(weightMap).length === 0)
    throw new CheckpointError('broken', path, 'its weight_map is empty');
  for (const [tensor, file] of Object.entries(weightMap)) {
    if (/[/\\]/.test(file) || !file.endsWith('.safetensors')) {
      const problem = `tensor '${tensor}': expected the name of a safetensors file beside it, found '${file}'`;
      throw new CheckpointError('broken', path, problem);
    }
  }
  return weightMap;
}

function reading<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw ioError(path, 'cannot be read', cause);
  }
}
