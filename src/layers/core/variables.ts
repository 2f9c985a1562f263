/** @file Layers, variables with initial values, and decode state of a whole model. */
import {
  type Distribution,
  type Draw,
  type FillOptions,
  fillNow,
  fillRandom,
  foldIn,
  hashString,
  type PrngKey,
  prngKey,
  sizeOf,
} from '../../compiler/index.js';
import type { BaseLayer } from './base.js';
import type { DecodeStateSpec } from './context.js';
import type { WeightShape } from './weightInit.js';
import type { Variable } from './weights.js';

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

/** The initial values of a variable. */
export interface InitialValues {
  readonly variable: Variable;
  readonly key: PrngKey;
  /** The values, or the distribution to draw with the key. */
  readonly initial: Float32Array | Distribution;
}

/**
 * Initial values of each variable, or their distribution; they depend only on the seed and the variable's path.
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
    yield { variable, key, initial: variable.init.draw(key, shapeOf(variable)) };
  }
}

/**
 * Initial values of all variables; each depends only on the seed and the variable's path.
 *
 * @param seed a safe integer, 0 or more.
 * @returns row-major values by path, in the order of `listVariables`.
 */
export function initVariables(root: BaseLayer, seed: number): Map<string, Float32Array> {
  const values = new Map<string, Float32Array>();
  for (const { variable, key, initial } of initialValues(root, seed)) {
    const out = initial instanceof Float32Array ? initial : new Float32Array(sizeOf(variable.shape));
    if (!(initial instanceof Float32Array)) fillNow({ ...initial, key, out });
    values.set(variable.path, out);
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
  views: Readonly<Record<string, Float32Array>>,
  options?: FillOptions,
): Promise<void> {
  const draws: Draw[] = [];
  for (const { variable, key, initial } of initialValues(root, seed)) {
    const out = views[variable.path]!;
    if (initial instanceof Float32Array) out.set(initial);
    else draws.push({ ...initial, key, out });
  }
  await fillRandom(draws, options);
}

/**
 * Decode state of every layer below `root`, by path: zeros of these specs start a decode.
 *
 * @param batchSize sequences decoded at a time.
 * @param seqLen tokens of a sequence, prompt included.
 */
export function decodeStateSpecs(
  root: BaseLayer,
  batchSize: number,
  seqLen: number,
): Record<string, DecodeStateSpec> {
  const specs: Record<string, DecodeStateSpec> = {};
  for (const layer of listLayers(root)) {
    for (const [name, spec] of Object.entries(layer.decodeStateSpecs(batchSize, seqLen))) {
      specs[layer.path === '' ? name : `${layer.path}/${name}`] = spec;
    }
  }
  return specs;
}
