/** @file A run with weights in few bits, made of a trained run. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { piecesOf, writeParams } from '../checkpoints/index.js';
import {
  type FlatArray,
  type FlatLayout,
  flatArrayType,
  type NarrowArray,
  type NarrowType,
  sizeOf,
  widen,
} from '../compiler/index.js';
import { explain, isThere, readRegularFile } from '../files/index.js';
import { type AnyConfig, build, type Config, classOf, iterate } from '../hparams/index.js';
import {
  ActQuantization,
  type BaseLayer,
  BaseSoftmax,
  type CodeForm,
  codesOf,
  compensationOf,
  Embedding,
  listLayers,
  notFinite,
  Quantization,
  scaleName,
  WeightQuantization,
} from '../layers/index.js';
import {
  JobError,
  type JobOptions,
  machineOf,
  openJobDirectory,
  writeJobFile,
  writeJobFiles,
} from '../runs/index.js';
import type { SingleTask } from '../tasks/index.js';
import { calibrations, type WeightSums } from './calibration.js';
import { loadRun } from './loadRun.js';
import { copyPublished, PUBLISHED } from './published/publishedFiles.js';
import { readRunDocument } from './runDocument.js';
import type { LoadRunOptions, TrainedRun } from './trainedRun.js';

/** Options of `quantizeRun`. */
export interface QuantizeOptions extends Pick<LoadRunOptions, 'checkpoint' | 'experiments' | 'parametersOf'> {
  /** Directory of the run that is written. */
  readonly to: string;
  /** Bits of a weight: 8 by default. */
  readonly bits?: 8 | 4;
  /** Bits of tables that are looked up, and of the weights that make logits, which rounding changes most: 8 by default. */
  readonly tableBits?: 8 | 4;
  /** Weights with one scale; 0: all of an output. Default: 0 for 8 bits, 32 for 4. */
  readonly group?: number;
  /** Bits that each row of what weights multiply is rounded to, in the groups of the weights; null, the default: none. */
  readonly activations?: 8 | null;
  /** Patterns of variables that stay as they are. */
  readonly skip?: readonly string[];
  /** Whether scales are those of least squared error, rather than those that reach the largest weights. Default: for 4 bits. */
  readonly clips?: boolean;
  /**
   * Batches of the data for training by which weights of products make up for the rounding of those before them; 0 by default:
   * each weight is rounded by itself.
   */
  readonly calibration?: number;
}

/** A run that was quantized. */
export interface Quantized {
  readonly name: string;
  readonly step: number;
  /** Weights in codes, and the elements of all variables. */
  readonly weights: number;
  readonly elements: number;
  /** Those of weights that were calibrated. */
  readonly calibrated: number;
  /** Bytes of all variables before and behind. */
  readonly bytes: readonly [before: number, after: number];
}

/** Copies the record of a run, and what its configs refer to in its directory. @throws JobError where that fails */
function copyRecord(directory: string, to: string): void {
  const copy = (...path: string[]): void =>
    writeJobFile(join(to, ...path), readRegularFile(join(directory, ...path)));
  try {
    copy('experiment.json');
    const data = join(directory, 'data');
    if (isThere(data)) for (const name of readdirSync(data)) copy('data', name);
    if (isThere(join(directory, PUBLISHED))) copyPublished(join(directory, PUBLISHED), join(to, PUBLISHED));
  } catch (cause) {
    throw new JobError(`${directory}: its record can't be copied: ${explain(cause)}.`, { cause });
  }
}

/** Forms of the weights in codes, by the path of the variable that has their codes. */
const formsOf = (root: BaseLayer): Map<string, CodeForm> =>
  new Map(
    listLayers(root).flatMap(({ codeForms, variables }) =>
      [...codeForms].map(([name, form]) => [variables.get(name)!.path, form] as const),
    ),
  );

/** Elements of a variable as float32. */
const floatsIn = (view: FlatArray, storage: NarrowType | undefined): Float32Array =>
  (storage === undefined ? view : widen(view as NarrowArray, storage)) as Float32Array;

/** A weight's codes and scales, repetition by repetition. */
interface CodedParts {
  readonly codes: readonly FlatArray[];
  readonly scales: readonly FlatArray[];
}

/** A weight in codes, of a run's values. @throws JobError for one that is not finite */
function coded(
  { params }: TrainedRun,
  path: string,
  form: CodeForm,
  clips: boolean,
  sums?: WeightSums,
): CodedParts {
  const { storage } = params.layout.entries.find(({ name }) => name === path)!;
  const values = floatsIn(params.views[path]!, storage);
  const size = sizeOf(form.shape);
  const parts = Array.from({ length: values.length / size }, (_, i) => {
    const part = values.subarray(i * size, (i + 1) * size);
    const place = notFinite(part, form);
    if (place !== null)
      throw new JobError(
        `variable '${path}' can't be quantized: element [${place.join(', ')}] is ${part.find((x) => !Number.isFinite(x))}.`,
      );
    return codesOf(part, form, clips, sums?.[i] && compensationOf(sums[i]));
  });
  return { codes: parts.map(({ codes }) => codes), scales: parts.map(({ scales }) => scales) };
}

/** Arrays one after the other. */
function joined(parts: readonly FlatArray[]): FlatArray {
  const [first] = parts as [FlatArray];
  const whole = new (first.constructor as new (size: number) => FlatArray)(parts.length * first.length);
  for (const [i, part] of parts.entries()) whole.set(part as never, i * part.length);
  return whole;
}

