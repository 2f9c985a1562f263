/** @file Configs of layers, nested and shared, with tagged fields, for tests of selections. */
import { z } from 'zod';
import { Configurable, defineTag, factory, instance, sub, tagged } from '../../../src/hparams/index.js';

export const Width = defineTag('select.Width', 'How wide something is.');
export const HeadWidth = defineTag('select.HeadWidth', 'How wide a head is.', { parent: Width });

export abstract class Layer extends Configurable.with({ name: z.string().default('layer') }) {
  static override readonly isAbstract = true;
}
export class Attention extends Layer.with({
  numHeads: tagged(z.int().positive().default(8), HeadWidth),
  dims: tagged(z.int().positive().optional(), Width),
  scales: z.array(z.number()).default([]),
}) {}
export class Windowed extends Attention.with({ window: z.int().default(4) }) {}
export class Linear extends Layer.with({ dims: z.int() }) {}
export class Block extends Layer.with({
  attention: instance(Layer, () => Attention.config()),
  second: instance(Layer, null).nullable().default(null),
  list: z.array(instance(Layer, null)).default([]),
  byName: z.record(z.string(), sub(Layer, null)).default({}),
  make: factory(Attention).optional(),
}) {}

export function sample() {
  const shared = Attention.config({ numHeads: 2, name: 'shared' });
  const windowed = Windowed.config({ name: 'windowed' });
  const inner = Block.config({ attention: shared, list: [windowed, shared], name: 'inner' });
  const root = Block.config({ second: inner, byName: { 'a b': shared }, name: 'root' });
  return { root, inner, shared, windowed };
}
