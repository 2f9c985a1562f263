/** @file The published tensors that a model's variables are written as: the name rules, read the other way. */
import { orderAxes, storedShape, storeElements } from '../checkpoints/index.js';
import { sizeOf } from '../compiler/index.js';
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

/**
 * The tensors that variables are published as. Of the rules that match a variable, the first counts. Names have the family's prefix
 * but for tensors that may be copies of others, which belong to heads.
 */
export function publishedTensors(entries: readonly Entry[], names: NameRules): PublishedTensors {
  const tensors = new Map<string, { shape: readonly number[]; sources: Source[] }>();
  const problems: string[] = [];
  const place = (variable: string, { name, shape, start }: Entry & { readonly start: number }): void => {
    const [rule] = names.rules.flatMap((each) => applyRule(each, name) ?? []);
    if (rule === undefined) {
      problems.push(`${name}: no published weight has its place by the name rules.`);
      return;
    }
    const { tensor, axes } = rule;
    const stored = axes === undefined ? shape : storedShape(axes, shape);
    const before = tensors.get(tensor);
    if (stored === undefined || (before !== undefined && `${before.shape}` !== `${stored}`)) {
      const known = before === undefined ? '' : `, and another variable one of [${before.shape.join(', ')}]`;
      problems.push(
        `${name} [${shape.join(', ')}]: '${axes}' gives '${tensor}' ${stored ? `[${stored.join(', ')}]` : 'no shape'}${known}.`,
      );
      return;
    }
    const order = axes === undefined ? undefined : orderAxes(axes, stored, shape);
    const source = { variable, start, length: sizeOf(shape), order };
    if (before === undefined) tensors.set(tensor, { shape: stored, sources: [source] });
    else before.sources.push(source);
  };
  for (const entry of entries) for (const part of partsOf(entry, entries, names)) place(entry.name, part);
  const [prefix = ''] = names.prefixes;
  const found = [...tensors].map(([name, { shape, sources }]): PublishedTensor => {
    const given = sources.reduce((sum, { length }) => sum + length, 0);
    if (given !== sizeOf(shape))
      problems.push(
        `'${name}' [${shape.join(', ')}]: the model has ${given} of its ${sizeOf(shape)} elements.`,
      );
    return { name: Object.hasOwn(names.copies, name) ? name : prefix + name, shape, sources };
  });
  return { tensors: found, problems };
}

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
