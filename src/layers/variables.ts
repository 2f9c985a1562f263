/** @file What a tree of layers consists of: its layers, its variables and their initial values, its decode state. */
import {
  type Draw,
  type FillOptions,
  fillNow,
  fillRandom,
  foldIn,
  hashString,
  prngKey,
  sizeOf,
} from '../compiler/index.js';
import type { BaseLayer, DecodeStateSpec, Variable } from './baseLayer.js';

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

/** What a variable starts with, or what that is drawn from; it depends on the seed and the variable's path alone. */
function* initialValues(root: BaseLayer, seed: number) {
  const rootKey = prngKey(seed);
  for (const variable of listVariables(root)) {
    const key = foldIn(rootKey, hashString(variable.path));
    yield { variable, key, initial: variable.init.draw(key, variable) };
  }
}

/**
 * Initial values of every variable: they depend on the seed and the variable's path, and on no other variable.
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
 * Writes the same values into memory, on threads where machine code may draw them.
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

/** How far above a layer's own class a method is defined; null where it is not. */
function definedAt(layer: BaseLayer, method: string): number | null {
  let at = 0;
  for (let proto = Object.getPrototypeOf(layer); proto !== null; proto = Object.getPrototypeOf(proto)) {
    if (Object.hasOwn(proto, method)) return at;
    at++;
  }
  return null;
}

/**
 * Whether `prefill` takes several tokens at once as extendStep takes one, in every layer below `root` that decodes. Where a
 * class has an extendStep of its own, an inherited prefill may not do the same.
 */
export function canPrefill(root: BaseLayer): boolean {
  return listLayers(root).every((layer) => {
    const [one, several] = [definedAt(layer, 'extendStep'), definedAt(layer, 'prefill')];
    return one === null || (several !== null && several <= one);
  });
}
