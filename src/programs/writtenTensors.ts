/** @file The published tensors that a model's variables are written as: the name rules, read the other way. */
import { orderAxes, storedShape, storeElements } from '../checkpoints/index.js';
import { sizeOf } from '../compiler/index.js';
import { wholePath } from '../learners/index.js';
import type { NameRules } from '../models/index.js';
import { applyRule } from '../tasks/index.js';
import { partsOf } from './loadedVariables.js';

/** A variable of a model. */
interface Entry {
  readonly name: string;
  readonly shape: readonly number[];
}

/** Elements of a variable, and their places in a tensor. */
interface Source {
  readonly variable: string;
  readonly start: number;
  readonly length: number;
  readonly order: ReturnType<typeof orderAxes>;
}

/** A published tensor, and the variables that it is made of. */
export interface PublishedTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly sources: readonly Source[];
}

/** Tensors of variables, and the reasons why there are not all of them, a line each. */
export interface PublishedTensors {
  readonly tensors: readonly PublishedTensor[];
  readonly problems: readonly string[];
}

/** Shapes of the tensors of published weights, by name. */
export type KnownShapes = Readonly<Record<string, readonly number[]>>;

/**
 * The tensors that variables are published as. As in reading, the first rule counts whose tensor is known; where none is, the first
 * that matches. Names that are not known have the family's prefix, but for tensors that may be copies of others, which belong to heads.
 */
export function publishedTensors(
  entries: readonly Entry[],
  names: NameRules,
  known: KnownShapes = {},
): PublishedTensors {
  const tensors = new Map<string, { shape: readonly number[]; sources: Source[] }>();
  const problems: string[] = [];
  const [prefix = ''] = names.prefixes;
  const knownName = (tensor: string): string | undefined =>
    ['', ...names.prefixes].map((each) => each + tensor).find((name) => Object.hasOwn(known, name));
  const place = (variable: string, { name, shape, start }: Entry & { readonly start: number }): void => {
    const rules = names.rules.flatMap((each) => applyRule(each, name) ?? []);
    const rule = rules.find(({ tensor }) => knownName(tensor) !== undefined) ?? rules[0];
    if (rule === undefined) {
      problems.push(`${name}: no published weight has its place by the name rules.`);
      return;
    }
    const { tensor, axes } = rule;
    const full = knownName(tensor) ?? (Object.hasOwn(names.copies, tensor) ? tensor : prefix + tensor);
    const stored = known[full] ?? (axes === undefined ? shape : storedShape(axes, shape));
    const order = axes === undefined || stored === undefined ? undefined : orderAxes(axes, stored, shape);
    const fits = axes === undefined ? `${stored}` === `${shape}` : order !== undefined;
    if (stored === undefined || !fits) {
      const found = stored === undefined ? 'a tensor of no certain shape' : `[${stored.join(', ')}]`;
      problems.push(`${name} is [${shape.join(', ')}], and '${full}' ${found}${axes ? ` by ${axes}` : ''}.`);
      return;
    }
    const source = { variable, start, length: sizeOf(shape), order };
    const before = tensors.get(full);
    if (before === undefined) tensors.set(full, { shape: stored, sources: [source] });
    else before.sources.push(source);
  };
  for (const entry of entries) for (const part of partsOf(entry, entries, names)) place(entry.name, part);
  for (const [name, { shape, sources }] of tensors) {
    const given = sources.reduce((sum, { length }) => sum + length, 0);
    if (given !== sizeOf(shape))
      problems.push(
        `'${name}' [${shape.join(', ')}] has ${sizeOf(shape)} elements, and the model ${given} for it.`,
      );
  }
  return { tensors: [...tensors].map(([name, parts]) => ({ name, ...parts })), problems };
}

/** Of the tensors of published weights, those that the model's are written beside. @param taken the model's own */
export const keptTensors = (
  available: readonly string[],
  { kept = [], prefixes, copies }: NameRules,
  taken: ReadonlySet<string>,
): string[] =>
  available.filter((tensor) => {
    const prefix = prefixes.find((each) => tensor.startsWith(each)) ?? '';
    const short = tensor.slice(prefix.length);
    const isKept = kept.some((text) => wholePath(text).test(short)) && !Object.hasOwn(copies, short);
    return isKept && !taken.has(tensor);
  });

/** The elements of a tensor. @param floats all elements of a variable */
export function tensorValues(
  { shape, sources }: PublishedTensor,
  floats: (variable: string) => Float32Array,
): Float32Array {
  const values = new Float32Array(sizeOf(shape));
  for (const { variable, start, length, order } of sources)
    storeElements(floats(variable).subarray(start, start + length), values, order);
  return values;
}
