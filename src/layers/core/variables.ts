/** @file Layers, variables with initial values, and decode state of a whole model. */
import {
  type Distribution,
  type Draw,
  type FillOptions,
  type FlatArray,
  fillNow,
  fillRandom,
  foldIn,
  hashString,
  narrow,
  type PrngKey,
  prngKey,
  sizeOf,
} from '../../compiler/index.js';
import type { BaseLayer } from './base.js';
import type { DecodeStateSpec } from './context.js';
import type { WeightShape } from './weightInit.js';
import { oneRepetition, type Variable } from './weights.js';

/** `root` and every layer below it once, parents before children, in order of creation. */
export function listLayers(root: BaseLayer): BaseLayer[] {
  const found = new Set<BaseLayer>();
  const open = [root];
  for (let layer = open.pop(); layer; layer = open.pop()) {
    if (found.has(layer)) continue;
    found.add(layer);
    open.push(...[...layer.children.values()].reverse());
  }
  return [...found];
}

/** Every variable below `root` once, in order of creation. */
export function listVariables(root: BaseLayer): Variable[] {
  return listLayers(root).flatMap((layer) => [...layer.variables.values()]);
}

/** The initial values of a variable, or of one repetition of it. */
export interface InitialValues {
  readonly variable: Variable;
  /** Which repetition, in the order of memory; 0 where nothing repeats the variable. */
  readonly repetition: number;
  readonly key: PrngKey;
  /** The values, or the distribution to draw with the key. */
  readonly initial: Float32Array | Distribution;
}

/**
 * Initial values of each variable, or their distribution; they depend only on the seed and the variable's path. Each
 * repetition of a variable that a layer repeats has a key of its own.
 *
 * @param shapeOf the shape to draw, if not the variable's own.
 */
export function* initialValues(
  root: BaseLayer,
  seed: number,
  shapeOf: (variable: Variable) => WeightShape = (variable) => variable,
): Generator<InitialValues> {
  const rootKey = prngKey(seed);
  for (const variable of listVariables(root)) {
    const key = foldIn(rootKey, hashString(variable.path));
    const one = oneRepetition(variable);
    for (let repetition = 0; repetition < sizeOf(variable.repeatPrefix); repetition++) {
      const own = variable.repeatPrefix.length === 0 ? key : foldIn(key, repetition);
      yield { variable: one, repetition, key: own, initial: variable.init.draw(own, shapeOf(one)) };
    }
  }
}

/** The part of a variable's array that initial values are for. */
function partOf<T extends FlatArray>(whole: T, { variable, repetition }: InitialValues): T {
  const size = sizeOf(variable.shape);
  return whole.subarray(repetition * size, (repetition + 1) * size) as T;
}

/**
 * Initial values of all variables; each depends only on the seed and the variable's path.
 *
 * @param seed a safe integer, 0 or more.
 * @returns row-major values by path, in the order of `listVariables`.
 */
export function initVariables(root: BaseLayer, seed: number): Map<string, Float32Array> {
  const values = new Map(
    listVariables(root).map(({ path, shape }) => [path, new Float32Array(sizeOf(shape))]),
  );
  for (const each of initialValues(root, seed)) {
    const { variable, key, initial } = each;
    const out = partOf(values.get(variable.path)!, each);
    if (initial instanceof Float32Array) out.set(initial);
    else fillNow({ ...initial, key, out });
  }
  return values;
}

/**
 * Writes the same values into existing memory, in machine code on several threads where possible.
 *
 * @param views row-major arrays by path.
 */
export async function fillVariables(
  root: BaseLayer,
  seed: number,
  views: Readonly<Record<string, FlatArray>>,
  options?: FillOptions,
): Promise<void> {
  const draws: Draw[] = [];
  for (const each of initialValues(root, seed)) {
    const { variable, key, initial } = each;
    const { storage } = variable;
    const part = partOf(views[variable.path]!, each);
    const out = storage === undefined ? (part as Float32Array) : new Float32Array(part.length);
    if (initial instanceof Float32Array) out.set(initial);
    else if (storage === undefined) draws.push({ ...initial, key, out });
    // One at a time, so that no more than one lies in memory as float32.
    else await fillRandom([{ ...initial, key, out }], options);
    if (storage !== undefined) part.set(narrow(out, storage));
  }
  await fillRandom(draws, options);
}

/**
 * Decode state of every layer below `root`, by path: zeros of these specs start a decode.
 *
 * @param batchSize sequences decoded at a time.
 * @param seqLen tokens of a sequence, prompt included.
 * @param memoryLen positions of a memory that the sequences attend to, such as an encoder's output; 0 without one.
 */
export function decodeStateSpecs(
  root: BaseLayer,
  batchSize: number,
  seqLen: number,
  memoryLen = 0,
): Record<string, DecodeStateSpec> {
  const specs: Record<string, DecodeStateSpec> = {};
  for (const layer of listLayers(root)) {
    const own = Object.entries(layer.decodeStateSpecs(batchSize, seqLen, memoryLen));
    let named: Readonly<Record<string, DecodeStateSpec>> = Object.fromEntries(
      own.map(([name, spec]) => [layer.path === '' ? name : `${layer.path}/${name}`, spec]),
    );
    for (let above = layer.parent; above; above = above.parent) named = above.repeatDecodeState(named);
    Object.assign(specs, named);
  }
  return specs;
}

/**
 * Draws the same values one after the other, so that few of them lie in memory at once.
 *
 * @param take gets a variable's values, or those of one repetition of it, as memory holds them; `first` is the number of the first
 *   one in the variable.
 */
export async function drawVariables(
  root: BaseLayer,
  seed: number,
  take: (path: string, values: FlatArray, first: number) => void,
  options?: FillOptions,
): Promise<void> {
  for (const { variable, repetition, key, initial } of initialValues(root, seed)) {
    const { path, shape, storage } = variable;
    const size = sizeOf(shape);
    let out = new Float32Array(size);
    if (initial instanceof Float32Array) out = initial as Float32Array<ArrayBuffer>;
    else await fillRandom([{ ...initial, key, out }], options);
    take(path, storage === undefined ? out : narrow(out, storage), repetition * size);
  }
}