/** All weights in codes, calibrated, by path, and the elements of those that were. */
async function calibrated(
  directory: string,
  run: TrainedRun,
  { task, layout }: { readonly task: SingleTask; readonly layout: FlatLayout },
  forms: ReadonlyMap<string, CodeForm>,
  clips: boolean,
  batches: number,
): Promise<{ readonly weights: Map<string, CodedParts>; readonly elements: number }> {
  const views: Record<string, FlatArray> = { ...run.params.views };
  const weights = new Map<string, CodedParts>();
  const set = (path: string, parts: CodedParts): void => {
    weights.set(path, parts);
    views[path] = joined(parts.codes);
    views[scaleName(path)] = joined(parts.scales);
  };
  for (const [path, form] of forms) set(path, coded(run, path, form, clips));
  let elements = 0;
  const network = { directory, document: run.document, task, params: { layout, views } };
  for await (const sums of calibrations(network, batches))
    for (const [path, ofWeight] of sums) {
      set(path, coded(run, path, forms.get(path)!, clips, ofWeight));
      elements += run.params.views[path]!.length;
    }
  return { weights, elements };
}

/** Whether a config is of a layer that looks up tokens, or makes logits. */
function isTable(config: AnyConfig): boolean {
  const { prototype } = classOf(config);
  return prototype instanceof Embedding || prototype instanceof BaseSoftmax;
}

/**
 * Writes a run whose weights of products and tables are codes with scales, an ordinary run's directory: its record has the
 * experiment's configs with `task.model.quantization`, its checkpoint of step 0 the parameters that the run decodes, or evaluates,
 * with.
 *
 * @throws JobError where the directory has checkpoints, or a weight is not finite; LayerError for groups that do not fit a weight;
 *   what `loadRun` throws.
 */
export async function quantizeRun(
  directory: string,
  { to, bits = 8, group = bits === 8 ? 0 : 32, skip = [], calibration = 0, ...given }: QuantizeOptions,
): Promise<Quantized> {
  const { clips = bits === 4, activations = null, tableBits = 8, ...options } = given;
  const run = await loadRun(directory, options);
  const lock = await openJobDirectory(to, 'train');
  try {
    const checkpoints = join(to, 'checkpoints');
    if (isThere(checkpoints) && readdirSync(checkpoints).length > 0)
      throw new JobError(`--to=${to}: it has checkpoints of a run. Give another directory, or delete it.`);
    copyRecord(directory, to);
    const document = await readRunDocument(to, options.experiments);
    const { task } = document;
    const inCodes = (precision: 8 | 4): Config<Quantization> =>
      Quantization.config({
        mode: 'inference',
        weightParams: WeightQuantization.config({ precision, blockSize: group }),
        ...(activations !== null && { actParams: ActQuantization.config({ precision: activations }) }),
        skip: [...skip],
      });
    task.model.quantization = inCodes(bits);
    if (tableBits !== bits)
      for (const { config } of iterate(task.model, { defaults: true, memoized: true }))
        if (isTable(config)) (config as Config<BaseLayer>).quantization = inCodes(tableBits);
    // The parameters are the averages already, where the run uses those.
    if (run.isAveraged) Object.assign(task.train, { evalUseEmaStates: false, decodeUseEmaStates: false });
    const built = build(task);
    const layout = built.layout();
    const job: JobOptions = {
      ...document,
      ...{ task, jobLogDir: to, mode: 'train', overrides: [], classVars: '' },
    };
    const forms = formsOf(built.model);
    const { weights, elements } =
      calibration === 0
        ? { weights: new Map<string, CodedParts>(), elements: 0 }
        : await calibrated(directory, run, { task: built, layout }, forms, clips, calibration);
    writeJobFiles(job, await machineOf({}));
    await writeParams({
      directory: checkpoints,
      experiment: run.name,
      layout,
      values: valuesOf(run, forms, (path) => weights.get(path) ?? coded(run, path, forms.get(path)!, clips)),
    });
    const before = sizesOf(run.params.layout);
    return {
      ...{ name: run.name, step: run.step, elements: before.count, calibrated: elements },
      weights: [...forms.keys()].reduce((sum, path) => sum + run.params.views[path]!.length, 0),
      bytes: [before.bytes, sizesOf(layout).bytes],
    };
  } finally {
    lock.close();
    await run.dispose();
  }
}

/** The elements of a layout's variables, and their bytes. */
const sizesOf = ({ entries }: FlatLayout): { count: number; bytes: number } => ({
  count: entries.reduce((sum, { size }) => sum + size, 0),
  bytes: entries.reduce(
    (sum, { size, storage }) => sum + size * flatArrayType(storage ?? 'float32').BYTES_PER_ELEMENT,
    0,
  ),
});

/** Elements of the new run's variables, each asked for once. @param codedOf a weight in codes, by path. */
function valuesOf(
  run: TrainedRun,
  forms: ReadonlyMap<string, CodeForm>,
  codedOf: (path: string) => CodedParts,
) {
  const { views } = run.params;
  const weights = new Map(
    [...forms.keys()].flatMap((path) => [
      [path, path],
      [scaleName(path), path],
    ]),
  );
  // What was made for the first of both variables, until the other one is asked for.
  const waiting = new Map<string, readonly FlatArray[]>();
  const partsOf = (path: string): readonly FlatArray[] => {
    const weight = weights.get(path);
    if (weight === undefined) return [views[path]!];
    const known = waiting.get(path);
    waiting.delete(path);
    if (known !== undefined) return known;
    const { codes, scales } = codedOf(weight);
    const isWeight = path === weight;
    waiting.set(isWeight ? scaleName(weight) : weight, isWeight ? scales : codes);
    return isWeight ? codes : scales;
  };
  return function* (path: string) {
    for (const { buffer, byteOffset, byteLength } of partsOf(path))
      yield* piecesOf(new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength));
  };
}
